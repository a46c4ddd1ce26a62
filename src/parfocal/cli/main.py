"""The command ``parfocal``: one file per sub-command, gathered here.

Nothing heavy is imported before a command needs it, so that ``parfocal --help`` answers at
once. Exit status: 0 aligned, 1 diverged, 2 the call or its input was wrong, 3 a mistake of our own.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Annotated

import typer

from parfocal import __version__
from parfocal.cli import align, compare, convert, diff, doctor, record
from parfocal.errors import ParfocalError

WRONG_INPUT = 2
OUR_MISTAKE = 3

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
    # paddle says so whenever it is imported; nothing is compiled here
    warnings.filterwarnings("ignore", message="No ccache found", category=UserWarning)
    try:
        app(prog_name="parfocal")
    except ParfocalError as error:
        typer.echo(f"parfocal: {error}", err=True)
        sys.exit(WRONG_INPUT)
    except Exception:
        if sys.argv[1:2] == ["record"]:
            raise  # by the recorded script: it ends as it would have ended by itself
        traceback.print_exc()
        typer.echo("parfocal: a mistake of parfocal's own; please report it with the lines above", err=True)
        sys.exit(OUR_MISTAKE)


if __name__ == "__main__":
    main()
