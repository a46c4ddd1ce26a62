"""The records of one rank of a run, step by step, as they come: only the steps under way are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from parfocal.run.reader import Run
from parfocal.run.records import (
    CallRecord,
    FloorRecord,
    GradientRecord,
    InterruptionRecord,
    OptimizerRecord,
    Record,
    StateRecord,
    StepRecord,
    ValueRecord,
)

LASTING = ("parameter", "buffer")  # roles that are recorded only where they changed
OPEN_STEPS = 2  # a gradient may still come for the step before the current one


@dataclass(slots=True)
class StepRecords:
    """What one rank recorded of one step."""

    step: int
    calls: list[CallRecord] = field(default_factory=list)
    ops: list[CallRecord] = field(default_factory=list)
    gradients: list[GradientRecord] = field(default_factory=list)
    state: list[StateRecord] = field(default_factory=list)
    logs: list[ValueRecord] = field(default_factory=list)
    floors: list[FloorRecord] = field(default_factory=list)
    optimizers: list[OptimizerRecord] = field(default_factory=list)
    end: StepRecord | None = None
    interruption: InterruptionRecord | None = None
    kept: StandingRecords = field(default_factory=lambda: StandingRecords())  # from the steps before

    def add(self, record: Record) -> None:
        match record:
            case CallRecord():
                (self.calls if record.op is None else self.ops).append(record)
            case GradientRecord():
                self.gradients.append(record)
            case StateRecord():
                self.state.append(record)
            case ValueRecord():
                self.logs.append(record)
            case FloorRecord():
                self.floors.append(record)
            case OptimizerRecord():
                self.optimizers.append(record)
            case InterruptionRecord():
                self.interruption = record
            case StepRecord():
                self.end = record


@dataclass(slots=True)
class StandingRecords:
    """What holds until a record says otherwise."""

    state: dict[tuple[str, str], StateRecord] = field(default_factory=dict)  # by role and path
    optimizers: dict[tuple[str, ...], OptimizerRecord] = field(default_factory=dict)  # by their parameters

    def after(self, records: StepRecords) -> StandingRecords:
        state, optimizers = dict(self.state), dict(self.optimizers)
        state.update({(each.role, each.path): each for each in records.state if each.role in LASTING})
        for each in records.optimizers:
            optimizers[tuple(path for group in each.groups for path in group["parameters"])] = each
        return StandingRecords(state, optimizers)


def read_steps(run: Run, rank: int) -> Iterator[StepRecords]:
    """Every step that left anything, in order."""
    steps: dict[int, StepRecords] = {}
    kept = StandingRecords()
    for record in run.records(rank):
        if record.step not in steps:
            steps[record.step] = StepRecords(record.step)
        steps[record.step].add(record)
        if len(steps) > OPEN_STEPS:
            yield (done := _with_kept(steps.pop(min(steps)), kept))
            kept = kept.after(done)
    for step in sorted(steps):
        yield _with_kept(steps[step], kept)
        kept = kept.after(steps[step])


def _with_kept(records: StepRecords, kept: StandingRecords) -> StepRecords:
    records.kept = kept
    return records


class StepItem(Protocol):
    """Something of one step."""

    @property
    def step(self) -> int: ...


_Of = TypeVar("_Of", bound=StepItem)


def pair_steps(reference: Iterator[_Of], port: Iterator[_Of]) -> Iterator[tuple[_Of | None, _Of | None]]:
    """The steps of both runs side by side; None where only one run has the step."""
    ours, theirs = next(reference, None), next(port, None)
    while ours is not None or theirs is not None:
        first = min(each.step for each in (ours, theirs) if each is not None)
        left = ours if ours is not None and ours.step == first else None
        right = theirs if theirs is not None and theirs.step == first else None
        yield left, right
        if left is not None:
            ours = next(reference, None)
        if right is not None:
            theirs = next(port, None)
