"""The blocking interface: every call that waits lets other threads run, and Ctrl-C interrupts it.

Handles may be used by several threads at once. Timeouts are in seconds; ``None`` waits without limit.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

from . import _native
from ._endpoint import EndpointHandle
from ._errors import UsageError
from ._handle import Handle
from ._native import Contract, Judged, Segment, Units
from ._settings import Settings, completed
from ._values import Durable

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._native import Tolerance, Verdict

#: How many segments ``recv_many`` returns at most unless told otherwise.
BATCH = 1024


class SegmentWriter(Handle[_native.Writer]):
    """An open segment: its first units leave before its last exist. Leaving a ``with`` block finishes it."""

    @property
    def segment(self) -> int:
        """The segment's number on its stream."""
        return self._open.segment

    def append(self, buffer: Buffer, timeout: float | None = None) -> Verdict | None:
        """Append the bytes of a buffer, which are copied; wait while the send buffer is full.

        Returns a verdict if the segment was judged before: then the bytes were not accepted.
        """
        return cast("Verdict | None", self._open.append(buffer).wait(timeout))

    def finish(self, timeout: float | None = None) -> int:
        """End the segment; its number, for ``StreamSender.verdict``."""
        return cast(int, self._open.finish().wait(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        self._native = None


class StreamSender(Handle[_native.Sender]):
    """A stream of ours: sends segments and returns their verdicts."""

    @property
    def stream(self) -> int:
        """The stream's number at both ends."""
        return self._open.stream

    @property
    def contract(self) -> Contract:
        """What was agreed for the stream."""
        return self._open.contract

    def send(
        self,
        buffer: Buffer,
        *,
        source_time: float | None = None,
        tolerance: Tolerance | None = None,
        borrow: bool = False,
        timeout: float | None = None,
    ) -> int:
        """Send the bytes of a contiguous buffer as one segment; its number.

        Waits while the send buffer is full. Read-only memory longer than 4 KiB is not copied but held until the verdict.
        Writable memory is copied, unless ``borrow=True``: then it is held too, and must not be changed until the verdict.

        Raises ``TypeError`` for elements of another dtype than the stream's, ``ValueError`` for another length than its
        shape's, ``BufferError`` for memory that is not contiguous.
        """
        return cast(int, self._open.send(buffer, source_time, tolerance, borrow).wait(timeout))

    def try_send(
        self,
        buffer: Buffer,
        *,
        source_time: float | None = None,
        tolerance: Tolerance | None = None,
        borrow: bool = False,
    ) -> int | None:
        """As ``send``, but ``None`` at once if the send buffer is full."""
        return self._open.try_send(buffer, source_time, tolerance, borrow)

    def send_many(self, buffers: Iterable[Buffer], *, borrow: bool = False) -> list[int]:
        """Send a segment for each buffer; their numbers. For many short segments, which then share datagrams.

        If it is interrupted, the first of them have been sent.
        """
        return cast("list[int]", self._open.send_many(buffers, borrow).wait())

    def verdict(self, segment: int, timeout: float | None = None) -> Judged:
        """Wait for the verdict on a segment. Each is returned once."""
        return cast(Judged, self._open.verdict(segment).wait(timeout))

    def next_verdict(self, timeout: float | None = None) -> Judged | None:
        """Wait for the next verdict; ``None`` when no more will come. The last 65,536 unread ones are kept."""
        return cast("Judged | None", self._open.next_verdict().wait(timeout))

    def verdicts(self) -> Iterator[Judged]:
        """The verdicts until no more will come."""
        while (judged := self.next_verdict()) is not None:
            yield judged

    def open_segment(
        self,
        *,
        source_time: float | None = None,
        tolerance: Tolerance | None = None,
        timeout: float | None = None,
    ) -> SegmentWriter:
        """Open a segment whose length is not known yet. Only one of a stream can be open."""
        return SegmentWriter(self._open.open_segment(source_time, tolerance).wait(timeout))

    def set_drop_oldest(self, drops_oldest: bool) -> None:
        """For live media: a full send buffer drops its oldest segment of which nothing was sent, instead of waiting."""
        self._open.set_drop_oldest(drops_oldest)

    def finish(self) -> None:
        """No more segments will be sent. Verdicts still arrive."""
        self._open.finish()

    def durable(self) -> Durable:
        """What the peer's application has confirmed so far. Raises ``PeerError`` if it confirms nothing."""
        return Durable(*self._open.durable())

    def confirmed(self, segments: int, timeout: float | None = None) -> Durable:
        """Wait until the peer's application has confirmed all segments below ``segments``, or will confirm no more."""
        return Durable(*self._open.confirmed(segments).wait(timeout))


class StreamReceiver(Handle[_native.Receiver]):
    """A stream of the peer. Iterating returns its segments until it ends."""

    @property
    def stream(self) -> int:
        """The stream's number at both ends."""
        return self._open.stream

    @property
    def contract(self) -> Contract:
        """The peer's contract, with the dtype and shape that its label carries."""
        return self._open.contract

    def recv(self, timeout: float | None = None) -> Segment | None:
        """Wait for the next judged segment; ``None`` when the stream has ended."""
        return cast("Segment | None", self._open.recv().wait(timeout))

    def recv_many(self, most: int = BATCH, timeout: float | None = None) -> list[Segment]:
        """Wait for one segment and return it with those that are there, ``most`` at most. Empty when the stream has ended."""
        return cast("list[Segment]", self._open.recv_many(most).wait(timeout))

    def recv_into(self, buffer: Buffer, timeout: float | None = None) -> tuple[int, Segment] | None:
        """As ``recv``, and copy the segment to the start of a writable buffer; its length in bytes, and the segment.

        Raises ``ValueError`` if the buffer is too short and ``BufferError`` if it is read-only; the segment is then
        returned by the next call.
        """
        native = self._open
        with memoryview(buffer) as view:
            if view.readonly:
                raise BufferError("the target cannot be written: it is read-only; give a bytearray or a writable array")
        segment = self.recv(timeout)
        if segment is None:
            return None
        try:
            return segment.copy_into(buffer), segment
        except BaseException:
            native.put_back(segment)
            raise

    def next_units(self, timeout: float | None = None) -> Units | Segment | None:
        """Wait for units that have arrived (``Units``), or for a judged segment whose units were all returned (``Segment``).

        ``None`` when the stream has ended. From the first call on the stream is read unit by unit.
        """
        return cast("Units | Segment | None", self._open.next_units().wait(timeout))

    def confirm(self, segments: int) -> None:
        """Tell the peer that all segments below ``segments`` are safe with this application.

        The endpoint's setting ``confirms`` must be on. Another thread may wait in ``recv`` meanwhile.
        """
        self._open.confirm(segments)

    def confirm_no_more(self) -> None:
        """Tell the peer that no more will be confirmed."""
        self._open.confirm_no_more()

    def close(self) -> None:
        """Discard what still arrives on the stream."""
        self._native = None

    def __iter__(self) -> Iterator[Segment]:
        while (segment := self.recv()) is not None:
            yield segment


class Connection(Handle[_native.Connection]):
    """A connection with streams in both directions. Leaving a ``with`` block closes it gracefully."""

    __slots__ = ("_accepting", "_endpoint", "_receivers", "_senders")

    def __init__(self, native: _native.Connection, endpoint: Endpoint | None = None) -> None:
        super().__init__(native)
        self._endpoint = endpoint
        self._senders = {sender.stream: StreamSender(sender) for sender in native.senders}
        self._receivers: dict[int, StreamReceiver] = {}
        self._accepting = threading.Lock()

    @property
    def remote(self) -> str:
        """The peer's address."""
        return self._open.remote

    @property
    def peer_fingerprint(self) -> str | None:
        """The fingerprint of the peer's key; ``None`` in plain mode."""
        return self._open.peer_fingerprint

    @property
    def senders(self) -> list[StreamSender]:
        """The streams that were opened with the connection."""
        _ = self._open
        return list(self._senders.values())

    def open_stream(self, contract: Contract | None = None, timeout: float | None = None) -> StreamSender:
        """Open a stream of ours; wait while as many are live as the peer allows."""
        return StreamSender(self._open.open_stream(contract or Contract()).wait(timeout))

    def accept_stream(self, timeout: float | None = None) -> StreamReceiver | None:
        """Wait for the next stream that the peer opens; ``None`` if the connection was closed gracefully."""
        native = self._open.accept_stream().wait(timeout)
        return None if native is None else StreamReceiver(native)

    def send(self, buffer: Buffer, stream: int = 0, **options: Any) -> int:
        """As ``StreamSender.send``, on a stream that was opened with the connection."""
        _ = self._open
        sender = self._senders.get(stream)
        if sender is None:
            raise UsageError(f"stream {stream} was not opened with this connection; use the object that open_stream returned")
        return sender.send(buffer, **options)

    def verdict(self, segment: int, stream: int = 0, timeout: float | None = None) -> Judged:
        """As ``StreamSender.verdict``, on a stream that was opened with the connection."""
        _ = self._open
        if stream not in self._senders:
            raise UsageError(f"stream {stream} was not opened with this connection")
        return self._senders[stream].verdict(segment, timeout)

    def recv(self, stream: int = 0, timeout: float | None = None) -> Segment | None:
        """As ``StreamReceiver.recv``; accepts the streams of the peer up to this one first."""
        until = None if timeout is None else time.monotonic() + timeout
        receiver = self._receiver(stream, until)
        return None if receiver is None else receiver.recv(_left(until))

    def recv_into(self, buffer: Buffer, stream: int = 0, timeout: float | None = None) -> tuple[int, Segment] | None:
        """As ``StreamReceiver.recv_into``; accepts the streams of the peer up to this one first."""
        until = None if timeout is None else time.monotonic() + timeout
        receiver = self._receiver(stream, until)
        return None if receiver is None else receiver.recv_into(buffer, _left(until))

    def _receiver(self, stream: int, until: float | None) -> StreamReceiver | None:
        with self._accepting:
            while stream not in self._receivers:
                accepted = self.accept_stream(_left(until))
                if accepted is None:
                    return None
                self._receivers[accepted.stream] = accepted
            return self._receivers[stream]

    def set_rate(self, rate: float | Literal["auto", "unpaced"], congestion: str | None = None) -> None:
        """The rate of our direction from now on, as the settings ``rate`` and ``congestion`` of an endpoint."""
        self._open.set_rate(rate, congestion)

    def set_class(self, class_: int, timeout: float | None = None) -> None:
        """Change the class of our direction (0 to 7), and wait until it is in force. An interrupted change goes on."""
        self._open.set_class(class_).wait(timeout)

    @property
    def rate(self) -> int | None:
        """The rate in force in our direction, in bit/s of whole IP packets; ``None`` when unpaced."""
        return self._open.rate

    def rate_changed(self, timeout: float | None = None) -> int:
        """Wait until the rate has changed by more than 5 %; the rate in bit/s. An encoder should follow it."""
        return cast(int, self._open.rate_changed().wait(timeout))

    def stream_statistics(self, stream: int = 0) -> dict[str, Any]:
        """The statistics of one stream of ours so far; all zero where there is none."""
        return cast("dict[str, Any]", json.loads(self._open.stream_statistics(stream)))

    def statistics(self) -> dict[str, Any]:
        """The statistics so far; ``docs/OBSERVING.md`` says what each is. What is not known is ``None``."""
        return cast("dict[str, Any]", json.loads(self._open.statistics()))

    def has_unjudged(self) -> bool:
        """Whether any segment of ours has no verdict yet."""
        return self._open.has_unjudged()

    def close(self, code: int = 0, detail: str = "done", timeout: float | None = None) -> None:
        """Finish every stream, wait until every segment is judged and the peer has confirmed the end, and close the handle.

        A second call does nothing.
        """
        native = self._native
        if native is None:
            return
        try:
            native.close(code, detail).wait(timeout)
        finally:
            self._native = None
            endpoint, self._endpoint = self._endpoint, None
        if endpoint is not None:
            endpoint.close(timeout)

    def abort(self, code: int = 1, detail: str = "aborted") -> None:
        """End the connection at once; segments without a verdict are *unknown*."""
        self._open.abort(code, detail)
        self._native = None
        self._endpoint = None

    def closed(self, timeout: float | None = None) -> str:
        """Wait until the connection has ended; the reason as a sentence."""
        return cast(str, self._open.closed().wait(timeout))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        elif self._native is not None:
            self.abort(1, f"the application failed: {kind.__name__}")


class Endpoint(EndpointHandle):
    """A socket with its connections. Iterating accepts connections. Leaving a ``with`` block closes it."""

    def connect(
        self,
        address: str,
        fingerprint: str | None = None,
        *,
        certified: str | None = None,
        anyone: bool = False,
        streams: Iterable[Contract] | None = None,
        timeout: float | None = None,
    ) -> Connection:
        """Connect to the peer at ``HOST:PORT`` whose key has this fingerprint, and open these streams (default one).

        ``certified`` is the name of a peer that a certificate authority has certified. ``anyone=True`` accepts any key.
        """
        contracts = [Contract()] if streams is None else list(streams)
        return Connection(self._open.connect(address, fingerprint, certified, anyone, contracts).wait(timeout))

    def accept(self, timeout: float | None = None) -> Connection:
        """Wait for the next connection of a peer."""
        return Connection(self._open.accept().wait(timeout))

    def close(self, timeout: float | None = None) -> None:
        """Close every connection gracefully, and the socket. A second call does nothing."""
        native, self._native = self._native, None
        if native is not None:
            native.close().wait(timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        self._native = None

    def __iter__(self) -> Iterator[Connection]:
        while True:
            yield self.accept()


def _left(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic())


def bind(address: str = "0.0.0.0:0", **settings: Unpack[Settings]) -> Endpoint:
    """An endpoint that only connects."""
    return Endpoint(_native.Endpoint(address, False, completed(settings)))


def listen(address: str, **settings: Unpack[Settings]) -> Endpoint:
    """An endpoint that also accepts connections, on ``HOST:PORT``; port 0 is any free port.

    It must be told whom it serves: ``allow=[fingerprint]``, ``allow_anyone=True`` or ``insecure=True``.
    """
    return Endpoint(_native.Endpoint(address, True, completed(settings)))


def listen_shards(address: str, count: int, **settings: Unpack[Settings]) -> list[Endpoint]:
    """So many endpoints that accept connections on one port, each with a task of its own. A connection stays with one of them.

    They have one identity and one clock; limits are for each. The library's threads serve them in parallel.
    """
    return [Endpoint(shard) for shard in _native.Endpoint.open_shards(address, count, completed(settings))]


def unit_bytes_max(contract: Contract | None = None, stream: int = 0, *, insecure: bool = False) -> int:
    """The largest unit in bytes that fits a datagram of 1200 bytes on a stream under this contract; its unit size is ignored.

    Streams are numbered from 0 in the order of opening. Segments with a tolerance of their own need units of 3 to 12 bytes less.
    """
    return _native.unit_bytes_max(contract or Contract(), stream, insecure)


def connect(
    address: str,
    fingerprint: str | None = None,
    *,
    certified: str | None = None,
    anyone: bool = False,
    streams: Iterable[Contract] | None = None,
    timeout: float | None = None,
    **settings: Unpack[Settings],
) -> Connection:
    """A connection with an endpoint of its own, which ``Connection.close`` closes too."""
    endpoint = bind("[::]:0" if address.startswith("[") else "0.0.0.0:0", **settings)
    connection = endpoint.connect(
        address, fingerprint, certified=certified, anyone=anyone, streams=streams, timeout=timeout
    )
    connection._endpoint = endpoint
    return connection
