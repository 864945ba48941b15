"""Pages of the documentation that are notebooks: each becomes Markdown with its stored outputs.

Called by mkdocs (`hooks` in mkdocs.yml). Why not a plug-in: those that there are install Jupyter, which takes longer than all else.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Puts a Markdown page in the place of each notebook."""
    for file in [file for file in files if file.src_uri.endswith(".ipynb")]:
        notebook = json.loads(Path(str(file.abs_src_path)).read_text(encoding="utf-8"))
        files.remove(file)
        page = "\n\n".join(_cell(cell) for cell in notebook["cells"])
        files.append(File.generated(config, file.src_uri.replace(".ipynb", ".md"), content=page))
    return files


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    outputs = [_output(output) for output in cell["outputs"]]
    return "\n\n".join([f"```python\n{source}\n```", *outputs])


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    for kind in ("image/svg+xml", "text/html"):
        if kind in data:
            # Why without empty lines: Markdown would end the block there.
            lines = "".join(data[kind]).splitlines()
            return "<div>" + "\n".join(line for line in lines if line.strip()) + "</div>"
    text = "".join(data["text/plain"])
    return f"```text\n{text}\n```"
