"""``parfocal accept``: the acceptance folder of a reproduction, written and judged."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parfocal.cli.check import PROJECT
from parfocal.phrases import joined, phrase, said
from parfocal.workflow.acceptance.layout import Spelling

if TYPE_CHECKING:
    from parfocal.workflow.acceptance.problems import FolderProblem
    from parfocal.workflow.acceptance.verification import CheckpointResult, Verification

SPELLING = Annotated[Spelling, typer.Option("--spelling", help="Which of the guide's two file names.")]


def accept(
    verify: Annotated[
        Path | None,
        typer.Option("--verify", metavar="FOLDER|ZIP", help="Judge this acceptance folder, whoever made it."),
    ] = None,
    project: PROJECT = Path("."),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write; its zip lies beside it.")
    ] = None,
    spelling: SPELLING = Spelling.TOOL,
    partial: Annotated[
        bool, typer.Option("--partial", help="Leave out checkpoints that are not there, or not green.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Write the files of the guide's five checkpoints, or judge them. Exit status 0 accepted, 1 not, 2 wrong.

    With --verify both spellings of the guide are read, and folders made by hand with reprod_log.
    """
    from parfocal.workflow.acceptance.verification import verify as verify_folder

    written = None
    if verify is None:
        written = _write(project, out, spelling, partial)
    found = verify_folder(verify or written, partial=partial)  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        if written is not None:
            told = phrase("wrote {folder} and {packed}", folder=written, packed=f"{written}.zip")
            typer.echo(said(told))
        print_verification(found)
    raise typer.Exit(0 if found.ok else 1)


def _write(project: Path, out: Path | None, spelling: Spelling, partial: bool) -> Path:
    from parfocal.workflow.guide.accepting import FOLDER, write_acceptance
    from parfocal.workflow.guide.settings import read_project

    plan = read_project(project)
    folder, _ = write_acceptance(
        plan,
        out or plan.folder / FOLDER,
        spelling=spelling,
        partial=partial,
        write_log=write_difference_log,
    )
    return folder


def write_difference_log(reference: Path, port: Path, log: Path, threshold: float) -> None:
    """As the old tool writes it: its lines, and its verdict by a fixed threshold."""
    from parfocal.compat.reprod_log import ReprodDiffHelper

    helper = ReprodDiffHelper()
    helper.compare_info(helper.load_info(reference), helper.load_info(port))
    with contextlib.redirect_stdout(io.StringIO()):
        helper.report(path=log, diff_threshold=threshold)


def print_verification(found: Verification) -> None:
    from rich.markup import escape
    from rich.table import Table

    from parfocal.cli.console import make_console

    console = make_console()
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(said(phrase("checkpoint")))
    table.add_column("")
    table.add_column(said(phrase("values")), justify="right")
    table.add_column(said(phrase("problem")), overflow="fold")
    for one in found.checkpoints:
        table.add_row(one.name, _verdict(one, found.partial), str(one.compared), _allowed(one))
        for problem in one.problems:
            table.add_row("", "", "", escape(_line(problem)))
    for problem in found.problems:
        where = problem.checkpoint or said(phrase("folder"))
        table.add_row(where, f"[red]{said(phrase('wrong'))}[/]", "", escape(_line(problem)))
    console.print(table)
    for note in found.notes:
        console.print(escape(said(phrase("note: {note}", note=note))), soft_wrap=True)
    console.print(_summary(found))


def _allowed(one: CheckpointResult) -> str:
    told = [
        phrase("chance makes up to {allowed} of {name}", allowed=f"{off:.3g}", name=name)
        for name, off in one.by_chance.items()
    ]
    if one.set_by_project is not None:
        allowed = f"{one.set_by_project:g}"
        told.insert(0, phrase("the project allows a difference of {allowed}", allowed=allowed))
    return said(joined("; ", told))


def _line(problem: FolderProblem) -> str:
    return said(phrase("{name}: {message}", name=problem.name, message=problem.message))


def _summary(found: Verification) -> str:
    count = len(found.all_problems)
    values = {"green": sum(one.ok for one in found.checkpoints), "all": len(found.checkpoints)}
    if count == 1:
        told = phrase("{green} of {all} checkpoints, 1 problem", **values)
    else:
        told = phrase("{green} of {all} checkpoints, {count} problems", count=count, **values)
    if found.ok:
        return said(phrase("{verdict}: {told}", verdict=f"[green]{said(phrase('accepted'))}[/]", told=told))
    return said(phrase("{verdict}: {told}", verdict=f"[red]{said(phrase('not accepted'))}[/]", told=told))


def _verdict(one: CheckpointResult, partial: bool) -> str:
    if not one.submitted:
        return said(phrase("left out")) if partial else f"[red]{said(phrase('missing'))}[/]"
    return f"[green]{said(phrase('passed'))}[/]" if one.ok else f"[red]{said(phrase('wrong'))}[/]"
