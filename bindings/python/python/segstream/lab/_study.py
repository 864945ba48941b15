"""The studies: figures and tables of the papers, run again."""

from __future__ import annotations

import csv
import io
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from .. import _native
from ._job import finished


@dataclass(frozen=True)
class Picture:
    """A picture of a study. Jupyter shows it."""

    id: str
    #: The picture as SVG.
    svg: str
    #: Its points as CSV; ``None`` for a heat map.
    csv: str | None

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what was found."""

    id: str
    claim: str
    #: ``"agrees with the text"``, ``"shape only"``, ``"does not agree"`` or ``"by construction"``.
    verdict: str
    measured: str
    explanation: str


@dataclass(frozen=True)
class StudyResult:
    """A study that was run. Jupyter shows its pictures."""

    id: str
    title: str
    source: str
    summary: str
    #: The points: for each kind a data set with the dimension ``point`` and the coordinates ``curve`` and ``x``.
    datasets: list[xr.Dataset]
    pictures: list[Picture]
    claims: list[Claim]
    #: Points that did not end well.
    troubles: list[str] = field(default_factory=list[str])

    @property
    def dataset(self) -> xr.Dataset:
        """The points of the first kind; most studies have one."""
        return self.datasets[0]

    def _repr_html_(self) -> str:
        claims = "".join(f"<li><b>{claim.id}</b> {claim.verdict}: {_escaped(claim.measured)}</li>" for claim in self.claims)
        pictures = "".join(picture.svg for picture in self.pictures)
        return f"<h3>{_escaped(self.id)}: {_escaped(self.title)}</h3>{pictures}<ul>{claims}</ul>"


def studies() -> dict[str, str]:
    """The studies: identifier and title."""
    return {key: f"{title} ({source})" for key, title, source in _native.lab_studies()}


def study(
    id: str,
    *,
    preset: str = "quick",
    seed: int = 1,
    threads: int = 0,
    store: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> StudyResult:
    """Run a study, such as ``"ec/fig11"``: its points as data sets, its pictures, and its claims with verdicts.

    ``preset`` is ``"quick"``, ``"standard"`` or ``"paper"`` (the papers' length). ``store`` keeps results.
    """
    job = _native.lab_study(id, preset, seed, threads, None if store is None else os.fspath(store))
    result: dict[str, Any] = json.loads(finished(job, progress))
    return StudyResult(
        id=result["id"],
        title=result["title"],
        source=result["source"],
        summary=result["summary"],
        datasets=[_table(text) for text in result["points"].split("\n\n")],
        pictures=[Picture(**figure) for figure in result["figures"]],
        claims=[Claim(**claim) for claim in result["claims"]],
        troubles=result["troubles"],
    )


def _table(text: str) -> xr.Dataset:
    rows = list(csv.DictReader(io.StringIO(text)))
    columns = {name: _column([row[name] for row in rows]) for name in (rows[0] if rows else ())}
    data = xr.Dataset({name: ("point", values) for name, values in columns.items()})
    return data.set_coords([name for name in ("curve", "x") if name in columns])


def _column(texts: list[str]) -> np.ndarray[Any, Any]:
    """Numbers where all are; nothing is not a number."""
    try:
        return np.array([float(text) if text else np.nan for text in texts])
    except ValueError:
        return np.array(texts, object)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
