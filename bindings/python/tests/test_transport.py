"""Segments from one end to the other: bytes, arrays, verdicts, open segments, many at once."""

import threading
import time

import numpy as np
import pytest
import segstream
from conftest import PATIENCE


def test_bytes_arrive_and_both_ends_hear_the_verdict(pair):
    ends = pair()
    number = ends.sender.send(b"a segment")
    segment = ends.stream.recv(PATIENCE)
    assert bytes(segment) == b"a segment"
    assert (segment.stream, segment.segment, segment.verdict, segment.holes) == (0, number, "complete", [])
    judged = ends.sender.verdict(number, timeout=PATIENCE)
    assert (judged.segment, judged.verdict, judged.holes, judged.missing) == (number, "complete", [], 0)


@pytest.mark.parametrize("dtype", ["?", "u1", "i2", ">u2", "u4", "i8", "f2", "f4", "<f8", "c8", "c16"])
def test_an_array_arrives_with_dtype_and_shape(pair, dtype):
    ends = pair(dtype=dtype, shape=(3, 64, 5), label="camera")
    sent = np.arange(3 * 64 * 5).reshape(3, 64, 5).astype(dtype)
    ends.sender.send(sent)
    segment = ends.stream.recv(PATIENCE)
    assert ends.stream.contract.label == "camera"
    assert segment.array.dtype == np.dtype(dtype) and segment.array.shape == (3, 64, 5)
    np.testing.assert_array_equal(segment.array, sent)
    np.testing.assert_array_equal(np.asarray(segment), sent)
    assert not segment.mask.any() and segment.masked().mask is np.ma.nomask


def test_a_first_length_of_minus_one_is_any(pair):
    ends = pair(dtype="f4", shape=(-1, 4))
    for rows in (0, 1, 7):
        ends.sender.send(np.full((rows, 4), rows, "f4"))
        assert ends.stream.recv(PATIENCE).array.shape == (rows, 4)


def test_the_array_is_the_memory_of_the_segment_and_read_only(pair):
    ends = pair(dtype="u1")
    ends.sender.send(np.ones(100_000, "u1"))
    segment = ends.stream.recv(PATIENCE)
    first, second = segment.array, np.asarray(segment)
    assert np.shares_memory(first, second)
    assert first.__array_interface__["data"][0] == np.frombuffer(memoryview(segment), "u1").__array_interface__["data"][0]
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 2
    # The array keeps the memory.
    del segment, second
    assert first.sum() == 100_000


def test_writable_memory_is_copied_and_can_be_used_again_at_once(pair):
    ends = pair()
    buffer = bytearray(b"1" * 100_000)
    number = ends.sender.send(buffer)
    buffer[:] = b"2" * 100_000
    buffer.append(0)  # A held buffer could not be resized.
    assert bytes(ends.stream.recv(PATIENCE)) == b"1" * 100_000
    assert ends.sender.verdict(number, timeout=PATIENCE).is_met


def test_borrowed_memory_is_held_until_the_verdict_and_then_released(pair):
    ends = pair()
    buffer = bytearray(100_000)
    number = ends.sender.send(buffer, borrow=True)
    with pytest.raises(BufferError):
        buffer.append(0)
    assert len(ends.stream.recv(PATIENCE)) == 100_000
    assert ends.sender.verdict(number, timeout=PATIENCE).is_met
    until = time.monotonic() + PATIENCE
    while True:
        try:
            buffer.append(0)
            break
        except BufferError:
            # The release is a pending call of the interpreter.
            assert time.monotonic() < until
            time.sleep(0.01)


def test_recv_into_copies_into_memory_of_the_caller(pair):
    ends = pair(dtype="u2", shape=(100,))
    sent = np.arange(100, dtype="u2")
    ends.sender.send(sent)
    target = np.zeros((2, 100), "u2")
    length, segment = ends.stream.recv_into(target, PATIENCE)
    assert (length, segment.verdict) == (200, "complete")
    np.testing.assert_array_equal(target, [sent, np.zeros(100)])


def test_a_segment_that_does_not_fit_the_buffer_is_not_lost(pair):
    ends = pair()
    ends.sender.send(b"four")
    with pytest.raises(ValueError, match="4 bytes and the buffer 3"):
        ends.stream.recv_into(bytearray(3), PATIENCE)
    with pytest.raises(BufferError, match="read-only"):
        ends.stream.recv_into(bytes(4), PATIENCE)
    assert bytes(ends.stream.recv(PATIENCE)) == b"four"


def test_many_small_segments_go_and_come_in_batches(pair):
    ends = pair()
    sent = [bytes([at % 251]) * (at % 200) for at in range(5000)]
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.extend(ends.sender.senders[0].send_many(sent)))
    thread.start()
    got: list[bytes] = []
    while len(got) < len(sent):
        got.extend(bytes(segment) for segment in ends.stream.recv_many(timeout=PATIENCE))
    thread.join()
    assert got == sent and numbers == list(range(5000))


def test_an_open_segment_is_read_while_it_is_written(pair):
    ends = pair(unit_bytes=1000)
    with ends.sender.senders[0].open_segment() as writer:
        assert writer.append(b"a" * 1000) is None
        units = ends.stream.next_units(PATIENCE)
        assert isinstance(units, segstream.Units)
        assert (units.segment, units.units, units.offset, bytes(units)) == (0, range(0, 1), 0, b"a" * 1000)
        assert writer.append(b"b" * 500) is None
    rest = ends.stream.next_units(PATIENCE)
    assert (rest.units, rest.offset, bytes(rest)) == (range(1, 2), 1000, b"b" * 500)
    segment = ends.stream.next_units(PATIENCE)
    assert isinstance(segment, segstream.Segment) and bytes(segment) == b"a" * 1000 + b"b" * 500


def test_a_stream_ends_and_iterating_ends_with_it(pair):
    ends = pair()
    for at in range(3):
        ends.sender.send(bytes([at]))
    ends.sender.senders[0].finish()
    assert [bytes(segment) for segment in ends.stream] == [b"\0", b"\1", b"\2"]
    assert [judged.segment for judged in ends.sender.senders[0].verdicts()] == [0, 1, 2]
    assert ends.stream.recv(PATIENCE) is None


def test_streams_go_both_ways_and_recv_of_a_connection_accepts_them(pair):
    ends = pair()
    answer = ends.receiver.open_stream(segstream.Contract(label="answers"))
    answer.send(b"answer")
    assert bytes(ends.sender.recv(answer.stream, PATIENCE)) == b"answer"


def test_a_timeout_is_told_and_loses_nothing(pair):
    ends = pair()
    began = time.monotonic()
    with pytest.raises(segstream.TimedOutError) as caught:
        ends.stream.recv(timeout=0.2)
    assert time.monotonic() - began >= 0.2
    assert isinstance(caught.value, TimeoutError) and caught.value.fault == "nobody"
    ends.sender.send(b"late")
    assert bytes(ends.stream.recv(PATIENCE)) == b"late"


def test_other_threads_run_while_one_waits(pair):
    ends = pair()
    waiting = threading.Thread(target=lambda: ends.stream.recv(PATIENCE))
    waiting.start()
    # If the wait held the GIL, this thread would not come to send what ends it.
    ends.sender.send(b"x")
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


def test_threads_at_once_share_a_stream_and_each_segment_goes_to_one(pair):
    ends = pair()
    count, got, lock = 400, [], threading.Lock()

    def receive() -> None:
        while (segment := ends.stream.recv(PATIENCE)) is not None:
            with lock:
                got.append(bytes(segment))

    def send(first: int) -> None:
        for at in range(first, count, 4):
            ends.sender.send(at.to_bytes(4, "big"))

    receivers = [threading.Thread(target=receive) for _ in range(3)]
    senders = [threading.Thread(target=send, args=(first,)) for first in range(4)]
    for thread in receivers + senders:
        thread.start()
    for thread in senders:
        thread.join()
    ends.sender.senders[0].finish()
    for thread in receivers:
        thread.join(PATIENCE)
    assert sorted(got) == [at.to_bytes(4, "big") for at in range(count)]


def test_plain_mode_and_settings_with_the_names_of_the_library():
    settings = {"insecure": True, "rate": 50e6, "idle_timeout": 5.0, "datagram_bytes": 1200}
    with segstream.listen("127.0.0.1:0", **settings) as endpoint:
        assert endpoint.fingerprint is None
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(endpoint.accept(PATIENCE)))
        thread.start()
        with segstream.connect(endpoint.address, **settings) as sender:
            thread.join()
            assert sender.rate == 50_000_000
            sender.send(b"plain")
            assert bytes(accepted[0].recv(timeout=PATIENCE)) == b"plain"
            statistics = sender.statistics()
            assert statistics["datagram_bytes"] == 1200 and statistics["shipments_sent"] > 0


def test_the_peer_is_who_its_fingerprint_says(tmp_path):
    ours = segstream.identity(tmp_path / "key.pem")
    assert ours == segstream.identity(tmp_path / "key.pem")
    with segstream.listen("127.0.0.1:0", allow=[ours]) as endpoint:
        accepted = []
        thread = threading.Thread(target=lambda: accepted.append(endpoint.accept(PATIENCE)))
        thread.start()
        with segstream.connect(endpoint.address, endpoint.fingerprint, identity=tmp_path / "key.pem") as connection:
            thread.join()
            assert connection.peer_fingerprint == endpoint.fingerprint
            assert accepted[0].peer_fingerprint == ours
        with pytest.raises(segstream.PeerError) as caught:
            segstream.connect(endpoint.address, ours)
        assert caught.value.fault == "peer"
