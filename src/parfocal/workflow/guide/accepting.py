"""``accept``: the acceptance folder of a project, from what its steps found."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from parfocal import __version__
from parfocal.brief import some
from parfocal.errors import InputError
from parfocal.judge.verdict import SIDES
from parfocal.phrases import joined, phrase, said
from parfocal.workflow.acceptance.layout import BY_CHANCE, STATED, WITHIN, Spelling
from parfocal.workflow.acceptance.writing import CheckpointValues, WriteLog, write_folder
from parfocal.workflow.guide.checking import CheckedProject, CheckpointState, look
from parfocal.workflow.guide.included import included_files
from parfocal.workflow.guide.judging_training import WHOLE
from parfocal.workflow.guide.settings import DATA_SETS, Project
from parfocal.workflow.guide.state import STATUS_WORDS, StepStatus
from parfocal.workflow.guide.steps import STEPS
from parfocal.workflow.guide.texts import text_of
from parfocal.workflow.guide.values import take

FOLDER = "acceptance"


def write_acceptance(
    project: Project,
    out: Path,
    *,
    spelling: Spelling,
    partial: bool,
    write_log: WriteLog,
) -> tuple[Path, Path]:
    """Folder and zip; refused while a checkpoint is not green, unless ``partial``: then without it."""
    checked, versions = look(project)
    lacking = [each for each in checked.checkpoints if not each.green]
    if lacking and (not partial or len(lacking) == len(checked.checkpoints)):
        raise InputError(
            phrase(
                "not every checkpoint is green: {checkpoints}",
                checkpoints=joined("; ", map(_words, lacking)),
            ),
            hint=phrase("parfocal check says what to do")
            if partial
            else phrase(
                "parfocal check says what to do; --partial writes the green ones, and says so inside"
            ),
        )
    green = [each.name for each in checked.checkpoints if each.green]
    return write_folder(
        out,
        [_values(project, checked, name) for name in green],
        spelling=spelling,
        write_log=write_log,
        texts=_texts(project, checked, lacking),
        files=included_files(project, out),
        facts={
            "parfocal": __version__,
            "numpy": np.__version__,
            "versions": versions,
            "way": checked.way,
            "seed": project.seed,
            WITHIN: project.within,
            BY_CHANCE: {name: off for each in checked.results for name, off in each.by_chance.items()},
            STATED: {name: getattr(project, name).stated for name in DATA_SETS},
            "commit": commit_of(project.folder),
            "spelling": spelling.value,
            "partial": bool(lacking),
            "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "steps": {result.name: result.status.value for result in checked.results},
        },
    )


def _words(checkpoint: CheckpointState) -> str:
    steps = [
        phrase("{name} is {status}", name=step.name, status=STATUS_WORDS[step.status])
        for step in checkpoint.steps
        if step.status is not StepStatus.PASSED
    ]
    return phrase("{name} ({steps})", name=checkpoint.name, steps=some(steps))


def _values(project: Project, checked: CheckedProject, checkpoint: str) -> CheckpointValues:
    step = next(each for each in STEPS if each.checkpoint == checkpoint and each.writes)
    result = next(each for each in checked.results if each.name == step.name)
    ours, theirs = (take(project.folder / result.values[side]) for side in SIDES)
    return CheckpointValues(checkpoint, ours, theirs)


def _texts(project: Project, checked: CheckedProject, lacking: list[CheckpointState]) -> dict[str, str]:
    """The report of all steps, and the whole report of each."""
    without = joined(", ", [each.name for each in lacking])
    head = said(phrase("Part of a submission, without {names}.", names=without)) + "\n\n" if lacking else ""
    found = {
        "report.txt": head + text_of(checked) + "\n",
        "report.json": json.dumps(checked.to_json(), indent=2),
    }
    for result in checked.results:
        path = project.folder / result.report
        if result.report and path.is_file():
            found[f"reports/{result.name}.txt"] = path.read_text(encoding="utf-8")
        for drawn in (path.parent.parent / WHOLE).glob("report.*"):  # whole trainings, epoch by epoch
            found[f"reports/{WHOLE}{drawn.suffix}"] = drawn.read_text(encoding="utf-8")
    return found


def commit_of(folder: Path) -> dict[str, Any] | None:
    """The commit that the project's folder is at, and whether files in it are changed; None without git."""
    try:
        commit, changed = (
            subprocess.run(
                ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=30
            ).stdout.strip()
            for arguments in (("rev-parse", "HEAD"), ("status", "--porcelain", "--", "."))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return {"id": commit, "changed": bool(changed)}
