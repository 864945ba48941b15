"""Stream segments over UDP with exactly the loss an application can live with.

A *segment* is the smallest piece of data an application uses on its own: a frame, a slice, a record. Of its *units* a
*tolerance* ``(W, E, B)`` says how many may be missing. Every segment gets a *verdict* at both ends, with its *holes*.

The blocking interface is here, the one for asyncio in :mod:`segstream.aio`, the laboratory in :mod:`segstream.lab`.
"""

from ._blocking import (
    Connection,
    Endpoint,
    SegmentWriter,
    StreamReceiver,
    StreamSender,
    bind,
    connect,
    listen,
    listen_shards,
    unit_bytes_max,
)
from ._errors import (
    ClosedError,
    Error,
    ForkedError,
    PathError,
    PeerError,
    SystemFaultError,
    TimedOutError,
    UsageError,
)
from ._native import Admission, Contract, Judged, Segment, Units, identity
from ._values import Durable, SavedCapacity

__all__ = [
    "Admission",
    "ClosedError",
    "Connection",
    "Contract",
    "Durable",
    "Endpoint",
    "Error",
    "ForkedError",
    "Judged",
    "PathError",
    "PeerError",
    "SavedCapacity",
    "Segment",
    "SegmentWriter",
    "StreamReceiver",
    "StreamSender",
    "SystemFaultError",
    "TimedOutError",
    "Units",
    "UsageError",
    "bind",
    "connect",
    "identity",
    "listen",
    "listen_shards",
    "unit_bytes_max",
]
