"""What handles return and take besides segments."""

from __future__ import annotations

from typing import NamedTuple


class Durable(NamedTuple):
    """What of a stream the peer's application has in safety."""

    #: All segments below this one.
    segments: int
    #: Whether no more will be confirmed.
    last: bool


class SavedCapacity(NamedTuple):
    """The capacity of a path, as a connection has found it. To be stored between processes."""

    #: The highest rate at which data arrived of late, in bit/s of whole IP packets.
    rate: int
    #: The smallest round trip in seconds.
    rtt: float
    #: For how many seconds from now it may be used, an hour at most: subtract how long it was stored.
    lifetime: float = 3600.0
