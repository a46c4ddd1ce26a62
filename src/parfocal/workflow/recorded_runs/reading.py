"""The records of one rank of a run, step by step, as they come: only the steps under way are in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from parfocal.run.reader import Run
from parfocal.run.records import CallRecord, GradientRecord, Record, StateRecord, StepRecord, ValueRecord

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
    end: StepRecord | None = None

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
            case StepRecord():
                self.end = record


def read_steps(run: Run, rank: int) -> Iterator[StepRecords]:
    """Every step that left anything, in order."""
    steps: dict[int, StepRecords] = {}
    for record in run.records(rank):
        if record.step not in steps:
            steps[record.step] = StepRecords(record.step)
        steps[record.step].add(record)
        if len(steps) > OPEN_STEPS:
            yield steps.pop(min(steps))
    for step in sorted(steps):
        yield steps[step]


def pair_steps(
    reference: Iterator[StepRecords], port: Iterator[StepRecords]
) -> Iterator[tuple[StepRecords | None, StepRecords | None]]:
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
