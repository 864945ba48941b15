"""Quantities as on the command line: ``"60ms"``, ``"500mbit"``; plain numbers are in base measures."""

from __future__ import annotations

import re

from .._errors import UsageError

_TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
_RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
_WRITTEN = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e[+-]?[0-9]+)?)\s*([a-z]+)\s*", re.IGNORECASE)


def _read(name: str, value: float | str, units: dict[str, int], base: str, factor: int, example: str) -> int:
    if isinstance(value, str):
        written = _WRITTEN.fullmatch(value)
        unit = written and units.get(written[2].lower())
        if not written or not unit:
            raise UsageError(f"{name}={value!r} is no quantity; give a number of {base}, or a text such as {example!r}")
        return round(float(written[1]) * unit)
    if isinstance(value, bool) or not value >= 0 or value == float("inf"):
        raise UsageError(f"{name}={value!r} is no quantity; give {base} from 0 on")
    return round(value * factor)


def nanos(name: str, value: float | str) -> int:
    """A time in nanoseconds; numbers are seconds."""
    return _read(name, value, _TIMES, "seconds", 10**9, "60ms")


def bits_per_second(name: str, value: float | str) -> int:
    """A bandwidth in bit/s; numbers are bit/s."""
    return _read(name, value, _RATES, "bit/s", 1, "500mbit")
