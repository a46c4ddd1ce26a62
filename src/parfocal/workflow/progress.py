"""A line on the terminal that says what is going on; silent in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[str], None]


def silent(stage: str) -> None:
    """Says nothing."""


@contextmanager
def telling_progress(wanted: bool | None) -> Iterator[Tell]:
    """None: only on a terminal. The line is gone when the work is done."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield silent
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:
        yield lambda stage: status.update(f"{stage} ...")
