"""Work of the laboratory, which runs on threads of its own: a progress bar, and Ctrl-C, while it does."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, TextIO

from .. import _native

#: How often the bar is drawn, in seconds.
_EVERY = 0.1


class Bar:
    """A progress bar: a widget of text in Jupyter, a line on a terminal, nothing elsewhere."""

    def __init__(self, shown: bool | None, out: TextIO | None = None) -> None:
        self.out = sys.stderr if out is None else out
        self.display: Any = _notebook_display() if shown is not False else None
        self.shown = shown if shown is not None else self.display is not None or self.out.isatty()
        self.began = time.monotonic()
        self.drawn = False

    def draw(self, done: int, total: int) -> None:
        """Draws that ``done`` runs of ``total`` are done."""
        if not self.shown or not total:
            return
        seconds = time.monotonic() - self.began
        filled = 30 * done // total
        text = f"{done} of {total} runs [{'#' * filled}{'.' * (30 - filled)}] {seconds:.0f} s"
        if self.display is not None:
            self.display.update({"text/plain": text}, raw=True)
        else:
            self.out.write(f"\r{text}")
            self.out.flush()
        self.drawn = True

    def finish(self) -> None:
        """Ends the line."""
        if self.drawn and self.display is None:
            self.out.write("\n")


def _notebook_display() -> Any:
    """A display that can be updated, in a notebook."""
    if "ipykernel" not in sys.modules:
        return None
    show: Any = importlib.import_module("IPython.display").display
    return show({"text/plain": ""}, raw=True, display_id=True)


def finished(job: _native.Job, progress: bool | None) -> str:
    """Waits for the result of a job. Ctrl-C ends the job too."""
    bar = Bar(progress)
    try:
        while (result := job.wait(_EVERY)) is None:
            bar.draw(*job.progress())
        bar.draw(*job.progress())
        return result
    except BaseException:
        job.cancel()
        raise
    finally:
        bar.finish()
