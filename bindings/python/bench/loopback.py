"""Goodput and rates of segments over loopback, Python at both ends.

    python bindings/python/bench/loopback.py

Prints one JSON object. For a quiet machine: others' work makes its numbers void.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from typing import Any

import numpy as np
import segstream

MIB = 1 << 20


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as fields:
        return int(fields.read().split()[1]) * resource.getpagesize()


def _receive(told: Any, settings: dict[str, Any], batch: bool) -> None:
    """The receiving process: says its address, then what it has received and how long it took."""
    with segstream.listen("127.0.0.1:0", **settings) as endpoint:
        told.send((endpoint.address, endpoint.fingerprint))
        stream = endpoint.accept(60).accept_stream(60)
        assert stream is not None
        count = received = 0
        began = resident = None
        while segments := stream.recv_many() if batch else [s for s in [stream.recv()] if s is not None]:
            began = began or time.monotonic()
            resident = resident or _resident()
            count += len(segments)
            received += sum(segment.nbytes for segment in segments)
        seconds = time.monotonic() - (began or 0.0)
        told.send((count, received, seconds, _resident() - (resident or 0)))


def measured(count: int, size: int, insecure: bool, batch: int | None) -> dict[str, Any]:
    """Sends ``count`` segments of ``size`` bytes, one by one or in batches."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    serving = {"insecure": True} if insecure else {"allow_anyone": True}
    receiver = spawn.Process(target=_receive, args=(theirs, serving, batch is not None))
    receiver.start()
    address, fingerprint = ours.recv()
    window = 16 * MIB
    contract = segstream.Contract(window_units=window // 1024, dtype="u1", shape=(-1,))
    array = np.ones(size, "u1")
    array.flags.writeable = False
    with segstream.connect(address, fingerprint, streams=[contract], insecure=insecure) as connection:
        sender = connection.senders[0]
        before = _resident()
        if batch is None:
            for _ in range(count):
                sender.send(array)
        else:
            rows = [bytes(size)] * batch
            for _ in range(count // batch):
                sender.send_many(rows)
        sender.finish()
        grown = _resident() - before
    got, received, seconds, receiver_grown = ours.recv()
    receiver.join()
    return {
        "bytes": size,
        "segments": got,
        "seconds": seconds,
        "goodput_bps": 8 * received / seconds,
        "segments_per_second": got / seconds,
        "memory_grown_bytes": {"sender": grown, "receiver": receiver_grown, "allowed": 3 * window + 2 * size},
    }


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--gigabytes", type=float, default=2.0, help="of 4 MiB arrays")
    parser.add_argument("--small", type=int, default=3_000_000, help="segments of 100 bytes")
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    count = max(1, round(options.gigabytes * 1e9 / (4 * MIB)))
    report = {
        "arrays_encrypted": measured(count, 4 * MIB, False, None),
        "arrays_plain": measured(count, 4 * MIB, True, None),
        "small_encrypted": measured(options.small, 100, False, options.batch),
        "small_plain": measured(options.small, 100, True, options.batch),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
