"""Where the steps of a project are carried out: asks the processes, keeps what is common to several steps."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parfocal.judge.verdict import SIDES
from parfocal.report.report import Report
from parfocal.run.storage import write_atomically
from parfocal.workflow.guide.messages import pack, unpack
from parfocal.workflow.guide.processes import BOTH, Workers
from parfocal.workflow.guide.reports import told_report
from parfocal.workflow.guide.settings import Project
from parfocal.workflow.guide.state import Store

Told = dict[str, Any]  # a report, as ``told_report`` gives it


@dataclass(frozen=True, slots=True)
class JudgedStep:
    """What came of a step: its report, and the values of both sides that the guide asks for."""

    told: Told
    values: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None
    by_chance: Mapping[str, float] = field(default_factory=dict)  # how far chance lets metrics be off


@dataclass(frozen=True, slots=True)
class CommonBasis:
    """What a common piece of work rests on: what is remembered of it, as it is now, and after it was done."""

    now: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    after: Callable[[], Mapping[str, Any]]


@dataclass(slots=True)
class RunningStep:
    """One step at work."""

    project: Project
    workers: Workers
    store: Store
    step: str
    common: Mapping[str, CommonBasis]  # of each piece of work that several steps have in common
    say: Callable[[str], None] = field(default=lambda text: None)

    @property
    def together(self) -> bool:
        return self.workers.joint is not None

    @property
    def folder(self) -> Path:
        return self.store.work(self.step)

    def clear(self) -> None:
        """What an earlier attempt left is of no use: a run is not written over."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def log(self, side: str) -> Path:
        """What a side's process prints during its last job."""
        return self.store.folder / "logs" / f"{self.step}-{side}.log"

    def ask(self, job: str, side: str, **given: Any) -> dict[str, Any]:
        self.say(f"{side}: {job}")
        return self.workers.apart[side].ask(job, side, given, self.log(side))

    def ask_both(self, job: str, given: Callable[[str], Mapping[str, Any]]) -> list[dict[str, Any]]:
        return [self.ask(job, side, **given(side)) for side in SIDES]

    def compare(self, job: str, **given: Any) -> Told:
        """A comparison with both sides in one process."""
        assert self.workers.joint is not None
        self.say(job)
        log = self.store.folder / "logs" / f"{self.step}.log"
        return self.workers.joint.ask(job, BOTH, {**given, "report": str(self.folder / "report")}, log)

    def told(self, report: Report) -> Told:
        return told_report(report, self.folder / "report")

    def once(self, name: str, make: Callable[[RunningStep], dict[str, Any]]) -> dict[str, Any]:
        """What several steps have in common: made by the first of them, remembered for the others."""
        other = RunningStep(self.project, self.workers, self.store, name, self.common, self.say)
        path, basis = self.store.common(name), self.common[name]
        try:
            known = unpack(json.loads(path.read_text(encoding="utf-8")))
            if known["rests_on"] == basis.now(known["rests_on"]):
                found: dict[str, Any] = known["made"]
                return found
        except (OSError, ValueError, KeyError, TypeError):
            pass
        other.clear()
        made = make(other)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(pack({"rests_on": basis.after(), "made": made})).encode())
        return made
