"""A bridge for ZeroMQ: what is pulled here is pushed at the other end.

    python zeromq.py send tcp://127.0.0.1:5555 127.0.0.1:9000 FINGERPRINT      PUSH -> here
    python zeromq.py recv 127.0.0.1:9000 tcp://127.0.0.1:5556                  here -> PULL

A message of ZeroMQ has frames; it travels as one segment of a reliable stream, in which each frame stands behind its length
(eight bytes, little end first). A received frame is a view of the segment, so that it is copied by ZeroMQ alone.
"""

from __future__ import annotations

import argparse
import struct
from collections.abc import Iterable

import segstream
import zmq

LENGTH = struct.Struct("<Q")


def packed(frames: Iterable[bytes | memoryview]) -> bytes:
    """A message as a segment."""
    return b"".join(part for frame in frames for part in (LENGTH.pack(len(frame)), frame))


def unpacked(segment: segstream.Segment) -> list[memoryview]:
    """The frames of a segment, without a copy."""
    view, at, frames = memoryview(segment), 0, []
    while at < len(view):
        (length,) = LENGTH.unpack_from(view, at)
        at += LENGTH.size
        if length > len(view) - at:
            raise ValueError(f"segment {segment.segment} is no message: a frame of {length} bytes where {len(view) - at} are left")
        frames.append(view[at : at + length])
        at += length
    return frames


def forward(pull: zmq.Socket[bytes], sender: segstream.StreamSender, messages: int | None = None) -> None:
    """Sends what is pulled, so many messages."""
    done = 0
    while messages is None or done < messages:
        sender.send(packed(pull.recv_multipart()))
        done += 1


def deliver(stream: segstream.StreamReceiver, push: zmq.Socket[bytes]) -> int:
    """Pushes what is received until the stream ends; how many messages."""
    count = 0
    for segment in stream:
        push.send_multipart(unpacked(segment), copy=False)
        count += 1
    return count


def main() -> None:
    """One end of the bridge."""
    parser = argparse.ArgumentParser(description="ZeroMQ over Segstream.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    sending, receiving = verbs.add_parser("send"), verbs.add_parser("recv")
    for name in ("pull", "to", "fingerprint"):
        sending.add_argument(name)
    for name in ("listen", "push"):
        receiving.add_argument(name)
    options = parser.parse_args()
    context = zmq.Context.instance()
    if options.verb == "send":
        pull = context.socket(zmq.PULL)
        pull.bind(options.pull)
        with segstream.connect(options.to, options.fingerprint) as connection:
            forward(pull, connection.senders[0])
        return
    push = context.socket(zmq.PUSH)
    push.bind(options.push)
    with segstream.listen(options.listen, allow_anyone=True) as endpoint:
        print(f"listening on {endpoint.address}, fingerprint {endpoint.fingerprint}", flush=True)
        stream = endpoint.accept().accept_stream()
        if stream is not None:
            deliver(stream, push)


if __name__ == "__main__":
    main()
