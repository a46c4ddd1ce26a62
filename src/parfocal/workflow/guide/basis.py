"""What a step rests on, part by part, so that it can be told what has changed since it ran."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from parfocal.phrases import joined, phrase
from parfocal.workflow.guide.data_files import file_digest, names_in

CHANGED_MEANWHILE = "changed while the step ran"
ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class StepBasis:
    """Hashes of all that a step depends on."""

    versions: str = ""  # of the interpreters, the frameworks and parfocal, and how the sides are run
    functions: str = ""  # which are named in the plan
    settings: Mapping[str, str] = field(default_factory=dict)
    inputs: str = ""
    data: str = ""  # what the plan names at ``data``
    needs: Mapping[str, str] = field(default_factory=dict)  # steps
    files: Mapping[str, str] = field(default_factory=dict)  # opened, relative to the project
    folders: Mapping[str, str] = field(default_factory=dict)  # listed
    unseen: tuple[str, ...] = ()  # packages whose reading cannot be seen: never known

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "unseen": list(self.unseen)}


def digests_of(paths: Mapping[str, Path], started: float = float("inf")) -> dict[str, str]:
    """By the name it is told by; ``started``: when the step began that opened them."""
    found = {}
    for name, path in sorted(paths.items()):
        try:
            late = path.stat().st_mtime > started
            found[name] = (
                CHANGED_MEANWHILE if late else names_in(path) if path.is_dir() else file_digest(path)
            )
        except OSError:
            found[name] = ABSENT
    return found


def relative_names(project: Path, paths: Iterable[Path]) -> dict[str, Path]:
    """As they are remembered: a project may be moved with what lies beside it."""
    return {os.path.relpath(each, project): each for each in paths}


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Why what is remembered no longer holds."""
    if before["versions"] != now["versions"]:
        yield phrase("versions, or how the sides are run")
    if before["functions"] != now["functions"]:
        yield phrase("the functions that the plan names")
    names = [name for name, value in now["settings"].items() if before["settings"].get(name) != value]
    names += ["inputs"] if before["inputs"] != now["inputs"] else []
    names += ["data"] if before["data"] != now["data"] else []
    if names:
        yield phrase("the plan's {names}", names=joined(", ", names))
    for part in ("files", "folders"):
        other = [name for name, value in now[part].items() if before[part].get(name) != value]
        if other:
            yield joined(", ", other)
    steps = [name for name, value in now["needs"].items() if before["needs"].get(name) != value]
    if steps:
        yield phrase("what it needs: {steps}", steps=joined(", ", steps))
    if now["unseen"]:
        yield phrase(
            "{packages} may have read anything: name the files at data = [...]",
            packages=joined(", ", now["unseen"]),
        )
