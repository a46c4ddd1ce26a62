"""What is remembered of every step: one file each, written in one go, with a hash of what it depended on."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from parfocal.phrases import phrase
from parfocal.run.storage import write_atomically
from parfocal.workflow.guide.messages import pack, unpack
from parfocal.workflow.guide.opened_files import named_like
from parfocal.workflow.guide.settings import Project

SCHEMA = 2


class StepStatus(str, Enum):
    """How a step stands."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # a side crashed, hung or raised: there is no verdict
    BLOCKED = "blocked"  # a step that it needs did not pass
    LEFT_OUT = "left out"  # parfocal.toml names nothing for it
    WAITING = "waiting"  # not run yet, or something changed since


STATUS_WORDS = {
    StepStatus.PASSED: phrase("passed"),
    StepStatus.FAILED: phrase("failed"),
    StepStatus.ERROR: phrase("error"),
    StepStatus.BLOCKED: phrase("blocked"),
    StepStatus.LEFT_OUT: phrase("left out"),
    StepStatus.WAITING: phrase("waiting"),
}


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step as it was last run."""

    name: str
    status: StepStatus
    rests_on: Mapping[str, Any] = field(default_factory=dict)  # StepBasis.to_json()
    way: str = ""  # "together", "apart"
    problems: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()
    score: float | None = None
    compared: str = ""
    message: str = ""  # of an error, or of what blocks it
    hint: str = ""
    report: str = ""  # the file of the whole report
    values: Mapping[str, str] = field(default_factory=dict)  # side -> file of the guide's values
    by_chance: Mapping[str, float] = field(default_factory=dict)  # how far chance lets trained metrics be off
    when: float = 0.0
    seconds: float = 0.0

    @property
    def key(self) -> str:
        """A hash of what it depended on."""
        return digest_of(self.rests_on)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "status": self.status.value, "schema": SCHEMA}


class Store:
    """The folder ``.parfocal`` of a project."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.folder = project.store

    def path(self, name: str) -> Path:
        return self.folder / "steps" / f"{name}.json"

    def work(self, name: str) -> Path:
        return self.folder / "work" / name

    def common(self, name: str) -> Path:
        """What several steps have in common."""
        return self.folder / "common" / f"{name}.json"

    def read(self, name: str) -> StepResult | None:
        """What is remembered; None where there is nothing, or nothing that can be read."""
        try:
            told = unpack(json.loads(self.path(name).read_text(encoding="utf-8")))
            if told.pop("schema") != SCHEMA:
                return None
            told["status"] = StepStatus(told["status"])
            told["problems"], told["findings"] = tuple(told["problems"]), tuple(told["findings"])
            return StepResult(**told)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, result: StepResult) -> None:
        self.path(result.name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path(result.name), json.dumps(pack(result.to_json()), indent=2).encode())


def digest_of(facts: Any) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def code_files(folder: Path, spec: str, opened: Collection[Path] = ()) -> set[Path]:
    """The file of a factory and the user's modules that it imports, theirs too.

    ``opened``: files of code that a process has opened, wherever its path of modules has them.
    """
    place = spec.rpartition(":")[0]
    start = folder / place if place.endswith(".py") else _module_file(folder, place)
    waiting = [start.resolve()] if start is not None and start.is_file() else []
    waiting += [] if waiting else list(named_like(place, opened))
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        for name in _imported(path):
            found = {_module_file(base, name) for base in (path.parent, folder)}
            waiting += [each.resolve() for each in found if each is not None]
            waiting += named_like(name, opened)
    return seen


def _module_file(base: Path, name: str) -> Path | None:
    target = base.joinpath(*name.split("."))
    for candidate in (target.with_suffix(".py"), target / "__init__.py"):
        if candidate.is_file():
            return candidate
    return None


def _imported(path: Path) -> set[str]:
    """Names of modules that a file imports; a file that cannot be parsed imports none."""
    import ast

    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            found.add(base)
            found.update(f"{base}.{alias.name}".lstrip(".") for alias in node.names)
    return {name for name in found if name and name.partition(".")[0] not in sys.stdlib_module_names}
