"""Frames with a tolerance over the real emulator: what Python says is what the receiver of the command writes."""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import segstream
from conftest import PATIENCE, program

FRAMES = 60
#: 256 KiB in 1024 units, of which 32 may be missing, no two side by side.
SHAPE = (256, 512)
CONTRACT = segstream.Contract(tolerance=(1024, 32, 1), unit_bytes=256, dtype="u2", shape=SHAPE, label="frames", window_units=32_768)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(*command: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@contextmanager
def lossy(to: str) -> Iterator[str]:
    """The address of a link to ``to`` that loses datagrams."""
    at = f"127.0.0.1:{free_port()}"
    loss = ["--loss", "gilbert:rate=2%,burst=2", "--seed", "7"]
    link = [program("segstream"), "link", "--listen", at, "--to", to, "--bandwidth", "400mbit", "--rtt", "20ms", *loss]
    with running(*link):
        yield at


def frame(number: int) -> np.ndarray:
    return np.arange(1, SHAPE[0] * SHAPE[1] + 1, dtype="u4").reshape(SHAPE).astype("u2") | np.uint16(1 + number % 7)


def stream(to: str) -> list[segstream.Judged]:
    """Sends all frames; their verdicts."""
    with segstream.connect(to, streams=[CONTRACT], insecure=True, rate=200e6, connect_timeout=PATIENCE) as connection:
        sender = connection.senders[0]
        for number in range(FRAMES):
            sender.send(frame(number))
        sender.finish()
        return sorted(sender.verdicts(), key=lambda judged: judged.segment)


def test_both_ends_in_python_agree_and_what_is_missing_is_masked():
    got: list[segstream.Segment] = []
    with segstream.listen("127.0.0.1:0", insecure=True) as endpoint, lossy(endpoint.address) as at:

        def receive() -> None:
            connection = endpoint.accept(PATIENCE)
            got.extend(connection.accept_stream(PATIENCE))

        receiving = threading.Thread(target=receive)
        receiving.start()
        verdicts = stream(at)
        receiving.join(PATIENCE)
    assert [segment.segment for segment in got] == list(range(FRAMES))
    assert sum(segment.missing for segment in got) > 100
    for segment, judged in zip(got, verdicts, strict=True):
        assert (segment.verdict, segment.holes) == (judged.verdict, judged.holes)
        assert segment.is_met and segment.missing <= 32 and all(len(hole) == 1 for hole in segment.holes)
        sent = frame(segment.segment)
        # A unit is 128 elements.
        np.testing.assert_array_equal(segment.mask.reshape(-1, 128).all(axis=1), segment.unit_mask)
        np.testing.assert_array_equal(segment.mask.reshape(-1, 128).any(axis=1), segment.unit_mask)
        np.testing.assert_array_equal(segment.array[~segment.mask], sent[~segment.mask])
        assert not segment.array[segment.mask].any() and sent[segment.mask].all()
        masked = segment.masked()
        assert masked.count() == sent.size - 128 * segment.missing
        if segment.missing:
            assert masked.sum() == sent[~segment.mask].sum()


def test_the_receiver_of_the_command_writes_the_same_verdicts_and_holes(tmp_path):
    lines, at = tmp_path / "segments.json", f"127.0.0.1:{free_port()}"
    command = [program("segstream"), "recv", "--listen", at, "--out", tmp_path / "out", "--segments-json", lines, "--insecure"]
    with running(*command) as receiver, lossy(at) as through:
        verdicts = stream(through)
        receiver.wait(PATIENCE)
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(written) == len(verdicts) == FRAMES
    assert sum(judged.missing for judged in verdicts) > 100
    for line, judged in zip(sorted(written, key=lambda line: line["segment"]), verdicts, strict=True):
        holes = [unit for hole in judged.holes for unit in hole]
        assert (line["segment"], line["verdict"], line["holes"]) == (judged.segment, judged.verdict, holes)


def test_memory_stays_within_windows_and_two_arrays():
    """Ten windows of 4 MiB arrays: resident memory grows by no more than three windows and two arrays."""
    size, window = 4 << 20, 16 << 20

    def resident() -> int:
        fields = Path("/proc/self/statm")
        if not fields.exists():
            pytest.skip("there is no /proc here")
        return int(fields.read_text().split()[1]) * 4096

    contract = segstream.Contract(dtype="u1", shape=(size,), window_units=window // 1024)
    array = np.ones(size, "u1")
    array.flags.writeable = False
    with segstream.listen("127.0.0.1:0", insecure=True) as endpoint:

        def receive() -> None:
            for segment in endpoint.accept(PATIENCE).accept_stream(PATIENCE):
                assert segment.array[0] == 1

        receiving = threading.Thread(target=receive)
        receiving.start()
        with segstream.connect(endpoint.address, streams=[contract], insecure=True, connect_timeout=PATIENCE) as connection:
            sender = connection.senders[0]
            sender.send(array)
            assert sender.next_verdict(PATIENCE).is_met
            before = resident()
            for _ in range(40):
                sender.send(array)
                while connection.has_unjudged() and (judged := _judged(sender)) is not None:
                    assert judged.is_met
            sender.finish()
        receiving.join(PATIENCE)
        assert resident() - before <= 3 * window + 2 * size


def _judged(sender: segstream.StreamSender) -> segstream.Judged | None:
    try:
        return sender.next_verdict(0.0)
    except segstream.TimedOutError:
        return None
