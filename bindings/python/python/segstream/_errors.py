"""The exceptions of the library. Each says whose fault it is (``fault``) and what to do.

A wrong argument is a ``TypeError``, ``ValueError`` or ``BufferError`` of Python where Python has one for it.
"""

from typing import ClassVar


class Error(Exception):
    """Any error of the library."""

    #: Whose fault it is: ``"caller"``, ``"peer"``, ``"path"``, ``"system"``, or ``"nobody"`` for a timeout.
    fault: ClassVar[str] = "caller"


class UsageError(Error, ValueError):
    """The call contradicts itself or the contract. A fault of the caller."""


class ClosedError(Error):
    """The handle, or the connection behind it, was closed by this program. A fault of the caller."""


class ForkedError(Error, RuntimeError):
    """The process was forked after the library had started its threads. A fault of the caller."""


class TimedOutError(Error, TimeoutError):
    """The timeout of a call has passed. Nothing is lost: call again."""

    fault: ClassVar[str] = "nobody"


class PeerError(Error, ConnectionError):
    """The peer refused, aborted, is not who it should be, or violated the protocol."""

    fault: ClassVar[str] = "peer"


class PathError(Error, ConnectionError):
    """Nothing comes through: nobody answered, the path is interrupted or carries almost nothing of a fixed rate."""

    fault: ClassVar[str] = "path"


class SystemFaultError(Error, OSError):
    """The operating system refused: an address in use, no right, no memory."""

    fault: ClassVar[str] = "system"
