"""Python at both ends beside the Rust facade at both ends, over loopback, alternately in one run.

    cargo build --release -p segstream-cli
    python bindings/python/bench/loopback.py

The ends are processes: of Python those of this file, of Rust those of ``segstream bench``, with the same settings: the window alone
paces (class 6), datagrams of one size, units that fill them, segments from the same memory. Goodput is the receiver's, from the first arrival
to the last segment. Prints one JSON object. For a quiet machine: others' work makes its numbers void.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import segstream

MIB = 1 << 20
ROOT = Path(__file__).resolve().parents[3]
#: As ``segstream bench`` has it: some 5 MiB.
WINDOW_UNITS = 4800


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as fields:
        return int(fields.read().split()[1]) * resource.getpagesize()


def say(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


class Memory:
    """By how much resident memory has grown since the first call, at most."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.grown = 0

    def look(self) -> None:
        now = resident()
        self.first = now if self.first is None else self.first
        self.grown = max(self.grown, now - self.first)


def settings(options: argparse.Namespace) -> dict[str, Any]:
    unpaced: dict[str, Any] = {"class_": 6, "rate": "unpaced", "unlimited": True}
    return unpaced | {"insecure": options.insecure, "datagram_bytes": options.datagram_bytes, "idle_timeout": 60.0}


def unit_bytes(options: argparse.Namespace) -> int:
    """The largest unit that fits the datagram, or of which two or more fill it."""
    window = max(WINDOW_UNITS, -(-options.bytes // 512))
    largest = segstream.unit_bytes_max(segstream.Contract(window_units=window), insecure=options.insecure)
    room = options.datagram_bytes - (1200 - largest)
    whole = max(1, room // largest)
    return largest if whole * largest * 20 >= room * 19 else room // (whole + 1)


def receive(options: argparse.Namespace) -> None:
    allowed = {} if options.insecure else {"allow_anyone": True}
    with segstream.listen("127.0.0.1:0", **settings(options), **allowed) as endpoint:
        say({"listening": endpoint.address, "trust": endpoint.fingerprint or ""})
        stream = endpoint.accept(60).accept_stream(60)
        assert stream is not None
        count = received = 0
        first = last = 0.0
        memory = Memory()
        for segments in batches(stream, options):
            last = endpoint.now()
            if not count:
                first = segments[0].first_arrival or last
            count += len(segments)
            received += sum(map(len, segments))
            del segments
            if options.batch == 1 or count % (64 * options.batch) < options.batch:
                memory.look()
    say({"bytes": received, "complete": count, "seconds": last - first, "memory_grown_bytes": memory.grown})


def batches(stream: segstream.StreamReceiver, options: argparse.Namespace) -> Iterator[list[segstream.Segment]]:
    if options.batch > 1:
        while segments := stream.recv_many(options.batch):
            yield segments
    else:
        for segment in stream:
            # What an application does first: an array over the segment's memory.
            assert segment.array.nbytes == options.bytes
            yield [segment]


def send(options: argparse.Namespace) -> None:
    units = -(-options.bytes // unit_bytes(options))
    contract = segstream.Contract(
        unit_bytes=unit_bytes(options), window_units=max(WINDOW_UNITS, units), dtype="u1", shape=(options.bytes,)
    )
    array = np.full(options.bytes, 7, "u1")
    array.flags.writeable = False
    rows = [array.tobytes()] * options.batch
    began, memory = time.monotonic(), Memory()
    with segstream.connect(options.connect, options.trust or None, streams=[contract], **settings(options)) as connection:
        sender = connection.senders[0]
        for sent in range(0, options.count, options.batch):
            if options.batch > 1:
                sender.send_many(rows)
            else:
                sender.send(array)
            if options.batch == 1 or sent % (64 * options.batch) == 0:
                memory.look()
        sender.finish()
        incomplete = sum(not judged.is_met for judged in sender.verdicts())
    seconds = time.monotonic() - began
    say({"complete": options.count, "incomplete": incomplete, "seconds": seconds, "memory_grown_bytes": memory.grown})


def started(command: list[str], processor: int | None) -> subprocess.Popen[str]:
    pin = None if processor is None else lambda: os.sched_setaffinity(0, {processor})
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=pin)


def line_of(end: subprocess.Popen[str]) -> dict[str, Any]:
    assert end.stdout is not None
    line = end.stdout.readline()
    if not line:
        raise SystemExit(f"an end has failed: {' '.join(end.args)}")  # type: ignore[arg-type]
    found: dict[str, Any] = json.loads(line)
    if "error" in found:
        raise SystemExit(f"an end has failed: {found['error']}")
    return found


def once(of: str, options: argparse.Namespace, size: int, count: int, batch: int, insecure: bool) -> dict[str, Any]:
    """One transfer between two ends that are both of ``of``; what both have said."""
    if of == "python":
        ours = [sys.executable, __file__, "--bytes", str(size), "--count", str(count), "--batch", str(batch)]
        ours += ["--datagram-bytes", str(options.datagram_bytes), *(["--insecure"] if insecure else [])]
        serve, run = [*ours, "--end", "serve"], [*ours, "--end", "run"]
    else:
        theirs = [str(options.segstream), "bench", "end", "plain" if insecure else "encrypted", "--workload", "throughput"]
        theirs += ["--bytes", str(size * count), "--segment-bytes", str(size), "--datagram-bytes", str(options.datagram_bytes)]
        serve, run = [*theirs, "--side", "serve"], [*theirs, "--side", "run"]
    processors = sorted(os.sched_getaffinity(0))
    pins = processors[:2] if options.pin and len(processors) > 1 else [None, None]
    receiver = started(serve, pins[1])
    found = line_of(receiver)
    sender = started([*run, "--connect", found["listening"], "--trust", found["trust"]], pins[0])
    sent, received = line_of(sender), line_of(receiver)
    sender.wait(), receiver.wait()
    return {"sent": sent, "received": received}


def median(values: list[float]) -> float:
    return statistics.median(values)


def compared(options: argparse.Namespace, size: int, count: int, batch: int, insecure: bool) -> dict[str, Any]:
    """Both of them in turn, so that what else happens on the machine happens to both; medians, and their ratio."""
    runs: dict[str, list[dict[str, Any]]] = {"rust": [], "python": []}
    for _ in range(options.repetitions):
        for of, told in runs.items():
            told.append(once(of, options, size, count, batch, insecure))
    report: dict[str, Any] = {"bytes": size, "segments": count}
    for of, told in runs.items():
        goodput = [8 * run["received"]["bytes"] / run["received"]["seconds"] for run in told]
        report[of] = {
            "goodput_bps": [round(value) for value in goodput],
            "goodput_bps_median": round(median(goodput)),
            "segments_per_second_median": round(median([run["received"]["complete"] / run["received"]["seconds"] for run in told])),
        }
    for end in ("sent", "received"):
        report["python"][f"memory_grown_bytes_{end}"] = max(run[end]["memory_grown_bytes"] for run in runs["python"])
    report["memory_grown_bytes_allowed"] = 3 * WINDOW_UNITS * 1123 + 2 * size
    report["ratio"] = round(report["python"]["goodput_bps_median"] / report["rust"]["goodput_bps_median"], 3)
    return report


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of 4 MiB arrays, in each transfer")
    parser.add_argument("--small", type=int, default=3_000_000, help="segments of 100 bytes in each transfer")
    parser.add_argument("--batch", type=int, default=1024, help="how many of them in one call")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--datagram-bytes", type=int, default=1200)
    parser.add_argument("--segstream", type=Path, default=ROOT / "target/release/segstream", help="the command of Rust")
    parser.add_argument("--no-pin", dest="pin", action="store_false", help="let both ends use every processor")
    parser.add_argument("--only", choices=["arrays", "small"])
    ends = parser.add_argument_group("one end, for this program itself")
    ends.add_argument("--end", choices=["serve", "run"])
    ends.add_argument("--bytes", type=int)
    ends.add_argument("--count", type=int)
    ends.add_argument("--insecure", action="store_true")
    ends.add_argument("--connect")
    ends.add_argument("--trust", default="")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.end:
        return receive(options) if options.end == "serve" else send(options)
    count = max(1, round(options.gigabytes * 1e9 / (4 * MIB)))
    small = options.small // options.batch * options.batch
    report = {}
    for kind, size, of, batch in (("arrays", 4 * MIB, count, 1), ("small", 100, small, options.batch)):
        for mode in ("encrypted", "plain"):
            if options.only in (None, kind):
                report[f"{kind}_{mode}"] = compared(options, size, of, batch, mode == "plain")
    print(json.dumps(report, indent=1))
    return None


if __name__ == "__main__":
    main()
