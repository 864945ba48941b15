"""The settings of an endpoint as keyword arguments, with the names of the library and the command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

from ._native import Admission

if TYPE_CHECKING:
    from ._native import EndpointSettings

StrPath = str | os.PathLike[str]


class Settings(TypedDict, total=False):
    """Keyword arguments of ``listen``, ``listen_shards``, ``bind`` and ``connect``."""

    #: A file with our key (PKCS#8 in PEM), made if it does not exist. Default: a fresh key.
    identity: StrPath
    #: Fingerprints of the peers that are served.
    allow: list[str]
    #: Serve every peer.
    allow_anyone: bool
    #: Whom we serve, as a list that can be changed while the endpoint exists; in place of ``allow``.
    admission: Admission
    #: A file of root certificates (PEM), for peers that ``connect(certified=...)`` names.
    authorities: StrPath
    #: Plain mode: no encryption and no authentication. For laboratories. Both ends must use it.
    insecure: bool
    #: A file to which the secrets of every connection are appended, for tools that read captures. Whoever has it can read them.
    key_log: StrPath
    #: A folder for a qlog of each connection. Complete when the endpoint was closed.
    qlog: StrPath
    #: A new file for the losses of the peers' streams, in lines of JSON. Complete when the endpoint was closed.
    loss_log: StrPath
    #: ``"auto"`` (congestion control, the default), a fixed rate in bit/s of whole IP packets, or ``"unpaced"``: the window alone
    #: bounds what is sent, for a path one owns.
    rate: float | Literal["auto", "unpaced"]
    #: The congestion controller of ``rate="auto"``: ``"auto"`` (the default), ``"reno"``, ``"cubic"``, ``"bbr"`` or ``"prague"``.
    congestion: str
    #: Repair units: ``"off"``, ``"hedged"`` (the default), or ``"auto:latency=80ms,budget=10%"``.
    coding: str
    #: Whether a connection begins with what the last one to the same host found (RFC 9959). Default yes.
    careful_resume: bool
    #: Whether a connection ends whose path carries almost nothing of a fixed rate. Default yes.
    circuit_breaker: bool
    #: Error control 4, flow control 2, rate control 1. Default 7.
    class_: int
    #: Whether a class with neither flow control nor rate control is allowed.
    unlimited: bool
    #: Seconds without anything from the peer after which a connection ends. Default 10, at least 1.
    idle_timeout: float
    #: Seconds that connection set-up may take. Default 10.
    connect_timeout: float
    #: A fixed datagram size in bytes, 1200 to 65507. Default: path MTU discovery.
    datagram_bytes: int
    #: Whether this application confirms what it receives (``StreamReceiver.confirm``). Default no.
    confirms: bool
    #: Live streams of a peer on one connection (`streams` of the library, which is another thing in `connect`). Default 256.
    streams_max: int
    #: The receive buffer of one stream in bytes. Default 64 MiB.
    stream_window_bytes: int
    #: The receive buffers of one connection in bytes. Default 256 MiB.
    connection_window_bytes: int
    #: What all peers together are granted in bytes. Default 8 GiB.
    memory_bytes: int
    #: What the connections of one key are granted in bytes. Default 4 GiB.
    memory_bytes_per_peer: int
    #: Connections. Default 1024.
    connections: int
    #: Connections of one key, of those that peers begin. Default 256.
    connections_per_peer: int
    #: Set-ups of peers that are not authenticated yet, at a time. Default 256.
    setups: int
    #: Of those from one address. Default 16.
    setups_per_host: int
    #: Handshakes that peers can start in a second. Default 500.
    handshakes_per_second: int
    #: The first reordering threshold, 0 to 256. Default 3.
    reorder: int
    #: The requested size of the socket's buffers in bytes. Default 8 MiB.
    socket_buffer_bytes: int
    #: Whether segmentation offload (GSO, GRO) is used. Default yes.
    offload: bool


_FILES = ("identity", "authorities", "key_log", "qlog", "loss_log")
_SWITCHES = {"allow_anyone", "insecure", "careful_resume", "circuit_breaker", "unlimited", "confirms", "offload"}
_TIMES = {"idle_timeout", "connect_timeout"}
_OTHERS = {"allow", "admission", "rate", "congestion", "coding"}


def completed(settings: Settings) -> EndpointSettings:
    """As the extension takes them: what has no default there, and the rest by name."""
    unknown = set(settings) - set(Settings.__annotations__)
    if unknown:
        raise TypeError(f"unknown settings {sorted(unknown)}; known are {sorted(Settings.__annotations__)}")
    given = cast("dict[str, Any]", dict(settings))
    files: dict[str, Any] = {name: None if given.get(name) is None else os.fspath(given[name]) for name in _FILES}
    numbers = given.keys() - _SWITCHES - _TIMES - _OTHERS - set(_FILES)
    completed: dict[str, Any] = {
        **files,
        "allow": list(given.get("allow", [])),
        "admission": given.get("admission"),
        "rate": given.get("rate", "auto"),
        "congestion": given.get("congestion"),
        "coding": given.get("coding"),
        "times": [(name, float(given[name])) for name in sorted(given.keys() & _TIMES)],
        # None is what is usual.
        "numbers": [(name, given[name]) for name in sorted(numbers) if given[name] is not None],
        "switches": [(name, given[name]) for name in sorted(given.keys() & _SWITCHES)],
    }
    return cast("EndpointSettings", completed)
