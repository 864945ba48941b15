"""Simulations: one scenario, or a grid of them, as an ``xarray.Dataset``."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from .. import _native
from .._errors import UsageError
from ._job import finished
from ._scenario import canonical

#: Measures of the variables, where they have one.
_UNITS = {
    "goodput_bps": "bit/s",
    "delay_ms_mean": "ms",
    "delay_ms_p99": "ms",
    "delay_ms_max": "ms",
    "throughput_packets_per_second": "1/s",
    "simulated_seconds": "s",
}


def simulate(
    scheme: str = "segstream",
    *,
    seeds: int = 1,
    seed: int = 1,
    threads: int = 0,
    progress: bool | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """Simulate one scenario ``seeds`` times; a data set with the dimension ``seed``.

    Each variable has a value for each run. ``NAME_mean`` and ``NAME_ci95`` are the estimate and the half-width of its 95 %
    interval, by the statistics of the studies: over runs, or by batch means where there is one. Parameters are those of
    :func:`scenario`. The attribute ``scenario`` has all of them.
    """
    data = sweep({}, seeds=seeds, seed=seed, threads=threads, progress=progress, scheme=scheme, **parameters)
    data.attrs["scenario"] = str(data["scenario"].item())
    return data.drop_vars("scenario")


def sweep(
    grid: Mapping[str, Sequence[Any]],
    *,
    seeds: int = 1,
    seed: int = 1,
    threads: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    **parameters: Any,
) -> xr.Dataset:
    """Simulate every combination of a grid ``seeds`` times; a data set with a dimension for each parameter, and ``seed``.

    ``grid`` names parameters and their values, in the order of the dimensions: ``{"scheme": ["tcp", "segstream"],
    "loss": [1e-4, 1e-3]}``. Other parameters are the same everywhere. Run r of every scenario draws from the same random
    streams, so that schemes meet the same losses; the coordinate ``seed`` counts runs from 0. ``store`` is a directory that
    keeps results: what is in it is not run again. ``threads=0`` is one for each processor; results do not depend on it.

    Choose a tolerance by ``data.sel({"tolerance": "1,1"})``: xarray has keywords ``tolerance`` and ``method`` of its own in ``sel``.

    Raises ``UsageError`` for a scenario that cannot be run; Ctrl-C ends the sweep.
    """
    wrong = [name for name in grid if name in parameters or not len(grid[name])]
    if wrong or seeds < 1:
        raise UsageError(f"the grid has empty or doubled parameters {wrong}, or seeds={seeds} is below 1")
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    scenarios = [canonical(**{**parameters, **point}) for point in points]
    job = _native.lab_simulate(scenarios, seeds, seed, threads, None if store is None else os.fspath(store))
    results: list[dict[str, Any]] = json.loads(finished(job, progress))
    troubles = [f"{point}: {result['trouble']}" for point, result in zip(points, results, strict=True) if result["trouble"]]
    if troubles:
        raise RuntimeError("runs did not end well: " + "; ".join(troubles))
    return _dataset(grid, results, seeds, seed)


def _dataset(grid: Mapping[str, Sequence[Any]], results: list[dict[str, Any]], seeds: int, seed: int) -> xr.Dataset:
    dims = tuple(grid)
    lengths = tuple(len(values) for values in grid.values())

    def of_point(name: str, values: list[Any], dtype: str | type = "f8") -> xr.DataArray:
        array = np.array(values, dtype).reshape(lengths)
        return xr.DataArray(array, dims=dims, attrs=_attributes(name))

    variables: dict[str, xr.DataArray] = {"scenario": of_point("scenario", [result["scenario"] for result in results], object)}
    for name in results[0]["runs"][0]:
        runs = [[run[name] for run in result["runs"]] for result in results]
        array = np.array(runs, "f8").reshape(*lengths, seeds)
        variables[name] = xr.DataArray(array, dims=(*dims, "seed"), attrs=_attributes(name))
    for name in results[0]["estimates"]:
        for at, suffix in enumerate(("mean", "ci95")):
            key = name if name.endswith("_mean") and suffix == "mean" else f"{name}_{suffix}"
            values = [result["estimates"][name][at] for result in results]
            variables[f"{name}_estimate" if key == name else key] = of_point(name, [np.nan if v is None else v for v in values])
    variables["delay_ms_max"] = of_point("delay_ms_max", [result["delay_ms_max"] for result in results])
    coordinates = {name: _coordinate(name, values) for name, values in grid.items()}
    return xr.Dataset(variables, {**coordinates, "seed": np.arange(seeds)}, {"root_seed": seed})


def _coordinate(name: str, values: Sequence[Any]) -> Any:
    """Numbers stay numbers; what is none of xarray's is its text."""
    plain = all(isinstance(value, int | float | str) for value in values)
    return (name, list(values) if plain else [str(value) for value in values])


def _attributes(name: str) -> dict[str, str]:
    return {"units": _UNITS[name]} if name in _UNITS else {}
