"""The command ``parfocal``: one file per sub-command, gathered here.

Nothing heavy is imported before a command needs it, so that ``parfocal --help`` answers at
once. Exit status: 0 aligned, 1 diverged, 2 the call or its input was wrong, 3 a mistake of our own.
"""

from __future__ import annotations

import errno
import io
import os
import sys
import traceback
import warnings
from typing import Annotated

import typer
from typer.core import TyperGroup

from parfocal import __version__
from parfocal.cli import (
    accept,
    align,
    check,
    compare,
    convert,
    describe,
    diff,
    doctor,
    export,
    init,
    record,
    report,
    status,
)
from parfocal.cli import map as mapping
from parfocal.cli.help import translate_help
from parfocal.cli.wide_text import wide_text_wrapped
from parfocal.errors import ParfocalError
from parfocal.phrases import current_language, phrase, said

WRONG_INPUT = 2
OUR_MISTAKE = 3
LONGEST = 24  # lines of a message
# What paddle says whenever it is imported, and whenever its BatchNorm is trained: nothing to be done about.
IDLE_WARNINGS = ("No ccache found", "When training, we now always track global mean and variance")

app = typer.Typer(
    name="parfocal",
    help="Swap the framework, keep the numbers: compare a model with its port.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("align")(align.align)
app.command("record", context_settings=record.CONTEXT)(record.record)
app.command("compare")(compare.compare)
app.command("diff")(diff.diff)
app.command("convert")(convert.convert)
app.command("describe")(describe.describe)
app.command("map")(mapping.map_names)
app.command("init")(init.init)
app.command("check")(check.check)
app.command("status")(status.status)
app.command("accept")(accept.accept)
app.command("export")(export.export)
app.command("report")(report.report)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"parfocal {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Swap the framework, keep the numbers: compare a model with its port."""


def main() -> None:
    for message in IDLE_WARNINGS:
        warnings.filterwarnings("ignore", message=message, category=UserWarning)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that cannot be printed here is told all the same
            stream.reconfigure(errors="backslashreplace")
    try:
        try:
            command = typer.main.get_command(app)
            if isinstance(command, TyperGroup):
                translate_help(command, current_language())
            with wide_text_wrapped(current_language()):
                command(prog_name="parfocal")
        finally:
            sys.stdout.flush()
    except ParfocalError as error:
        typer.echo(f"parfocal: {_cut(str(error))}", err=True)
        sys.exit(WRONG_INPUT)
    except Exception as error:  # noqa: BLE001  it is printed, and ends the command
        is_script = _is_of_a_script(error)
        if not is_script and _is_full(error):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still to be printed
            told = phrase("cannot print the result: {error}", error=error)
            typer.echo(f"parfocal: {said(told)}", err=True)
            sys.exit(WRONG_INPUT)
        traceback.print_exception(error)
        if is_script:
            sys.exit(1)  # as Python ends it
        ours = phrase("a mistake of parfocal's own; please report it with the lines above")
        typer.echo(f"parfocal: {said(ours)}", err=True)
        sys.exit(OUR_MISTAKE)


def _is_of_a_script(error: Exception) -> bool:
    """Whether a recorded script raised it; then its trace begins where the script does."""
    trace, start = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__") == "runpy":
            start = trace
        trace = trace.tb_next
    if start is not None:
        error.__traceback__ = start.tb_next
    return start is not None


def _is_full(error: Exception) -> bool:
    """Whether there is no room where the output goes; files are told of with their names."""
    return isinstance(error, OSError) and error.errno == errno.ENOSPC and error.filename is None


def _cut(message: str) -> str:
    """One screen of it; the hint, in the last line, stays."""
    lines = message.split("\n")
    if len(lines) <= LONGEST:
        return message
    return "\n".join([*lines[: LONGEST - 1], f"  ... and {len(lines) - LONGEST} more lines", lines[-1]])


if __name__ == "__main__":
    main()
