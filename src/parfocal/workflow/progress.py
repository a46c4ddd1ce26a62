"""A line on the terminal, or below the cell of a notebook, that says what is going on; silent in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from parfocal.phrases import phrase, said

Tell = Callable[[str], None]


def silent(stage: str) -> None:
    """Says nothing."""


@contextmanager
def telling_progress(wanted: bool | None) -> Iterator[Tell]:
    """None: only on a terminal or in a notebook. The line is gone when the work is done."""
    cell = None if wanted is False else _cell()
    if cell is not None:
        try:
            yield lambda stage: cell(f"{said(stage)} ...")
        finally:
            cell("")
        return
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield silent
        return
    from rich.console import Console

    with Console(stderr=True).status(said(phrase("starting"))) as status:
        yield lambda stage: status.update(f"{said(stage)} ...")


def _cell() -> Tell | None:
    """What changes one line below the running cell; None outside of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):  # IPython on a terminal has a terminal
        return None
    display: Any = import_module("IPython.display")
    shown = display.display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: shown.update({"text/plain": text}, raw=True)
