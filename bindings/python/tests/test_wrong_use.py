"""Wrong use gets an exception that says whose fault it is, and never an abort."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import segstream
from conftest import PATIENCE


def test_what_has_no_buffer_is_a_type_error(pair):
    with pytest.raises(TypeError, match="'int' has no buffer"):
        pair().sender.send(7)


def test_memory_that_is_not_contiguous_is_a_buffer_error(pair):
    with pytest.raises(BufferError, match="ascontiguousarray"):
        pair().sender.send(np.zeros((100, 100))[:, ::2])


@pytest.mark.parametrize("wrong", [np.zeros(8, "i2"), np.zeros(8, ">u2"), np.zeros(16, "u1"), np.zeros(8, "f2")])
def test_another_dtype_than_the_streams_is_a_type_error(pair, wrong):
    ends = pair(dtype="<u2", shape=(8,))
    with pytest.raises(TypeError, match="dtype '<u2'"):
        ends.sender.send(wrong)
    ends.sender.send(np.ones(8, "u2"))
    assert ends.stream.recv(PATIENCE).array.sum() == 8


def test_another_length_than_the_shapes_is_a_value_error(pair):
    with pytest.raises(ValueError, match="no array"):
        pair(dtype="u2", shape=(8,)).sender.send(np.zeros(9, "u2"))


@pytest.mark.parametrize("dtype", ["O", "U3", "M8[s]", [("a", "i4")]])
def test_a_dtype_that_cannot_travel_is_a_type_error(dtype):
    with pytest.raises(TypeError, match="do not travel"):
        segstream.Contract(dtype=dtype)


@pytest.mark.parametrize(
    "contract",
    [
        {"unit_bytes": 0},
        {"unit_bytes": 5000},
        {"tolerance": (4, 5, 1)},
        {"tolerance": "five"},
        {"order": "random"},
        {"lifetime": -1.0},
        {"lifetime": float("nan")},
        {"interleave": "maybe"},
        {"weight": 0},
        {"label": "x" * 600},
        {"shape": (3,)},
        {"dtype": "u2", "shape": (3, -1)},
        {"dtype": "u2", "shape": (2**62, 2**62)},
    ],
)
def test_a_contract_that_contradicts_itself_is_refused(contract):
    with pytest.raises(ValueError) as caught:
        segstream.Contract(**contract)
    assert isinstance(caught.value, segstream.UsageError) and caught.value.fault == "caller"


def test_settings_that_are_wrong_are_refused():
    with pytest.raises(segstream.UsageError, match="serve nobody"):
        segstream.listen("127.0.0.1:0")
    with pytest.raises(TypeError, match="unknown settings"):
        segstream.listen("127.0.0.1:0", alow_anyone=True)
    with pytest.raises(segstream.UsageError, match="no address"):
        segstream.listen("nowhere", insecure=True)
    with pytest.raises(segstream.UsageError, match="rate"):
        segstream.bind(rate=-1)


def test_an_address_in_use_is_the_systems_fault():
    with segstream.listen("127.0.0.1:0", insecure=True) as endpoint, pytest.raises(OSError) as caught:
        segstream.listen(endpoint.address, insecure=True)
    assert isinstance(caught.value, segstream.SystemFaultError)


def test_nobody_there_is_the_paths_fault():
    with pytest.raises(segstream.PathError) as caught:
        segstream.connect("127.0.0.1:9", anyone=True, connect_timeout=1.0)
    assert caught.value.fault == "path" and isinstance(caught.value, ConnectionError)


def test_closed_handles_say_so(pair):
    ends = pair()
    sender = ends.sender.senders[0]
    thread = threading.Thread(target=lambda: ends.receiver.closed(PATIENCE))
    thread.start()
    ends.sender.close(timeout=PATIENCE)
    thread.join()
    ends.sender.close()
    for call in (lambda: ends.sender.send(b"x"), lambda: ends.sender.remote, lambda: ends.sender.recv()):
        with pytest.raises(segstream.ClosedError):
            call()
    with pytest.raises(segstream.Error):
        sender.send(b"x")
    endpoint = segstream.bind()
    endpoint.close()
    endpoint.close()
    with pytest.raises(segstream.ClosedError):
        endpoint.connect("127.0.0.1:1")


def test_a_peer_that_aborts_is_told_as_the_peers_fault(pair):
    ends = pair()
    ends.sender.abort(7, "enough")
    with pytest.raises(segstream.PeerError, match=r"enough \(code 7\)"):
        ends.stream.recv(PATIENCE)


def test_a_verdict_is_told_once_and_unknown_segments_are_refused(pair):
    ends = pair()
    number = ends.sender.send(b"x")
    assert ends.sender.verdict(number, timeout=PATIENCE).is_met
    for wrong in (number, 99):
        with pytest.raises(segstream.UsageError, match="no such segment"):
            ends.sender.verdict(wrong, timeout=PATIENCE)


def test_handles_cannot_be_pickled(pair):
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(pair().sender)


def test_ctrl_c_interrupts_a_wait(pair):
    ends = pair()
    # A process that was started in the background ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        ends.stream.recv(PATIENCE)
    ends.sender.send(b"after")
    assert bytes(ends.stream.recv(PATIENCE)) == b"after"


def test_a_child_of_a_fork_gets_an_exception_and_ends(pair):
    ends = pair()
    held = bytes(100_000)
    ends.sender.send(held)
    segment = ends.stream.recv(PATIENCE)
    context = multiprocessing.get_context("fork")
    results = context.Queue()

    def child() -> None:
        for call in (
            lambda: ends.sender.send(b"x"),
            lambda: ends.stream.recv(1.0),
            lambda: segment.verdict,
            lambda: segstream.bind(),
        ):
            try:
                call()
                results.put("nothing")
            except segstream.ForkedError as error:
                results.put(error.fault)

    process = context.Process(target=child)
    process.start()
    assert [results.get(timeout=PATIENCE) for _ in range(4)] == ["caller"] * 4
    process.join(PATIENCE)
    assert process.exitcode == 0
    ends.sender.send(b"the parent goes on")
    assert len(ends.stream.recv(PATIENCE)) == 18


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=4 * PATIENCE
    )


AT_EXIT = """
    import threading, time, segstream
    endpoint = segstream.listen("127.0.0.1:0", allow_anyone=True)
    accepted = []
    def accept():
        accepted.append(endpoint.accept())
    thread = threading.Thread(target=accept); thread.start()
    sender = segstream.connect(endpoint.address, endpoint.fingerprint)
    thread.join()
    stream = accepted[0].accept_stream()
"""


@pytest.mark.parametrize(
    "at_exit",
    [
        # Daemon threads wait, in every kind of call.
        "for wait in (stream.recv, endpoint.accept, accepted[0].closed, sender.rate_changed):\n"
        "        threading.Thread(target=wait, daemon=True).start()\n"
        "    time.sleep(0.3)",
        # A daemon thread sends and another receives without a pause.
        "def send():\n"
        "        while True: sender.send(bytes(50_000))\n"
        "    def receive():\n"
        "        while True: stream.recv()\n"
        "    threading.Thread(target=send, daemon=True).start()\n"
        "    threading.Thread(target=receive, daemon=True).start()\n"
        "    time.sleep(0.5)",
        # Borrowed memory is in flight.
        "sender.send(bytearray(1_000_000), borrow=True)",
        # An object that is dropped by the interpreter's end, with one thread that was never told.
        "import sys; sys.kept = [stream, sender, endpoint, sender.senders[0].open_segment()]",
        "raise SystemExit(0)",
    ],
)
def test_the_interpreter_ends_while_the_library_runs(at_exit):
    ended = run(AT_EXIT + "    " + at_exit)
    errors = ended.stderr.replace("Exception in thread", "")
    assert ended.returncode == 0, ended.stderr
    assert "panicked" not in errors and "Fatal" not in errors and "FATAL" not in errors, ended.stderr


def test_wrong_calls_from_many_threads_at_once_are_exceptions(pair):
    ends = pair()
    wrong = [
        lambda: ends.sender.send(object()),
        lambda: ends.sender.send(b"x", stream=9),
        lambda: ends.sender.send(b"x", tolerance=(0, 0, 0)),
        lambda: ends.sender.send(b"x", source_time=-1.0),
        lambda: ends.sender.senders[0].verdict(2**63),
        lambda: ends.sender.senders[0].verdict(-1),
        lambda: ends.stream.recv(timeout=-1.0),
        lambda: ends.stream.recv(timeout="soon"),
        lambda: ends.sender.send(bytes(100 << 20)),
    ]
    failures: list[object] = []

    def work(call) -> None:
        for _ in range(20):
            try:
                failures.append(call())
            except (segstream.Error, TypeError, ValueError, OverflowError, BufferError):
                pass

    threads = [threading.Thread(target=work, args=(call,)) for call in wrong * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert failures == []
    began = time.monotonic()
    ends.sender.send(b"still here")
    assert bytes(ends.stream.recv(PATIENCE)) == b"still here" and time.monotonic() - began < PATIENCE
