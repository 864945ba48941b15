"""Executes the notebooks of the documentation and stores their outputs.

    pip install nbclient ipykernel
    python docs_hooks/execute.py
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

DOCS = Path(__file__).resolve().parents[1] / "docs"


def main() -> None:
    """Executes all of them, in the order of their names."""
    for path in sorted(DOCS.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
        for cell in notebook.cells:
            # When a cell was run changes with every execution and says nothing.
            cell.metadata.pop("execution", None)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
