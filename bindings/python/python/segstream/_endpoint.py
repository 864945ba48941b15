"""What the endpoints of the two interfaces share: all that needs no wait."""

from __future__ import annotations

from . import _native
from ._handle import Handle
from ._values import SavedCapacity


class EndpointHandle(Handle[_native.Endpoint]):
    """A socket with its connections."""

    __slots__ = ()

    @property
    def address(self) -> str:
        """The address in use, as ``HOST:PORT``."""
        return self._open.address

    @property
    def fingerprint(self) -> str | None:
        """The fingerprint of our key, by which peers know us; ``None`` in plain mode."""
        return self._open.fingerprint

    @property
    def warnings(self) -> list[str]:
        """Where the system granted less than was requested."""
        return self._open.warnings

    def socket_counters(self) -> dict[str, int]:
        """What the socket has counted, with the ICMP errors that it has received, which anyone near the path can forge."""
        return dict(self._open.socket_counters())

    def unmatched(self) -> dict[str, int]:
        """The datagrams that match no connection, by why."""
        return dict(self._open.unmatched())

    @property
    def events_omitted(self) -> int:
        """How many events are missing in ``qlog`` and ``loss_log`` because writing them fell behind."""
        return self._open.events_omitted

    def saved_capacity(self, remote: str) -> SavedCapacity | None:
        """What is known of the capacity of the path to the host of ``HOST:PORT``, to store it between processes."""
        saved = self._open.saved_capacity(remote)
        return None if saved is None else SavedCapacity(*saved)

    def save_capacity(self, remote: str, capacity: SavedCapacity) -> None:
        """Let the next connection to the host of ``HOST:PORT`` begin as if one of this endpoint had found this capacity."""
        self._open.save_capacity(remote, capacity.rate, capacity.rtt, capacity.lifetime)

    def stop_accepting(self) -> None:
        """Accept no connection from now on; those that were accepted go on."""
        self._open.stop_accepting()

    def now(self) -> float:
        """The time on the endpoint's clock in seconds: what ``source_time`` counts in."""
        return self._open.now()
