"""How all commands print: colour on a terminal, plain full-width text in a pipe, a report once."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from parfocal.columns import wrapped

if TYPE_CHECKING:
    from rich.console import Console

    from parfocal.report.report import Report

PIPE_WIDTH = 160
NARROWEST = 40


def make_console(*, stderr: bool = False, pipe_width: int = PIPE_WIDTH) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else pipe_width
    return Console(file=stream, width=width, highlight=False, soft_wrap=False)


def print_wrapped(line: str, indent: int) -> None:
    """A line, on a terminal in as many as it needs; those after the first begin with ``indent`` spaces."""
    columns = shutil.get_terminal_size().columns
    narrow = sys.stdout.isatty() and columns > indent + NARROWEST // 2
    typer.echo("\n".join(wrapped(line, columns, indent)) if narrow else line)


def print_report(report: Report, *, as_json: bool, save: Path | None, verbose: bool = False) -> None:
    """First on the screen: what was found is not lost where it cannot be saved."""
    from parfocal.report.text import WIDTH, render

    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDTH
    width = max(NARROWEST, min(columns, WIDTH))
    typer.echo(json.dumps(report.to_json(), indent=2) if as_json else render(report, width, verbose=verbose))
    if save is not None:
        report.save(save)
