"""The interface for asyncio: the names of the blocking one, with ``await``.

Operations run on the library's threads; the event loop is told by a file descriptor, so that it needs no thread of its own.
A cancelled ``recv`` loses nothing: what it would have returned is returned by the next one.
"""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, cast

from . import _native
from ._blocking import BATCH
from ._endpoint import EndpointHandle
from ._handle import Handle
from ._native import Contract, Judged, Operation, Segment, Units
from ._settings import Settings, completed
from ._values import Durable

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._native import Tolerance, Verdict

__all__ = ["Connection", "Endpoint", "SegmentWriter", "StreamReceiver", "StreamSender", "bind", "connect", "listen", "listen_shards"]

#: What is done with a result that a cancelled wait will not return.
Lost = Callable[[Any], None]


class _Mail:
    """The operations that one event loop waits for."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.box = _native.Mailbox()
        self.waiting: dict[int, tuple[asyncio.Future[Any], Lost | None]] = {}
        loop.add_reader(self.box.fileno(), self.deliver)

    async def wait(self, operation: Operation, lost: Lost | None) -> Any:
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        token = self.box.start(operation)
        self.waiting[token] = future, lost
        try:
            return await future
        except asyncio.CancelledError:
            if self.waiting.pop(token, None) is not None:
                self.box.cancel(token)
            elif lost is not None and not future.cancelled() and future.exception() is None:
                # The result and the cancellation have come in one turn of the loop.
                lost(future.result())
            raise

    def deliver(self) -> None:
        for token, value, failed in self.box.drain():
            future, lost = self.waiting.pop(token, (None, None))
            if future is None:
                continue
            if future.done():
                if lost is not None and not failed:
                    lost(value)
            elif failed:
                future.set_exception(value)
            else:
                future.set_result(value)


_MAIL: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Mail] = weakref.WeakKeyDictionary()


async def _wait(operation: Operation, lost: Lost | None = None) -> Any:
    loop = asyncio.get_running_loop()
    mail = _MAIL.get(loop)
    if mail is None:
        mail = _MAIL[loop] = _Mail(loop)
    return await mail.wait(operation, lost)


class SegmentWriter(Handle[_native.Writer]):
    """As :class:`segstream.SegmentWriter`; leaving an ``async with`` block finishes the segment."""

    @property
    def segment(self) -> int:
        """The segment's number on its stream."""
        return self._open.segment

    async def append(self, buffer: Buffer) -> Verdict | None:
        """Append the bytes of a buffer; wait while the send buffer is full. A verdict if they were not accepted."""
        return cast("Verdict | None", await _wait(self._open.append(buffer)))

    async def finish(self) -> int:
        """End the segment; its number."""
        return cast(int, await _wait(self._open.finish()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.finish()
        self._native = None


class StreamSender(Handle[_native.Sender]):
    """As :class:`segstream.StreamSender`."""

    @property
    def stream(self) -> int:
        """The stream's number at both ends."""
        return self._open.stream

    @property
    def contract(self) -> Contract:
        """What was agreed for the stream."""
        return self._open.contract

    async def send(
        self,
        buffer: Buffer,
        *,
        source_time: float | None = None,
        tolerance: Tolerance | None = None,
        borrow: bool = False,
    ) -> int:
        """Send one segment; its number. Waits while the send buffer is full; a cancelled call has sent it or not."""
        return cast(int, await _wait(self._open.send(buffer, source_time, tolerance, borrow)))

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

    async def send_many(self, buffers: Iterable[Buffer], *, borrow: bool = False) -> list[int]:
        """Send a segment for each buffer; their numbers. If it is cancelled, the first of them have been sent."""
        return cast("list[int]", await _wait(self._open.send_many(buffers, borrow)))

    async def verdict(self, segment: int) -> Judged:
        """Wait for the verdict on a segment. Each is returned once."""
        return cast(Judged, await _wait(self._open.verdict(segment)))

    async def next_verdict(self) -> Judged | None:
        """Wait for the next verdict; ``None`` when no more will come."""
        return cast("Judged | None", await _wait(self._open.next_verdict()))

    async def open_segment(
        self, *, source_time: float | None = None, tolerance: Tolerance | None = None
    ) -> SegmentWriter:
        """Open a segment whose length is not known yet."""
        return SegmentWriter(await _wait(self._open.open_segment(source_time, tolerance)))

    def set_drop_oldest(self, drops_oldest: bool) -> None:
        """For live media: a full send buffer drops its oldest segment of which nothing was sent."""
        self._open.set_drop_oldest(drops_oldest)

    def finish(self) -> None:
        """No more segments will be sent. Verdicts still arrive."""
        self._open.finish()

    def durable(self) -> Durable:
        """What the peer's application has confirmed so far. Raises ``PeerError`` if it confirms nothing."""
        return Durable(*self._open.durable())

    async def confirmed(self, segments: int) -> Durable:
        """Wait until the peer's application has confirmed all segments below ``segments``, or will confirm no more."""
        return Durable(*(await _wait(self._open.confirmed(segments))))


class StreamReceiver(Handle[_native.Receiver]):
    """As :class:`segstream.StreamReceiver`. ``async for`` returns its segments until it ends."""

    @property
    def stream(self) -> int:
        """The stream's number at both ends."""
        return self._open.stream

    @property
    def contract(self) -> Contract:
        """The peer's contract, with the dtype and shape that its label carries."""
        return self._open.contract

    def _put_back(self, result: Segment | list[Segment] | Units | None) -> None:
        native = self._native
        if native is None or isinstance(result, Units) or result is None:
            return
        for segment in reversed(result if isinstance(result, list) else [result]):
            native.put_back(segment)

    async def recv(self) -> Segment | None:
        """Wait for the next judged segment; ``None`` when the stream has ended."""
        return cast("Segment | None", await _wait(self._open.recv(), self._put_back))

    async def recv_many(self, most: int = BATCH) -> list[Segment]:
        """Wait for one segment and return it with those that are there. Empty when the stream has ended."""
        return cast("list[Segment]", await _wait(self._open.recv_many(most), self._put_back))

    async def next_units(self) -> Units | Segment | None:
        """Wait for units that have arrived, or for a judged segment. Units of a cancelled wait come with their segment."""
        return cast("Units | Segment | None", await _wait(self._open.next_units(), self._put_back))

    def confirm(self, segments: int) -> None:
        """Tell the peer that all segments below ``segments`` are safe with this application.

        The endpoint's setting ``confirms`` must be on. Another task may wait in ``recv`` meanwhile.
        """
        self._open.confirm(segments)

    def confirm_no_more(self) -> None:
        """Tell the peer that no more will be confirmed."""
        self._open.confirm_no_more()

    def close(self) -> None:
        """Discard what still arrives on the stream."""
        self._native = None

    async def __aiter__(self) -> AsyncIterator[Segment]:
        while (segment := await self.recv()) is not None:
            yield segment


class Connection(Handle[_native.Connection]):
    """As :class:`segstream.Connection`; leaving an ``async with`` block closes it gracefully."""

    __slots__ = ("_endpoint", "_senders")

    def __init__(self, native: _native.Connection, endpoint: Endpoint | None = None) -> None:
        super().__init__(native)
        self._endpoint = endpoint
        self._senders = [StreamSender(sender) for sender in native.senders]

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
        return list(self._senders)

    async def open_stream(self, contract: Contract | None = None) -> StreamSender:
        """Open a stream of ours; wait while as many are live as the peer allows."""
        return StreamSender(await _wait(self._open.open_stream(contract or Contract())))

    async def accept_stream(self) -> StreamReceiver | None:
        """Wait for the next stream that the peer opens; ``None`` if the connection was closed gracefully."""
        native = await _wait(self._open.accept_stream())
        return None if native is None else StreamReceiver(native)

    def set_rate(self, rate: float | Literal["auto", "unpaced"], congestion: str | None = None) -> None:
        """The rate of our direction from now on, as the settings ``rate`` and ``congestion`` of an endpoint."""
        self._open.set_rate(rate, congestion)

    async def set_class(self, class_: int) -> None:
        """Change the class of our direction (0 to 7), and wait until it is in force. An interrupted change goes on."""
        await _wait(self._open.set_class(class_))

    @property
    def rate(self) -> int | None:
        """The rate in force in our direction in bit/s; ``None`` when unpaced."""
        return self._open.rate

    async def rate_changed(self) -> int:
        """Wait until the rate has changed by more than 5 %; the rate in bit/s."""
        return cast(int, await _wait(self._open.rate_changed()))

    def stream_statistics(self, stream: int = 0) -> dict[str, Any]:
        """The statistics of one stream of ours so far; all zero where there is none."""
        return cast("dict[str, Any]", json.loads(self._open.stream_statistics(stream)))

    def statistics(self) -> dict[str, Any]:
        """The statistics so far."""
        return cast("dict[str, Any]", json.loads(self._open.statistics()))

    async def close(self, code: int = 0, detail: str = "done") -> None:
        """Finish every stream, wait until every segment is judged and the peer has confirmed the end. A second call does nothing."""
        native, endpoint = self._native, self._endpoint
        if native is None:
            return
        try:
            await _wait(native.close(code, detail))
        finally:
            self._native = self._endpoint = None
        if endpoint is not None:
            await endpoint.close()

    def abort(self, code: int = 1, detail: str = "aborted") -> None:
        """End the connection at once; segments without a verdict are *unknown*."""
        self._open.abort(code, detail)
        self._native = self._endpoint = None

    async def closed(self) -> str:
        """Wait until the connection has ended; the reason as a sentence."""
        return cast(str, await _wait(self._open.closed()))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        elif self._native is not None:
            self.abort(1, f"the application failed: {kind.__name__}")


class Endpoint(EndpointHandle):
    """As :class:`segstream.Endpoint`; leaving an ``async with`` block closes it."""

    async def connect(
        self,
        address: str,
        fingerprint: str | None = None,
        *,
        certified: str | None = None,
        anyone: bool = False,
        streams: Iterable[Contract] | None = None,
    ) -> Connection:
        """Connect to a peer and open these streams (default one)."""
        contracts = [Contract()] if streams is None else list(streams)
        return Connection(await _wait(self._open.connect(address, fingerprint, certified, anyone, contracts)))

    async def accept(self) -> Connection:
        """Wait for the next connection of a peer."""
        return Connection(await _wait(self._open.accept()))

    async def close(self) -> None:
        """Close every connection gracefully, and the socket. A second call does nothing."""
        native, self._native = self._native, None
        if native is not None:
            await _wait(native.close())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
        self._native = None


def bind(address: str = "0.0.0.0:0", **settings: Unpack[Settings]) -> Endpoint:
    """An endpoint that only connects."""
    return Endpoint(_native.Endpoint(address, False, completed(settings)))


def listen(address: str, **settings: Unpack[Settings]) -> Endpoint:
    """An endpoint that also accepts connections, on ``HOST:PORT``."""
    return Endpoint(_native.Endpoint(address, True, completed(settings)))


def listen_shards(address: str, count: int, **settings: Unpack[Settings]) -> list[Endpoint]:
    """So many endpoints that accept connections on one port, each with a task of its own. A connection stays with one of them.

    They have one identity and one clock; limits are for each. The library's threads serve them in parallel.
    """
    return [Endpoint(shard) for shard in _native.Endpoint.open_shards(address, count, completed(settings))]


async def connect(
    address: str,
    fingerprint: str | None = None,
    *,
    certified: str | None = None,
    anyone: bool = False,
    streams: Iterable[Contract] | None = None,
    **settings: Unpack[Settings],
) -> Connection:
    """A connection with an endpoint of its own, which ``Connection.close`` closes too."""
    endpoint = bind("[::]:0" if address.startswith("[") else "0.0.0.0:0", **settings)
    connection = await endpoint.connect(address, fingerprint, certified=certified, anyone=anyone, streams=streams)
    connection._endpoint = endpoint
    return connection
