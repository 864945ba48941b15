"""The interface for asyncio."""

import asyncio

import numpy as np
import pytest
import segstream
from conftest import PATIENCE
from segstream import aio


def ends(test):
    """Runs a test on both ends of a connection."""

    async def run() -> None:
        async with aio.listen("127.0.0.1:0", allow_anyone=True) as endpoint:
            contract = segstream.Contract(dtype="u2", shape=(-1,))
            sender, receiver = await asyncio.gather(
                aio.connect(endpoint.address, endpoint.fingerprint, streams=[contract]), endpoint.accept()
            )
            stream = await receiver.accept_stream()
            try:
                await test(sender, stream)
            finally:
                for end in (sender, receiver):
                    if not end.is_closed:
                        end.abort()

    def runner() -> None:
        asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE))

    runner.__name__ = test.__name__
    return runner


@ends
async def test_an_array_arrives_and_both_ends_hear_the_verdict(sender, stream):
    sent = np.arange(10_000, dtype="u2")
    number = await sender.senders[0].send(sent)
    segment = await stream.recv()
    np.testing.assert_array_equal(segment.array, sent)
    assert (await sender.senders[0].verdict(number)).verdict == "complete"


@ends
async def test_a_cancelled_recv_loses_nothing(sender, stream):
    for at in range(200):
        waiting = asyncio.create_task(stream.recv())
        await asyncio.sleep(0)
        await sender.senders[0].send(np.full(3, at, "u2"))
        if at % 3 == 1:
            await asyncio.sleep(0.001)
        waiting.cancel()
        try:
            segment = await waiting
        except asyncio.CancelledError:
            segment = await stream.recv()
        assert segment.segment == at and segment.array[0] == at


@ends
async def test_many_tasks_wait_at_once(sender, stream):
    waiting = [asyncio.create_task(stream.recv()) for _ in range(50)]
    numbers = await sender.senders[0].send_many([np.full(2, at, "u2") for at in range(50)])
    segments = await asyncio.gather(*waiting)
    assert sorted(segment.segment for segment in segments) == numbers
    verdicts = [await sender.senders[0].verdict(number) for number in numbers]
    assert all(judged.is_met for judged in verdicts)


@ends
async def test_an_open_segment_is_read_while_it_is_written(sender, stream):
    async with await sender.senders[0].open_segment() as writer:
        await writer.append(bytes(2048))
        assert isinstance(await stream.next_units(), segstream.Units)
    while isinstance(item := await stream.next_units(), segstream.Units):
        pass
    assert item.nbytes == 2048


@ends
async def test_iterating_ends_with_the_stream(sender, stream):
    await sender.senders[0].send_many([np.full(1, at, "u2") for at in range(5)])
    sender.senders[0].finish()
    assert [int(segment.array[0]) async for segment in stream] == [0, 1, 2, 3, 4]


@ends
async def test_errors_are_the_same_exceptions(sender, stream):
    with pytest.raises(TypeError):
        await sender.senders[0].send(np.zeros(3, "f4"))
    with pytest.raises(segstream.UsageError):
        await sender.senders[0].verdict(77)
    waiting = asyncio.create_task(stream.recv())
    await asyncio.sleep(0.01)
    sender.abort(3, "enough")
    with pytest.raises(segstream.PeerError):
        await waiting
    with pytest.raises(segstream.ClosedError):
        _ = sender.remote


def test_a_graceful_close_delivers_first():
    async def run() -> None:
        async with aio.listen("127.0.0.1:0", allow_anyone=True) as endpoint:

            async def serve() -> list[bytes]:
                stream = await (await endpoint.accept()).accept_stream()
                return [bytes(segment) async for segment in stream]

            serving = asyncio.create_task(serve())
            async with await aio.connect(endpoint.address, endpoint.fingerprint) as connection:
                await connection.senders[0].send_many([b"one", b"two"])
            assert await serving == [b"one", b"two"]

    asyncio.run(asyncio.wait_for(run(), 2 * PATIENCE))


def test_confirmations_and_classes_are_awaited():
    async def run() -> None:
        async with aio.listen("127.0.0.1:0", allow_anyone=True, confirms=True) as endpoint:
            connecting = asyncio.ensure_future(aio.connect(endpoint.address, endpoint.fingerprint))
            receiver = await endpoint.accept()
            sender = await connecting
            await sender.senders[0].send(b"segment")
            incoming = await receiver.accept_stream()
            await incoming.recv()
            waiting = asyncio.ensure_future(incoming.recv())
            incoming.confirm(1)
            assert await sender.senders[0].confirmed(1) == segstream.Durable(1, False)
            await sender.set_class(3)
            assert sender.statistics()["class"] == 3
            waiting.cancel()
            sender.abort()

    asyncio.run(asyncio.wait_for(run(), PATIENCE))
