"""EPICS PVAccess: the arrays of a process variable (NTNDArray) in at one end and out at the other.

    python pvaccess.py send CAMERA:Image 127.0.0.1:9000 FINGERPRINT        monitors CAMERA:Image
    python pvaccess.py recv 127.0.0.1:9000 REMOTE:Image                    serves REMOTE:Image

A segment is a header of one unit, which must arrive whatever the tolerance (``importance=1``), and the array. The header is JSON:
dtype, shape, the array's number and its time. Elements that are missing are zero in what is served.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import segstream
from p4p.client.thread import Context
from p4p.nt import NTNDArray
from p4p.server import Server
from p4p.server.thread import SharedPV

UNIT_BYTES = 1024


def contract(tolerance: str = "reliable") -> segstream.Contract:
    """What the arrays are sent under."""
    return segstream.Contract(unit_bytes=UNIT_BYTES, importance=1, tolerance=tolerance, label="NTNDArray")


def packed(array: np.ndarray[Any, Any], number: int = 0, time: float = 0.0) -> bytes:
    """An array as a segment."""
    header = {"dtype": array.dtype.str, "shape": array.shape, "number": number, "time": time}
    text = json.dumps(header).encode()
    if len(text) > UNIT_BYTES:
        raise ValueError(f"a header of {len(text)} bytes does not fit a unit of {UNIT_BYTES}")
    return text.ljust(UNIT_BYTES) + np.ascontiguousarray(array).tobytes()


def unpacked(segment: segstream.Segment) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """The array of a segment, over its memory, and its header."""
    view = memoryview(segment)
    header = json.loads(bytes(view[:UNIT_BYTES]))
    return np.frombuffer(view[UNIT_BYTES:], header["dtype"]).reshape(header["shape"]), header


def forward(name: str, sender: segstream.StreamSender) -> tuple[Context, Any]:
    """Sends each value of the process variable from now on; close what is returned to end."""
    context = Context("pva")

    def send(value: Any) -> None:
        if isinstance(value, np.ndarray):
            raw = value.raw
            sender.send(packed(np.asarray(value), int(raw.uniqueId), float(value.timestamp)))

    return context, context.monitor(name, send)


def publish(stream: segstream.StreamReceiver, name: str) -> int:
    """Serves what is received as a process variable until the stream ends; how many arrays."""
    variable, kind, count = SharedPV(), NTNDArray(), 0
    with Server(providers=[{name: variable}]):
        for segment in stream:
            array, header = unpacked(segment)
            value = kind.wrap(array, timestamp=header["time"])
            value.uniqueId = header["number"]
            if variable.isOpen():
                variable.post(value)
            else:
                variable.open(value)
            count += 1
    return count


def main() -> None:
    """One end."""
    parser = argparse.ArgumentParser(description="EPICS PVAccess over Segstream.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    sending, receiving = verbs.add_parser("send"), verbs.add_parser("recv")
    for name in ("variable", "to", "fingerprint"):
        sending.add_argument(name)
    for name in ("listen", "variable"):
        receiving.add_argument(name)
    options = parser.parse_args()
    if options.verb == "send":
        with segstream.connect(options.to, options.fingerprint, streams=[contract()]) as connection:
            context, subscription = forward(options.variable, connection.senders[0])
            with context, subscription:
                print(connection.closed())
        return
    with segstream.listen(options.listen, allow_anyone=True) as endpoint:
        print(f"listening on {endpoint.address}, fingerprint {endpoint.fingerprint}", flush=True)
        stream = endpoint.accept().accept_stream()
        if stream is not None:
            publish(stream, options.variable)


if __name__ == "__main__":
    main()
