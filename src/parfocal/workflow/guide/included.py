"""What a project hands in beside its checkpoints: the training program, its logs, whatever the plan names."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from pathlib import Path

from parfocal.errors import InputError
from parfocal.phrases import phrase
from parfocal.workflow.acceptance.layout import judged_names
from parfocal.workflow.guide.settings import Project

FOLDER = "included"
_SKIPPED = "__pycache__"


def included_files(project: Project, out: Path) -> dict[str, Path]:
    """Every file by its name in the folder ``out`` that is handed in, which itself is left out."""
    place = project.place("accept.include")
    found: dict[str, Path] = {}
    for pattern in project.include:
        files = list(_files(project, pattern, out))
        if not files:
            raise InputError(
                phrase("{place} names {pattern}: there is no such file", place=place, pattern=repr(pattern)),
                hint=phrase("give its path relative to parfocal.toml, or absolute"),
            )
        for file in files:
            name = _name(project, file)
            if file.name in judged_names():
                raise InputError(
                    phrase(
                        "{place} names {file}, which has the name of a file that is judged",
                        place=place,
                        file=file,
                    ),
                    hint=phrase("rename it, or leave it out"),
                )
            if found.setdefault(name, file) != file:
                raise InputError(
                    phrase(
                        "{place} names {file} and {other}, which would both be {name}",
                        place=place,
                        file=found[name],
                        other=file,
                        name=name,
                    ),
                    hint=phrase("rename one of them, or leave it out"),
                )
    return found


def _files(project: Project, pattern: str, out: Path) -> Iterator[Path]:
    """The files that a pattern names, or a folder that it names holds."""
    own = [each.resolve() for each in (project.store, out, out.with_name(f"{out.name}.zip"))]
    matched = [project.folder / pattern] if (project.folder / pattern).exists() else []
    matched = matched or sorted(map(Path, glob.glob(str(project.folder / pattern), recursive=True)))
    for path in matched:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            whole = file.resolve()
            mine = any(whole == each or each in whole.parents for each in own)
            if file.is_file() and not mine and _SKIPPED not in file.parts:
                yield Path(os.path.abspath(file))


def _name(project: Project, file: Path) -> str:
    """As it lies to the project; what lies outside of it is named from where both ways part."""
    parts = Path(os.path.relpath(file, project.folder)).parts
    return "/".join((FOLDER, *(each for each in parts if each != os.pardir)))
