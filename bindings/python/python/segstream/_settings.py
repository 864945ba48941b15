"""The settings of an endpoint as keyword arguments, with the names of the library and the command."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from ._native import EndpointSettings

StrPath = str | os.PathLike[str]


class Settings(TypedDict, total=False):
    """Keyword arguments of ``listen``, ``bind`` and ``connect``."""

    #: A file with our key (PKCS#8 in PEM), made if it does not exist. Default: a fresh key.
    identity: StrPath
    #: Fingerprints of the peers that are served.
    allow: list[str]
    #: Serve every peer.
    allow_anyone: bool
    #: Plain mode: no encryption and no authentication. For laboratories. Both ends must use it.
    insecure: bool
    #: ``"auto"`` (congestion control, the default), or a fixed rate in bit/s of whole IP packets.
    rate: float | Literal["auto"]
    #: Error control 4, flow control 2, rate control 1. Default 7.
    class_: int
    #: Whether a class with neither flow control nor rate control is allowed.
    unlimited: bool
    #: Seconds without anything from the peer after which a connection ends. Default 10.
    idle_timeout: float
    #: Seconds that connection set-up may take. Default 10.
    connect_timeout: float
    #: The receive buffer of one stream in bytes. Default 64 MiB.
    stream_window_bytes: int
    #: A fixed datagram size in bytes. Default: path MTU discovery.
    datagram_bytes: int


def completed(settings: Settings) -> EndpointSettings:
    """All settings, with defaults."""
    unknown = set(settings) - set(Settings.__annotations__)
    if unknown:
        raise TypeError(f"unknown settings {sorted(unknown)}; known are {sorted(Settings.__annotations__)}")
    identity, rate = settings.get("identity"), settings.get("rate", "auto")
    return {
        "identity": None if identity is None else os.fspath(identity),
        "allow": list(settings.get("allow", [])),
        "allow_anyone": settings.get("allow_anyone", False),
        "insecure": settings.get("insecure", False),
        "rate": None if rate == "auto" else float(rate),
        "class_number": settings.get("class_", 7),
        "unlimited": settings.get("unlimited", False),
        "idle_timeout": float(settings.get("idle_timeout", 10.0)),
        "connect_timeout": float(settings.get("connect_timeout", 10.0)),
        "stream_window_bytes": settings.get("stream_window_bytes", 64 << 20),
        "datagram_bytes": settings.get("datagram_bytes"),
    }
