"""What the sweep measured, as data and as a page of tables."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
from examples.pairs.faults import Fault

from parfocal.backends import registry
from parfocal.report.report import Report
from parfocal.workflow.alignment import Observation
from parfocal.workflow.measures import END_LIMIT, LIMIT


@dataclass
class Noise:
    """The largest scores of one correct pair over all its runs."""

    pair: str
    forward: float = 0.0
    backward: float = 0.0
    gradient: float = 0.0
    whole: float = 0.0
    paired: int = 0  # calls of the port
    calls: int = 0
    runs: int = 0
    alarms: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, report: Report, observation: Observation, label: str) -> None:
        self.runs += 1
        self.forward = max(self.forward, _largest(pair.forward for pair in report.pairs))
        self.backward = max(self.backward, _largest(pair.backward for pair in report.pairs))
        self.gradient = max(self.gradient, _largest(end.measure.score for end in observation.parameters))
        self.whole = max(self.whole, _largest(end.measure.score for end in observation.ends))
        self.paired += report.coverage.count("calls")
        self.calls += report.coverage.of("calls")
        if report.first is not None:
            first = report.first
            where = (first.port.path if first.port else "?") or "(root)"
            self.alarms.append(f"{label}: {first.phase} of {where}, {first.what}, {first.score:.3g}")


@dataclass(frozen=True)
class Caught:
    """What an alignment said about one planted fault."""

    fault: Fault
    score: float
    named: str | None  # the layer that was named first
    others: tuple[str, ...]  # further layers that were blamed

    @property
    def right(self) -> bool:
        return self.named == self.fault.guilty and not self.others


@dataclass(frozen=True)
class Hidden:
    """How many calls of a disguised port found the partner they had before."""

    pair: str
    disguise: str
    kept: int
    calls: int
    ok: bool


@dataclass
class Results:
    """Everything one sweep measured."""

    seeds: int
    noise: list[Noise] = field(default_factory=list)
    faults: list[Caught] = field(default_factory=list)
    real: list[Caught] = field(default_factory=list)
    hidden: list[Hidden] = field(default_factory=list)
    low: list[tuple[str, str, Noise | str]] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """No false alarm, and every planted mistake found where it is."""
        quiet = not any(noise.alarms for noise in self.noise)
        return quiet and all(caught.right for caught in self.faults) and all(each.ok for each in self.hidden)


def _largest(scores: Iterable[float | None]) -> float:
    return max((score for score in scores if score is not None), default=0.0)


@singledispatch
def line(result: object) -> str:
    """One line about one result, for the way."""
    return f"    {result}"


@line.register
def _(noise: Noise) -> str:
    alarms = "".join(f"\n    FALSE ALARM {alarm}" for alarm in noise.alarms)
    return (
        f"{noise.pair}: forward {noise.forward:.2f} backward {noise.backward:.2f} "
        f"gradients {noise.gradient:.2f} whole {noise.whole:.2f}, "
        f"{noise.runs} runs of {noise.seconds:.1f} s{alarms}"
    )


@line.register
def _(caught: Caught) -> str:
    verdict = "found" if caught.right else f"WRONG: {caught.named!r} {caught.others}"
    return f"    {caught.fault.name} at {caught.fault.guilty or '(root)'}: {caught.score:.3g} {verdict}"


@line.register
def _(hidden: Hidden) -> str:
    return f"    {hidden.disguise}: {hidden.kept} of {hidden.calls} pairs{'' if hidden.ok else ', DIVERGED'}"


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---" for _ in head], *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in row)} |" for row in lines)


INTRODUCTION = """# The noise of correct ports, and how far above it mistakes are

Written by `python -m benchmarks.sweep`: {seeds} seeds, eval and train mode, float32, {versions},
{machine}, CPU, one thread.

A score is an error in units of what rounding makes unavoidable for this very call on this very input.
A call may score {limit:g}, a whole model {end_limit:g}. Up to {limit:g} only the cheapest floor is
computed, so smaller numbers are upper bounds; the dearer floors are asked only where that one would
accuse."""

PLANTED = """## Planted mistakes

One mistake each in an otherwise correct port. *Right*: the first layer named is the guilty one, and no
other layer is blamed."""

REAL = """## Real differences in shipped models

Ports as `paddle.vision` ships them that differ from torchvision's models. All their differences are
listed; the guilty layer is the first of them."""

HIDDEN = """## Other names, another order, another nesting

Calls of the port that are paired with the same call of the reference as before the disguise."""

LOW = """## Half precision

Both models cast to the dtype; the pair is left out where the port has no kernels on the CPU."""


def page_of(results: Results) -> str:
    """The whole page."""
    versions = ", ".join(f"{name} {registry.get(name).framework_version}" for name in ("torch", "paddle"))
    introduction = INTRODUCTION.format(
        seeds=results.seeds,
        versions=f"{versions}, NumPy {np.__version__}",
        machine=platform.machine(),
        limit=LIMIT,
        end_limit=END_LIMIT,
    )
    parts = [
        introduction, "## Correct pairs", _noise_table(results), *_alarms(results),
        PLANTED, _fault_table(results.faults), REAL, _fault_table(results.real),
        HIDDEN, _hidden_table(results), LOW, _low_table(results),
    ]  # fmt: skip
    return "\n\n".join(parts) + "\n"


def _noise_table(results: Results) -> str:
    head = (
        "pair",
        "forward",
        "backward",
        "parameter gradients",
        "whole model",
        "paired calls",
        "false alarms",
    )
    rows = [
        (
            noise.pair,
            f"{noise.forward:.2f}",
            f"{noise.backward:.2f}",
            f"{noise.gradient:.2f}",
            f"{noise.whole:.2f}",
            f"{noise.paired / noise.calls:.0%}",
            f"{len(noise.alarms)} of {noise.runs}",
        )
        for noise in results.noise
    ]
    return table(head, rows)


def _alarms(results: Results) -> list[str]:
    told = [f"- {noise.pair}, {alarm}" for noise in results.noise for alarm in noise.alarms]
    return ["False alarms, each with its first divergence:", "\n".join(told)] if told else []


def _fault_table(caught: Iterable[Caught]) -> str:
    rows = [
        (
            each.fault.pair,
            each.fault.name.partition(" of " + each.fault.pair)[0],
            f"`{each.fault.guilty or '(root)'}`",
            f"{each.score:.3g}",
            "right" if each.right else f"**{each.named or 'nothing'}** {' '.join(each.others)}".strip(),
        )
        for each in caught
    ]
    return table(("pair", "mistake", "guilty layer", "score", "named"), rows)


def _hidden_table(results: Results) -> str:
    disguises = list(dict.fromkeys(each.disguise for each in results.hidden))
    cells = {(each.pair, each.disguise): each for each in results.hidden}
    rows = [
        (pair, *(_hidden_cell(cells[pair, disguise]) for disguise in disguises))
        for pair in dict.fromkeys(each.pair for each in results.hidden)
    ]
    return table(("pair", *disguises), rows)


def _hidden_cell(hidden: Hidden) -> str:
    return f"{hidden.kept} of {hidden.calls}{'' if hidden.ok else ', diverged'}"


def _low_table(results: Results) -> str:
    rows = []
    for pair, dtype, result in results.low:
        if isinstance(result, str):
            rows.append((pair, dtype, f"the port cannot run: {result}"))
        else:
            scores = (result.forward, result.backward, result.gradient, result.whole)
            rows.append(
                (
                    pair,
                    dtype,
                    f"{' / '.join(f'{score:.2f}' for score in scores)}, {len(result.alarms)} alarms",
                )
            )
    return table(("pair", "dtype", "forward / backward / gradients / whole, or the reason why not"), rows)
