"""Stage: what the optimizers keep for every parameter, where both runs have it."""

from __future__ import annotations

import math

from parfocal.judge.floors import Size
from parfocal.judge.verdict import Divergence
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import JUMP
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.gradients import sites_of
from parfocal.workflow.recorded_runs.pair import NOTHING_FOUND, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.parameters import ParameterTie, arrangement_of


def compare_slots(pair: StepPair, diverged: bool) -> StageOutcome:
    ours, theirs = pair.reference.slots, pair.port.slots
    if not ours and not theirs:
        return NOTHING_FOUND
    if not ours or not theirs:
        reason = Reason.ONLY_REFERENCE if ours else Reason.ONLY_PORT
        return StageOutcome(left_out=(LeftOut(phrase("optimizer state"), reason),))
    found: list[Divergence] = []
    count = 0
    for tie in pair.parameters:
        for path, slot in ours:
            if path == tie.reference and (tie.port, slot) in theirs:
                count += 1
                divergence = _judge(pair, tie, slot)
                if divergence is not None:
                    found.append(divergence)
    compared = (Compared("optimizer slots", count, max(len(ours), len(theirs))),)
    return StageOutcome(inherited_from(found, diverged), compared=compared)


def _judge(pair: StepPair, tie: ParameterTie, slot: str) -> Divergence | None:
    other, own = pair.reference.slots[tie.reference, slot].after, pair.port.slots[tie.port, slot].after
    if own is None or other is None:
        return None
    lies = arrangement_of(tie, pair.reference, pair.port, own, other)
    apart = pair.distances.between(own, other, lies=lies)
    # a slot is made of gradients, squared in some: it may be off by what they are
    given = max(pair.memory.gradient_errors.get(tie.reference, pair.drift), pair.unit)
    if apart.error <= JUMP * given:
        return None
    return Divergence(
        "optimizer",
        *sites_of(tie),
        phrase("{slot} of the parameter {name}", slot=slot, name=tie.name),
        apart.comparison,
        Size(given, given),
        apart.error / given if math.isfinite(apart.error) else math.inf,
        step=pair.step,
        rank=pair.rank,
    )
