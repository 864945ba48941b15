"""The notebooks of the documentation run, and were executed before they were stored."""

import json
from pathlib import Path

import pytest

pytest.importorskip("xarray")

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "docs").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_was_executed(path):
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] and cell["outputs"] for cell in cells), "run docs_hooks/execute.py"
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile("".join(cell["source"]), path.name, "exec"), names)
    if path.stem == "tolerance":
        gained = names["gained"].mean("seed")
        assert gained.sel({"tolerance": "reliable"}) == 0 and (gained.sel({"tolerance": "any"}) > 0).all()
