"""A scenario as keyword arguments, with the names of ``segstream sim``."""

from __future__ import annotations

import json
from typing import Any, cast

from .. import _native
from .._errors import UsageError
from ._quantity import bits_per_second, nanos

#: Parameters whose names and measures are those of the scenario's text.
_PLAIN = {
    "packet_bytes": "packet_bytes",
    "segment_packets": "segment_packets",
    "window": "window_segments",
    "buffer": "buffer_segments",
    "feedback": "feedback",
    "packets": "packets",
    "queue_packets": "queue_packets",
    "offered": "offered_per_second",
    "burst": "bursts",
    "hop": "hop",
    "hop_back": "hop_back",
}
_LOSSES = ("loss", "loss_back", "control_loss")


def schemes() -> dict[str, str]:
    """The schemes: key and where it is from."""
    return {key: f"{name} ({source})" for key, name, source in _native.lab_schemes()}


def scenario(scheme: str = "segstream", **parameters: Any) -> dict[str, Any]:
    """The scenario that these parameters mean, in base measures: what is not given is as in ``segstream sim``.

    Parameters are the flags of ``segstream sim`` with ``_`` for ``-``: ``rtt``, ``bandwidth``, ``bandwidth_back`` (seconds,
    bit/s, or texts such as ``"60ms"``, ``"500mbit"``), ``loss``, ``loss_back``, ``control_loss`` (a number or a text such as
    ``"gilbert:rate=1%,burst=4"``), ``tolerance`` (three numbers, ``"reliable"``, ``"any"``, ``"E,B"`` or ``"W,E,B"``),
    ``packet_bytes``, ``segment_packets``, ``window``, ``buffer`` (segments), ``packets``, ``queue_packets``, ``offered``,
    ``burst`` (F, L), ``feedback``, and the settings of the scheme, such as ``ack``. A field of the returned dictionary may be
    given under its own name too, so that ``scenario(**scenario(...))`` is the same scenario.

    Raises ``UsageError`` for a parameter that means nothing to the scheme.
    """
    return cast("dict[str, Any]", json.loads(canonical(scheme, **parameters)))


def canonical(scheme: str = "segstream", **parameters: Any) -> str:
    """The same as the laboratory's text, which is equal for equal scenarios."""
    fields: dict[str, Any] = {}
    settings: list[tuple[str, str]] = []
    known = set(json.loads(_native.lab_scenario(scheme, "{}", [])))
    for name, value in parameters.items():
        if name == "rtt":
            fields["rtt_ns"] = nanos(name, value)
        elif name in ("bandwidth", "bandwidth_back"):
            fields[f"{name}_bps"] = bits_per_second(name, value)
        elif name in _LOSSES:
            fields[name] = None if value is None else str(value)
        elif name == "packets":
            fields[name] = _whole(name, value)
        elif name in _PLAIN:
            fields[_PLAIN[name]] = value
        elif name == "tolerance":
            pass
        elif name in known or name.endswith(("_ns", "_bps", "_segments", "_per_second")) or isinstance(value, dict):
            fields[name] = value
        else:
            settings.append((name, str(nanos(name, value)) if _native.lab_is_time(name) else _text(value)))
    if "tolerance" in parameters or "segment_packets" in fields:
        packets = fields.get("segment_packets") or json.loads(_native.lab_scenario(scheme, "{}", []))["segment_packets"]
        fields["tolerance"] = _tolerance(parameters.get("tolerance", "reliable"), packets)
    return _native.lab_scenario(scheme, json.dumps(fields), settings)


def _whole(name: str, value: float) -> int:
    if int(value) != value:
        raise UsageError(f"{name}={value!r} is no count; give a whole number")
    return int(value)


def _text(value: Any) -> str:
    return str(value)


def _tolerance(value: Any, packets: int) -> list[int]:
    if isinstance(value, str):
        words = {"reliable": [packets, 0, 0], "any": [packets, packets, packets]}
        if value in words:
            return words[value]
        try:
            numbers = [int(number) for number in value.split(",")]
        except ValueError:
            numbers = []
    else:
        numbers = list(value)
    if len(numbers) == 2:
        numbers = [packets, *numbers]
    if len(numbers) == 3 and numbers[2] > numbers[1]:
        raise UsageError(f"tolerance={value!r} has a B above its E, which bounds nothing; give E before B")
    if len(numbers) != 3:
        raise UsageError(f"tolerance={value!r} is no tolerance; give (W, E, B), 'reliable', 'any', 'E,B' or 'W,E,B'")
    return numbers
