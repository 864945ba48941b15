"""Frames at a steady rate through the emulated link, with a tolerance: what Python is told, beside what the command writes.

    cargo build --release -p segstream-cli
    python bindings/python/bench/frames.py

500 frames of 256 KiB a second, of whose units (of 1 KiB) 32 may be missing, no two side by side, over a link that loses 2 % in bursts. First to
the receiver of the command, whose ``--segments-json`` is compared with the verdicts and holes that Python's sender was told; then to a
receiver in Python, whose segments are compared with the same, and the holes with where the frame is zero. Prints one JSON object, and exits
with 1 if anything differs. For a quiet machine: another may be too slow for the rate, which ``frames_late`` tells.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import segstream

ROOT = Path(__file__).resolve().parents[3]
SHAPE = (256, 512)
#: A frame that is sent this much after it was due is late.
LATE_SECONDS = 0.1
PATIENCE = 60.0



def contract(unit_bytes: int) -> segstream.Contract:
    window = (16 << 20) // unit_bytes
    return segstream.Contract(
        tolerance=(1024, 32, 1), unit_bytes=unit_bytes, dtype="u2", shape=SHAPE, label="frames", window_units=window
    )


Told = list[tuple[int, str, list[int]]]


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def units(holes: list[range]) -> list[int]:
    return [unit for hole in holes for unit in hole]


def stream(to: str, options: argparse.Namespace) -> tuple[Told, dict[str, Any]]:
    """Sends every frame when it is due; the verdicts, and what it took."""
    frame = np.arange(1, SHAPE[0] * SHAPE[1] + 1, dtype="u4").reshape(SHAPE).astype("u2") | np.uint16(1)
    frame.flags.writeable = False
    settings: dict[str, Any] = {"insecure": True, "rate": options.rate, "connect_timeout": PATIENCE}
    late = 0
    with segstream.connect(to, streams=[contract(options.unit_bytes)], datagram_bytes=options.datagram_bytes, **settings) as connection:
        sender = connection.senders[0]
        began = time.monotonic()
        for number in range(options.frames):
            ahead = began + number / options.frames_per_second - time.monotonic()
            if ahead > 0:
                time.sleep(ahead)
            sender.send(frame)
            late += began + number / options.frames_per_second + LATE_SECONDS < time.monotonic()
        sent = time.monotonic() - began
        sender.finish()
        told = sorted((judged.segment, judged.verdict, units(judged.holes)) for judged in sender.verdicts())
        statistics = connection.statistics()
    taken = {
        "frames_per_second": round(options.frames / sent, 1),
        "frames_late": late,
        "units_missing": sum(len(holes) for _, _, holes in told),
        "units_retransmitted": statistics["units_retransmitted"],
        "verdicts": {verdict: sum(one[1] == verdict for one in told) for verdict in sorted({one[1] for one in told})},
    }
    return told, taken


def link(to: str, options: argparse.Namespace) -> tuple[subprocess.Popen[str], str]:
    at = f"127.0.0.1:{free_port()}"
    command = [options.segstream, "link", "--listen", at, "--to", to, "--bandwidth", options.bandwidth, "--rtt", "10ms"]
    command += ["--loss", options.loss, "--seed", "7", "--json"]
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, text=True), at


def ended(process: subprocess.Popen[str]) -> dict[str, Any]:
    process.terminate()
    out, _ = process.communicate(timeout=PATIENCE)
    return json.loads(out) if out.strip() else {}


def to_the_command(options: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        lines, at = Path(folder, "segments.json"), f"127.0.0.1:{free_port()}"
        command = [options.segstream, "recv", "--listen", at, "--out", Path(folder, "out"), "--segments-json", lines, "--insecure"]
        receiver = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        through, address = link(at, options)
        try:
            told, report = stream(address, options)
            receiver.wait(PATIENCE)
        finally:
            receiver.kill()
            report_of_link = ended(through)
        written = [json.loads(line) for line in lines.read_text().splitlines()]
    heard = sorted((line["segment"], line["verdict"], line["holes"]) for line in written)
    return report | {"frames_that_differ": differing(told, heard), "link": brief(report_of_link)}


def receive(pipe: Any) -> None:
    with segstream.listen("127.0.0.1:0", insecure=True) as endpoint:
        pipe.send(endpoint.address)
        told: Told = []
        wrong = 0
        for segment in endpoint.accept(PATIENCE).accept_stream(PATIENCE) or ():
            told.append((segment.segment, segment.verdict, units(segment.holes)))
            # No element of a frame is 0, and holes are filled with it.
            firsts = segment.array.reshape(-1)[:: segment.unit_bytes // 2]
            wrong += not np.array_equal(firsts == 0, segment.unit_mask)
        pipe.send((sorted(told), wrong))


def to_python(options: argparse.Namespace) -> dict[str, Any]:
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    receiver = spawn.Process(target=receive, args=(theirs,))
    receiver.start()
    through, address = link(ours.recv(), options)
    try:
        told, report = stream(address, options)
        heard, wrong = ours.recv()
        receiver.join(PATIENCE)
    finally:
        receiver.kill()
        report_of_link = ended(through)
    return report | {"frames_that_differ": differing(told, heard), "frames_whose_holes_are_wrong": wrong, "link": brief(report_of_link)}


def differing(told: Told, heard: Told) -> int:
    return sum(a != b for a, b in zip(told, heard, strict=False)) + abs(len(told) - len(heard))


def brief(report: dict[str, Any]) -> dict[str, Any]:
    """Of what the link says that which tells whether it kept up."""
    return {name: value for name, value in report.items() if not isinstance(value, (dict, list))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--frames", type=int, default=5000)
    parser.add_argument("--frames-per-second", type=float, default=500.0)
    parser.add_argument("--rate", type=float, default=1.5e9, help="of the sender, bit/s of whole IP packets")
    parser.add_argument("--bandwidth", default="1600mbit", help="of the link")
    parser.add_argument("--loss", default="gilbert:rate=2%,burst=2")
    parser.add_argument("--unit-bytes", type=int, default=1024)
    parser.add_argument("--datagram-bytes", type=int, default=8972, help="the default fills jumbo frames")
    parser.add_argument("--segstream", type=Path, default=ROOT / "target/release/segstream", help="the command of Rust")
    options = parser.parse_args()
    report = {"to_the_command": to_the_command(options), "to_python": to_python(options)}
    print(json.dumps(report, indent=1))
    return int(any(one["frames_that_differ"] or one.get("frames_whose_holes_are_wrong") for one in report.values()))


if __name__ == "__main__":
    sys.exit(main())
