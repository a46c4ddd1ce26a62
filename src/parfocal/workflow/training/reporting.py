"""The report of a comparison of trainings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from parfocal.judge.verdict import Divergence
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, Coverage
from parfocal.report.report import Curve, Report
from parfocal.workflow.pictures import with_few_pictures
from parfocal.workflow.training.judging import END_LIMIT
from parfocal.workflow.training.rate_phase import rate_curves, rate_differences

if TYPE_CHECKING:
    from parfocal.workflow.training.lockstep import Lockstep


def report_of(lockstep: Lockstep) -> Report:
    found, updates = lockstep.found, lockstep.updates
    ours, theirs = lockstep.reference, lockstep.port
    names = tuple(side.backend.optimizer_kind(side.optimizer) for side in (ours, theirs))
    given_number = theirs.scheduler is not None and (
        theirs.backend.scheduler_of(theirs.optimizer) is None
        and theirs.backend.optimizer_of(theirs.scheduler) is None
    )
    for number, each in enumerate(
        rate_differences(
            updates.rates, (names[0], names[1]), given_number=given_number, explain=lockstep.explain
        )
    ):
        found.add(("lr", number), each)
    counts = {**lockstep.passes.counts, "buffers": lockstep.buffers.compared, **updates.counts}
    free = None if lockstep.free is None else lockstep.free.curve([each[0] for each in lockstep.losses])
    looked = lockstep.looked[0] if lockstep.looked else None
    return Report(
        reference_name=f"{type(ours.model).__name__} ({ours.backend.name}, {names[0]})",
        port_name=f"{type(theirs.model).__name__} ({theirs.backend.name}, {names[1]})",
        divergences=with_few_pictures(_told(lockstep, key, each) for key, each in _ordered(lockstep)),
        findings=tuple(found.findings.values()),
        pairs=looked.pairs if looked is not None else (),
        transfer=lockstep.plan,
        coverage=Coverage(
            (
                *(looked.coverage.compared[:1] if looked is not None else ()),
                Compared("steps", len(lockstep.losses)),
                *_freely(lockstep.stretches.run_freely),
                *(Compared(what, count) for what, count in counts.items() if count),
            ),
            mode=lockstep.mode,
        ),
        curves=(
            Curve("loss", *(tuple(each[at] for each in lockstep.losses) for at in (0, 1))),
            *rate_curves(updates.rates),
            *([] if free is None else [free]),
        ),
        limit=END_LIMIT,
        tolerance=lockstep.tolerance,
    )


def _freely(count: int) -> tuple[Compared, ...]:
    """Steps of which weights, slots and buffers were compared where a stretch of them ends."""
    return (Compared("steps run freely", count),) if count else ()


def _ordered(lockstep: Lockstep) -> list[tuple[object, Divergence]]:
    keys = {id(each): key for key, each in lockstep.found.divergences.items()}
    return [(keys[id(each)], each) for each in lockstep.found.sorted()]


def _told(lockstep: Lockstep, key: object, divergence: Divergence) -> Divergence:
    """With the number of steps that part in the same way."""
    steps = lockstep.found.steps.get(key, 1)
    if steps < 2:
        return divergence
    again = phrase("so it is at {steps} of {count} steps", steps=steps, count=len(lockstep.losses))
    return replace(
        divergence,
        message=phrase("{message}; {again}", message=divergence.message, again=again)
        if divergence.message
        else again,
    )
