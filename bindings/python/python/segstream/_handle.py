"""What every handle of the two interfaces shares: a native object until it is closed."""

from __future__ import annotations

import atexit
from typing import Generic, TypeVar

from . import _native
from ._errors import ClosedError

N = TypeVar("N")

# Ends every wait and closes what can be closed, while the interpreter still runs.
atexit.register(_native.shut_down)


class Handle(Generic[N]):
    """A native object until ``close`` drops it."""

    __slots__ = ("__weakref__", "_native")

    def __init__(self, native: N) -> None:
        self._native: N | None = native

    @property
    def _open(self) -> N:
        native = self._native
        if native is None:
            raise ClosedError(f"this {type(self).__name__} has been closed by this program; make another")
        return native

    @property
    def is_closed(self) -> bool:
        """Whether it was closed by this program."""
        return self._native is None

    def __reduce__(self) -> str:
        raise TypeError(f"a {type(self).__name__} cannot be pickled; it belongs to this process")
