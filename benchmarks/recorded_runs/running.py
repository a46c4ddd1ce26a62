"""Record the two sides of a case into a folder, compare the files, and give the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import parfocal as pf
from benchmarks.recorded_runs.kits import KITS
from benchmarks.recorded_runs.pairs import Side
from benchmarks.recorded_runs.training import record
from parfocal.report.report import Report


@dataclass(frozen=True)
class Case:
    """Two sides, in which frameworks, from which seed, and how their tensors are kept."""

    name: str
    reference: Side
    port: Side
    kits: tuple[str, str] = ("torch", "paddle")
    tensors: str = "full"
    seed: int = 0

    @property
    def title(self) -> str:
        return f"{self.name}, {self.kits[0]} to {self.kits[1]}, {self.tensors}"


@dataclass(frozen=True)
class Answer:
    """What the first divergence is, where there is one."""

    same: bool
    phase: str = ""
    step: int = 0
    rank: int = 0
    path: str = ""
    what: str = ""
    code: str = ""
    findings: tuple[tuple[str, str], ...] = ()  # code and message
    error: str = ""  # where compare raised
    seconds: float = 0.0

    @property
    def told(self) -> str:
        if self.error:
            return f"raised {self.error}"
        if self.same:
            notes = "; ".join(f"{code}: {message}" for code, message in self.findings[:2])
            return f"same{f' ({notes})' if notes else ''}"
        place = f"`{self.path}`" if self.path else "the model"
        code = f", {self.code}" if self.code else ""
        return f"{self.phase}, step {self.step}, rank {self.rank}, {place}: {self.what}{code}"


class Recordings:
    """Records references once: many cases share theirs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: list[tuple[object, Path]] = []
        self.count = 0

    def reference(self, case: Case) -> Path:
        key = (case.reference, case.kits[0], case.tensors, case.seed)
        for known, path in self.known:
            if known == key:
                return path
        path = record(KITS[case.kits[0]], case.reference, self._next(), case.seed, case.tensors)
        self.known.append((key, path))
        return path

    def port(self, case: Case) -> Path:
        return record(KITS[case.kits[1]], case.port, self._next(), case.seed, case.tensors)

    def _next(self) -> Path:
        self.count += 1
        return self.folder / f"run{self.count}"


def answer(case: Case, recordings: Recordings) -> Answer:
    reference, port = recordings.reference(case), recordings.port(case)
    began = time.perf_counter()
    try:
        report = pf.compare(reference, port)
    except Exception as error:  # noqa: BLE001 - whatever it raises is its answer
        return Answer(False, error=f"{type(error).__name__}: {error}", seconds=time.perf_counter() - began)
    return digest(report, time.perf_counter() - began)


def digest(report: Report, seconds: float = 0.0) -> Answer:
    findings = tuple((each.code, each.message) for each in report.findings)
    first = report.first
    if first is None:
        return Answer(report.ok, findings=findings, seconds=seconds)
    return Answer(
        False,
        first.phase,
        first.step,
        first.rank,
        first.port.path if first.port else "?",
        first.what,
        first.cause.code if first.cause else "",
        findings,
        seconds=seconds,
    )
