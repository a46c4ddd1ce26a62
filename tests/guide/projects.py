"""Projects of the bundled pair, with a mistake or without."""

from __future__ import annotations

from pathlib import Path

from parfocal.workflow.guide.settings import Project, read_project
from parfocal.workflow.guide.starting import start_project
from parfocal.workflow.guide.state import StepStatus
from parfocal.workflow.guide.steps import NAMES
from tests.guide.bugs import Bug

PLANNED = tuple(name for name in NAMES if name != "many_cards")  # which the bundled pair leaves out
RED = (StepStatus.FAILED, StepStatus.ERROR)


def toy(folder: Path, *, bug: Bug | None = None, together: bool = True, **changes: str) -> Project:
    """The bundled pair; ``changes`` are lines put at the top of parfocal.toml."""
    start_project(folder)
    if bug is not None:
        change(folder / "port_side.py", bug.right, bug.wrong)
    lines = [f"{key} = {value}\n" for key, value in changes.items()]
    if not together:
        lines.append("together = false\n")
    plan = folder / "parfocal.toml"
    for key in changes:
        assert f"\n{key} = " in plan.read_text() or key == "together"
    text = "".join(
        line for line in plan.read_text().splitlines(keepends=True) if line.split(" = ")[0] not in changes
    )
    plan.write_text("".join(lines) + text)
    return read_project(folder)


def change(file: Path, right: str, wrong: str) -> None:
    text = file.read_text()
    assert text.count(right) == 1, f"{right!r} is {text.count(right)} times in {file.name}"
    file.write_text(text.replace(right, wrong))
