"""What tools say of cases, and what that is worth. Knows no framework and no tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from benchmarks.faults.fault import Fault, Guilt, marked_lines

SAME, DIFFERS, CRASHED = "same", "differs", "crashed"

Lines = Callable[[str], Sequence[tuple[str, int]]]


@dataclass(frozen=True)
class Case:
    """One question to a tool: a fault by name, or a correct pair (by the name of a rewriting, if any)."""

    pair: str
    mode: str = "eval"
    seed: int = 0
    fault: str = ""
    rewriting: str = ""

    @property
    def name(self) -> str:
        return self.fault or f"{self.rewriting or self.pair}, correct, {self.mode}, seed {self.seed}"


@dataclass(frozen=True)
class Blame:
    """One place a tool blames, and why: the path of a layer, never that of a parameter."""

    path: str
    file: str = ""
    line: int = 0
    code: str = ""
    message: str = ""
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a tool said: a verdict, places in its order, notes by code."""

    verdict: str
    blames: tuple[Blame, ...] = ()
    findings: tuple[str, ...] = ()
    message: str = ""
    seconds: float = 0.0
    cost: float = 0.0  # in times of the correct twin's, where that was measured

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> Answer:
        blames = tuple(
            Blame(**{**each, "alternatives": tuple(each["alternatives"])}) for each in data["blames"]
        )
        return Answer(**{**data, "blames": blames, "findings": tuple(data["findings"])})


@dataclass(frozen=True)
class Score:
    """How good an answer to a fault is."""

    fault: str
    code: str
    detected: bool
    located: bool
    named: bool
    strays: tuple[str, ...] = ()  # further places that are blamed without reason
    crashed: bool = False
    said: str = ""
    cost: float = 0.0

    @property
    def missed(self) -> list[str]:
        """What is wrong with the answer, in words."""
        if self.crashed:
            return ["crashed"]
        if not self.detected:
            return ["not detected"]
        parts = [] if self.located else ["not located"]
        parts += [] if self.named else ["not named"]
        if self.strays:
            parts.append(f"also blames {', '.join(path or '(root)' for path in self.strays[:3])}")
        return parts


@dataclass
class Tally:
    """Sums of scores."""

    faults: int = 0
    detected: int = 0
    located: int = 0
    named: int = 0
    stray: int = 0
    crashed: int = 0
    costs: list[float] = field(default_factory=list)

    def add(self, score: Score) -> None:
        self.costs += [score.cost] if score.cost else []
        self.faults += 1
        self.detected += score.detected
        self.located += score.located
        self.named += score.named
        self.stray += bool(score.strays)
        self.crashed += score.crashed


@dataclass
class Result:
    """All answers of one tool."""

    tool: str
    scores: list[Score] = field(default_factory=list)
    alarms: list[tuple[str, str]] = field(default_factory=list)  # correct cases that were not called so
    crashes: list[tuple[str, str]] = field(default_factory=list)  # correct cases without an answer
    correct: int = 0
    seconds: float = 0.0
    missing: str = ""  # why the tool could not be run at all
    passed: set[tuple[str, str]] = field(
        default_factory=set
    )  # pair and mode of twins (seed 0) called the same
    told: list[tuple[str, str]] = field(default_factory=list)  # pair and mode of detected faults

    def total(self) -> Tally:
        return total(self.scores)

    @property
    def told_apart(self) -> int:
        """Detected faults whose correct twin is not called different as well."""
        return sum(twin in self.passed for twin in self.told)

    def by_code(self) -> dict[str, Tally]:
        groups: dict[str, list[Score]] = {}
        for score in self.scores:
            groups.setdefault(score.code, []).append(score)
        return {code: total(scores) for code, scores in sorted(groups.items())}


def total(scores: Iterable[Score]) -> Tally:
    tally = Tally()
    for score in scores:
        tally.add(score)
    return tally


def judge(fault: Fault, answer: Answer, lines: Lines = marked_lines) -> Score:
    """Compare what a tool said with what is right."""
    if fault.finding:
        noted = fault.code in answer.findings and answer.verdict == SAME
        return Score(fault.name, fault.code, noted, noted, noted, said=_said(answer))
    if answer.verdict != DIFFERS:
        crashed = answer.verdict == CRASHED
        return Score(fault.name, fault.code, False, False, False, crashed=crashed, said=_said(answer))
    exact = [[b for b in answer.blames if is_there(g, b, lines)] for g in fault.guilts]
    located = all(exact) and (len(fault.guilts) > 1 or answer.blames[0] in exact[0])
    named = all(_first_code(g, answer.blames) in g.codes for g in fault.guilts)
    strays = [b.path for b in answer.blames if not any(concerns(g, b) for g in fault.guilts)]
    return Score(
        fault.name, fault.code, True, located, named, tuple(dict.fromkeys(strays)), said=_said(answer)
    )


def concerns(guilt: Guilt, blame: Blame) -> bool:
    """Whether a tool blames the guilty layer, be it at another line."""
    return blame.path == guilt.path or (bool(guilt.other) and blame.path == guilt.other)


def is_there(guilt: Guilt, blame: Blame, lines: Lines) -> bool:
    """Whether a tool blames exactly this place."""
    if not guilt.mark:
        return concerns(guilt, blame)
    places = {(os.path.abspath(file), number) for file, number in lines(guilt.mark)}
    return blame.path == guilt.path and (os.path.abspath(blame.file), blame.line) in places


def _first_code(guilt: Guilt, blames: Iterable[Blame]) -> str:
    return next((b.code for b in blames if b.code and concerns(guilt, b)), "")


def _said(answer: Answer) -> str:
    if not answer.blames:
        return f"{answer.verdict}: {answer.message}" if answer.message else answer.verdict
    parts = []
    for blame in answer.blames[:4]:
        where = f":{blame.line}" if blame.file else ""
        parts.append(f"{blame.path or '(root)'}{where} {blame.code or 'no cause'}")
    more = len(answer.blames) - 4
    return "; ".join(parts) + (f"; {more} more" if more > 0 else "")


def record(result: Result, case: Case, fault: Fault | None, answer: Answer) -> str:
    """Add an answer to a result; gives what is wrong with it in words, or nothing."""
    result.seconds += answer.seconds
    if fault is not None:
        score = replace(judge(fault, answer), cost=answer.cost)
        result.scores.append(score)
        if score.detected:
            result.told.append((case.pair, "eval" if case.mode == "keep" else case.mode))
        parts = score.missed
        return f"{', '.join(parts)} ({score.code}). It says: {score.said}" if parts else ""
    result.correct += 1
    if answer.verdict == SAME:
        if case.seed == 0 and not case.rewriting:
            result.passed.add((case.pair, case.mode))
        return ""
    found = result.alarms if answer.verdict == DIFFERS else result.crashes
    found.append((case.name, _said(answer)))
    return f"FALSE ALARM. It says: {_said(answer)}"
