"""``parfocal status``: the steps, when each last ran, its score, its first problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from parfocal.cli.check import PROJECT, print_checked
from parfocal.phrases import joined, phrase, said


def status(
    project: PROJECT = Path("."),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show how the steps stand, without running any. Exit status 0 all well, 1 different, 2 wrong."""
    from parfocal.workflow.guide.checking import stand
    from parfocal.workflow.guide.settings import read_project

    found, changed = stand(read_project(project))
    if as_json:
        typer.echo(json.dumps({**found.to_json(), "changed": list(changed)}, indent=2))
    else:
        print_checked(found, when=True)
        if changed:
            told = phrase(
                "changed since they ran: {steps}; parfocal check runs them again", steps=joined(", ", changed)
            )
            typer.echo(said(told))
    raise typer.Exit(found.status)
