"""``parfocal accept``: the acceptance folder of a reproduction, judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from parfocal.workflow.acceptance.verification import CheckpointResult, Verification


def accept(
    verify: Annotated[
        Path,
        typer.Option("--verify", metavar="FOLDER|ZIP", help="Judge this acceptance folder, whoever made it."),
    ],
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out checkpoints of which there is no file.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Judge the files of the guide's five checkpoints. Exit status 0 accepted, 1 not, 2 a wrong call.

    Both spellings of the guide are read, and folders made by hand with reprod_log.
    """
    from parfocal.workflow.acceptance.verification import verify as verify_folder

    found = verify_folder(verify, partial=partial)
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        _print(found)
    raise typer.Exit(0 if found.ok else 1)


def _print(found: Verification) -> None:
    from rich.markup import escape
    from rich.table import Table

    from parfocal.cli.console import make_console

    console = make_console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("checkpoint")
    table.add_column("")
    table.add_column("values", justify="right")
    table.add_column("problem", overflow="fold")
    for one in found.checkpoints:
        table.add_row(one.name, _verdict(one, found.partial), str(one.compared), "")
        for problem in one.problems:
            table.add_row("", "", "", f"{problem.name}: {escape(str(problem))}")
    for problem in found.problems:
        table.add_row(
            problem.checkpoint or "folder", "[red]wrong[/]", "", f"{problem.name}: {escape(str(problem))}"
        )
    console.print(table)
    count = len(found.all_problems)
    green = sum(one.ok for one in found.checkpoints)
    summary = f"{green} of {len(found.checkpoints)} checkpoints, {count} problem{'s' * (count != 1)}"
    console.print(f"[green]accepted[/]: {summary}" if found.ok else f"[red]not accepted[/]: {summary}")


def _verdict(one: CheckpointResult, partial: bool) -> str:
    if not one.submitted:
        return "left out" if partial else "[red]missing[/]"
    return "[green]passed[/]" if one.ok else "[red]wrong[/]"
