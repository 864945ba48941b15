"""The examples, each against the real library of the other side."""

import importlib
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import segstream
from conftest import PATIENCE, connected

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))


def example(name: str, needs: str):
    """The module of an example, where what it needs is installed."""
    pytest.importorskip(needs)
    return importlib.import_module(name)


@pytest.fixture
def ends():
    """Makes both ends of a connection with one stream."""
    with segstream.listen("127.0.0.1:0", allow_anyone=True) as endpoint:
        made = []

        def make(contract: segstream.Contract):
            sender, receiver = connected(endpoint, streams=[contract])
            made.extend([sender, receiver])
            return sender, receiver.accept_stream(PATIENCE)

        yield make
        for connection in made:
            if not connection.is_closed:
                connection.abort()


def frames(count: int) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    return [generator.integers(0, 1 << 16, (32, 48), "u2") for _ in range(count)]


def in_background(work):
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_a_zarr_store_has_the_frames_the_masks_and_the_verdicts(ends, tmp_path):
    zarr, zarr_store = pytest.importorskip("zarr"), example("zarr_store", "zarr")
    sender, stream = ends(segstream.Contract(dtype="u2", shape=(32, 48), label="camera"))
    sent = frames(4)
    for frame in sent:
        sender.send(frame)
    sender.senders[0].finish()
    assert zarr_store.write(stream, str(tmp_path / "frames.zarr"), 4) == 4
    group = zarr.open_group(tmp_path / "frames.zarr", mode="r", zarr_format=3)
    assert group.attrs["label"] == "camera"
    np.testing.assert_array_equal(group["frames"][:], sent)
    assert not group["missing"][:].any() and (group["verdict"][:] == 0).all()


def test_an_hdf5_file_goes_out_and_comes_back_the_same(tmp_path):
    h5py, hdf5_file = pytest.importorskip("h5py"), example("hdf5_file", "h5py")
    sent = np.array(frames(5))
    with h5py.File(tmp_path / "sent.h5", "w") as file:
        file["frames"] = sent
    with segstream.listen("127.0.0.1:0", insecure=True) as endpoint:
        received = tmp_path / "received.h5"
        writing = in_background(lambda: hdf5_file.write(endpoint.accept(PATIENCE).accept_stream(PATIENCE), str(received)))
        verdicts = hdf5_file.send(endpoint.address, None, str(tmp_path / "sent.h5"), insecure=True)
        writing.join(PATIENCE)
    assert [judged.verdict for judged in verdicts] == ["complete"] * 5
    with h5py.File(received) as file:
        np.testing.assert_array_equal(file["frames"][:], sent)
        assert [len(holes) for holes in file["missing"][:]] == [0] * 5
        assert file["verdict"].asstr()[0] == "complete"


def test_messages_of_zeromq_cross_the_bridge(ends):
    zmq, zeromq = pytest.importorskip("zmq"), example("zeromq", "zmq")
    sender, stream = ends(segstream.Contract())
    context = zmq.Context()
    push_in, pull_in, push_out, pull_out = (context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.PUSH, zmq.PULL))
    into = pull_in.bind_to_random_port("tcp://127.0.0.1")
    out = push_out.bind_to_random_port("tcp://127.0.0.1")
    push_in.connect(f"tcp://127.0.0.1:{into}")
    pull_out.connect(f"tcp://127.0.0.1:{out}")
    messages = [[b"one"], [b"", b"two", bytes(100_000)], [b"three", b"parts", b"here"]]
    try:
        for message in messages:
            push_in.send_multipart(message)
        zeromq.forward(pull_in, sender.senders[0], len(messages))
        sender.senders[0].finish()
        assert zeromq.deliver(stream, push_out) == len(messages)
        for message in messages:
            assert pull_out.poll(1000 * PATIENCE)
            assert pull_out.recv_multipart() == message
    finally:
        context.destroy(linger=0)


def test_an_ntndarray_crosses_from_a_server_to_a_client_bit_for_bit(ends):
    pvaccess = example("pvaccess", "p4p")
    from p4p.client.thread import Context
    from p4p.nt import NTNDArray
    from p4p.server import Server
    from p4p.server.thread import SharedPV

    sender, stream = ends(pvaccess.contract())
    sent = [frame.astype(kind) for frame, kind in zip(frames(3), ("u2", "i4", "f8"), strict=True)]
    camera = SharedPV(nt=NTNDArray(), initial=sent[0])
    seen: list[np.ndarray] = []
    with Server(providers=[{"segstream:test:in": camera}]), Context("pva") as client:
        context, subscription = pvaccess.forward("segstream:test:in", sender.senders[0])
        publishing = in_background(lambda: pvaccess.publish(stream, "segstream:test:out"))
        with context, subscription, client.monitor("segstream:test:out", seen.append):
            for at, array in enumerate(sent):
                if at:
                    camera.post(array)
                until = time.monotonic() + PATIENCE
                while not any(isinstance(value, np.ndarray) and value.dtype == array.dtype for value in seen):
                    assert time.monotonic() < until, seen
                    time.sleep(0.02)
        sender.senders[0].finish()
        publishing.join(PATIENCE)
    for array in sent:
        value = next(value for value in seen if isinstance(value, np.ndarray) and value.dtype == array.dtype)
        assert value.shape == array.shape and np.asarray(value).tobytes() == array.tobytes()
