"""What the tests share: two ends in one process."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import segstream

#: Long enough on a busy machine; a test that needs it has failed.
PATIENCE = 30.0

ROOT = Path(__file__).resolve().parents[3]


@dataclass
class Pair:
    """A connection with one stream: what sends and what receives."""

    sender: segstream.Connection
    receiver: segstream.Connection
    stream: segstream.StreamReceiver


def connected(endpoint: segstream.Endpoint, **options: object) -> tuple[segstream.Connection, segstream.Connection]:
    """Both ends of a new connection to ``endpoint``."""
    accepted: list[segstream.Connection] = []
    thread = threading.Thread(target=lambda: accepted.append(endpoint.accept(PATIENCE)))
    thread.start()
    sender = segstream.connect(endpoint.address, endpoint.fingerprint, timeout=PATIENCE, **options)
    thread.join()
    return sender, accepted[0]


@pytest.fixture
def pair() -> Iterator[Callable[..., Pair]]:
    """Makes pairs; a contract's keywords are those of the stream."""
    with segstream.listen("127.0.0.1:0", allow_anyone=True) as endpoint:
        made: list[Pair] = []

        def make(**contract: object) -> Pair:
            sender, receiver = connected(endpoint, streams=[segstream.Contract(**contract)])
            # The stream is announced with its first data or with the connection.
            stream = receiver.accept_stream(PATIENCE)
            assert stream is not None
            made.append(Pair(sender, receiver, stream))
            return made[-1]

        yield make
        for one in made:
            for end in (one.sender, one.receiver):
                if not end.is_closed:
                    end.abort()


def program(name: str) -> Path:
    """A program of the workspace, as its tests have built it."""
    for profile in ("debug", "release"):
        path = ROOT / "target" / profile / name
        if path.exists():
            return path
    pytest.skip(f"{name} is not built: cargo build -p segstream-cli")
