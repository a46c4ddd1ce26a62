"""``parfocal check [STEP...]``: the guide's steps, and how far both sides agree."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parfocal.cli.console import make_console
from parfocal.phrases import phrase, said

if TYPE_CHECKING:
    from rich.console import Console

    from parfocal.workflow.guide.checking import CheckedProject
    from parfocal.workflow.guide.state import StepResult
    from parfocal.workflow.guide.steps import GuideStep

COLOURS = {"passed": "green", "failed": "red", "error": "red", "green": "green", "red": "red"}
WAYS = {"together": phrase("together"), "apart": phrase("apart")}
HINDERED = ("blocked", "left out")  # why is told in the table
KNOWN = ("passed", "failed")  # what may be remembered
SHOWN = 3  # problems of a step, and notes
PROJECT = Annotated[
    Path,
    typer.Option(
        "--project", "-p", metavar="DIR|FILE", help="The folder that has parfocal.toml, or another plan."
    ),
]


def check(
    steps: Annotated[
        list[str] | None, typer.Argument(metavar="[STEP]...", help="Steps by name; without, all.")
    ] = None,
    project: PROJECT = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Run them even if nothing has changed.")] = False,
    start: Annotated[
        str, typer.Option("--from", metavar="STEP", help="Run this step and all after it again.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run the steps that changed. Exit status 0 the same, 1 different, 2 a side or the call went wrong."""
    from parfocal.workflow.guide.checking import check as check_project
    from parfocal.workflow.guide.settings import read_project

    found = read_project(project)
    with _progress() as tell:
        checked = check_project(found, steps or (), force=force, start=start, tell=tell)
    if as_json:
        typer.echo(json.dumps(checked.to_json(), indent=2))
    else:
        print_checked(checked)
    raise typer.Exit(checked.status)


@contextmanager
def _progress() -> Iterator[Callable[[str, str], None]]:
    """A bar over the steps on a terminal, nothing in a pipe."""
    console = make_console(stderr=True)
    if not console.is_terminal:
        yield lambda step, doing: None
        return
    from rich.progress import Progress

    from parfocal.workflow.guide.steps import NAMES

    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(said(phrase("starting")), total=len(NAMES))
        yield lambda step, doing: progress.update(
            bar, completed=NAMES.index(step), description=f"{step}: {doing}"
        )


def print_checked(checked: CheckedProject, *, when: bool = False) -> None:
    """The table of steps, what is wrong with them, the checkpoints, and what comes next."""
    from rich.markup import escape

    from parfocal.workflow.guide.texts import CHECKPOINT_WORDS, next_line

    console = make_console()
    _print_steps(console, checked, when)
    told: set[str] = set()
    for result in checked.results:
        _print_notes(console, result, told)
        _print_problems(console, checked, result)
    console.print()
    for each in checked.checkpoints:
        label = said(phrase("checkpoint {name}", name=f"{each.name:<12}"))
        console.print(label + _coloured(said(CHECKPOINT_WORDS[each.state]), each.state), soft_wrap=True)
    console.print(escape(said(next_line(checked))), soft_wrap=True)


def _print_notes(console: Console, result: StepResult, told: set[str]) -> None:
    """What is worth knowing of a step, before what is wrong with it; each is told once."""
    from rich.markup import escape

    new = [each["message"] for each in result.findings if each["message"] not in told][:SHOWN]
    told.update(new)
    if new:
        console.print()
    for message in new:
        note = phrase("{name}, worth knowing: {message}", name=result.name, message=message)
        console.print(escape(said(note)), soft_wrap=True)


def _coloured(text: str, state: str) -> str:
    colour = COLOURS.get(state)
    return f"[{colour}]{text}[/]" if colour else text


def _print_steps(console: Console, checked: CheckedProject, when: bool) -> None:
    from datetime import datetime

    from rich.table import Table

    from parfocal.workflow.guide.state import STATUS_WORDS

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(said(phrase("guide step")), overflow="fold")
    table.add_column("", overflow="fold")
    table.add_column(said(phrase("score")), justify="right", overflow="fold")
    table.add_column(said(phrase("last run") if when else phrase("compared")), overflow="fold")
    table.add_column(said(phrase("checkpoint")), overflow="fold")
    steps = _steps()
    for result in checked.results:
        name = result.status.value
        word = _coloured(said(STATUS_WORDS[result.status]), name)
        if name in KNOWN and not when and result.name not in checked.ran:
            word = f"{word} {said(phrase('(known)'))}"
        ran = datetime.fromtimestamp(result.when).strftime("%Y-%m-%d %H:%M:%S") if result.when else ""
        table.add_row(
            said(steps[result.name].label),
            word,
            "" if result.score is None else f"{result.score:.3g}",
            said(result.message) if name in HINDERED else ran if when else said(result.compared),
            steps[result.name].checkpoint,
        )
    console.print(table)


def _steps() -> dict[str, GuideStep]:
    from parfocal.workflow.guide.steps import STEPS

    return {step.name: step for step in STEPS}


def _print_problems(console: Console, checked: CheckedProject, result: StepResult) -> None:
    from rich.markup import escape

    from parfocal.workflow.guide.texts import problem_lines

    def line(text: str, margin: str = "") -> None:
        console.print(escape(margin + said(text)), soft_wrap=True)

    if result.message and result.status.value not in HINDERED:
        console.print()
        line(phrase("{name} has no verdict: {message}", name=result.name, message=result.message))
        if result.hint:
            line(phrase("hint: {hint}", hint=result.hint), "  ")
    if not result.problems:
        return
    console.print()
    line(
        phrase(
            "{name} failed ({way}):", name=_steps()[result.name].label, way=WAYS.get(result.way, result.way)
        )
    )
    for problem in result.problems[:SHOWN]:
        for text in problem_lines(problem):
            line(text, "  ")
    if len(result.problems) > SHOWN:
        line(phrase("and {count} more", count=len(result.problems) - SHOWN), "  ")
    if result.report:
        line(phrase("all of it: {path}", path=checked.project.folder / result.report), "  ")
