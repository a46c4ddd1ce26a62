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
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also show the files that every result rests on.")
    ] = False,
) -> None:
    """Show how the steps stand, without running any. Exit status 0 all well, 1 different, 2 wrong."""
    from parfocal.workflow.guide.checking import stand
    from parfocal.workflow.guide.settings import read_project

    standing = stand(read_project(project))
    found, changed = standing.checked, standing.changed
    if as_json:
        reasons = {step: list(why) for step, why in changed.items()}
        typer.echo(json.dumps({**found.to_json(), "changed": reasons}, indent=2))
    else:
        print_checked(found, when=True)
        for result in found.results:
            if verbose and result.rests_on:
                names = joined(", ", [*result.rests_on["files"], *result.rests_on["folders"]])
                typer.echo(said(phrase("{step} rests on {names}", step=result.name, names=names)))
        for step, why in changed.items():
            told = phrase("{step}: changed since it ran: {why}", step=step, why=joined("; ", why))
            typer.echo(said(told))
        if changed:
            told = phrase(
                "changed since they ran: {steps}; parfocal check runs them again", steps=joined(", ", changed)
            )
            typer.echo(said(told))
    raise typer.Exit(found.status)
