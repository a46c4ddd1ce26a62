"""Stages: the norm of the gradients that an update uses, and the learning rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from parfocal.judge import limits
from parfocal.judge.floors import Size
from parfocal.judge.verdict import Cause, Claim, Divergence, Grounds, ProvenBy
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.pair import NOTHING_FOUND, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.rank_causes import rate_cause
from parfocal.workflow.recorded_runs.steps import RecordedStep

RATE = limits.causes.SAME_SETTING.value
NORM = limits.recorded.GRADIENT_NORM.value


def compare_clipping(pair: StepPair, diverged: bool) -> StageOutcome:
    """Gradients that agree before an update and not in it were clipped, or scaled, otherwise."""
    ends = pair.reference.end, pair.port.end
    if ends[0] is None or ends[1] is None:
        return NOTHING_FOUND
    used = ends[0].update_norm, ends[1].update_norm
    came = ends[0].gradient_norm, ends[1].gradient_norm
    if used[0] is None or used[1] is None or came[0] is None or came[1] is None:
        return NOTHING_FOUND
    shares = [_share(used[0], came[0]), _share(used[1], came[1])]
    compared = (Compared("gradient norms", 1),)
    if abs(shares[1] - shares[0]) <= NORM * max(shares):
        return StageOutcome(compared=compared)
    message = phrase(
        "the reference's update is made with a gradient of norm {used} of {came}, the port's "
        "with {port_used} of {port_came}",
        used=f"{used[0]:.6g}",
        came=f"{came[0]:.6g}",
        port_used=f"{used[1]:.6g}",
        port_came=f"{came[1]:.6g}",
    )
    claim = Claim("grad.clip", message, phrase("clip the port's gradients as the reference's"))
    # the norm that the port's gradients would have, were they clipped by the reference's share
    before, after = (abs(norm - used[0]) / (NORM * used[0]) for norm in (used[1], came[1] * shares[0]))
    cause = claim.judged(ProvenBy.RECOMPUTED, before, after, 1.0, Grounds.VALUES)
    found = Divergence(
        "gradient",
        *pair.sites(),
        phrase("norm of the gradients after clipping"),
        None,
        Size(NORM, NORM),
        abs(shares[1] - shares[0]) / (NORM * max(shares)),
        message,
        cause=cause,
        step=pair.step,
        rank=pair.rank,
    )
    # other gradients are clipped otherwise
    parted = came[0] and abs(came[1] / came[0] - 1) > NORM
    return StageOutcome(inherited_from([found], diverged and bool(parted)), compared=compared)


def _share(after: float, before: float) -> float:
    return after / before if before else 1.0


def compare_rate(pair: StepPair, diverged: bool) -> StageOutcome:
    """``diverged`` says nothing here: a rate does not follow from what a model computes."""
    rates = [None if side.end is None else side.end.learning_rate for side in (pair.reference, pair.port)]
    ours, theirs = rates
    if ours is None or theirs is None:
        if ours is theirs:
            return NOTHING_FOUND
        reason = Reason.ONLY_PORT if ours is None else Reason.ONLY_REFERENCE
        return StageOutcome(left_out=(LeftOut(phrase("learning rate"), reason),))
    compared = (Compared("learning rates", 1),)
    if _close(ours, theirs):
        return StageOutcome(compared=compared)
    again = "lr" in pair.memory.causes
    pair.memory.causes.add("lr")
    message = phrase(
        "{reference} in the reference, {port} in the port", reference=f"{ours:.9g}", port=f"{theirs:.9g}"
    )
    found = Divergence(
        "lr",
        *pair.sites(),
        phrase("learning rate"),
        None,
        Size(RATE * abs(ours), RATE * abs(ours)),
        abs(theirs - ours) / (RATE * max(abs(ours), abs(theirs))),
        message,
        cause=None if again else _explain(pair, ours, theirs),
        step=pair.step,
        rank=pair.rank,
    )
    return StageOutcome(inherited_from([found], again), compared=compared)


def _explain(pair: StepPair, ours: float, theirs: float) -> Cause:
    """One that stands still, the same schedule earlier or later, or another value."""
    left, right = rates_of(pair.reference), rates_of(pair.port)
    common = sorted(left.keys() & right.keys())
    if len({right[step] for step in common}) == 1 and len({left[step] for step in common}) > 1:
        message = phrase(
            "the port's learning rate stays at {rate} while the reference's changes", rate=f"{theirs:.6g}"
        )
        claim = Claim("lr.constant", message, phrase("step the port's schedule as the reference's"))
        held = [left[common[0]]] * len(common)
        return _judged(claim, common, left, right, held)
    for steps, message in (
        (1, phrase("the port's learning rate is one step ahead of the reference's")),
        (-1, phrase("the port's learning rate is one step behind the reference's")),
    ):
        shifted = [step for step in common if step + steps in left]
        if len(shifted) > 1 and all(_close(right[step], left[step + steps]) for step in shifted):
            claim = Claim("lr.offset", message, phrase("step the port's schedule where the reference's is"))
            return _judged(claim, shifted, left, right, [left[step + steps] for step in shifted])
    scaled = rate_cause(pair, ours, theirs)
    if scaled is not None:
        return scaled
    factor = phrase(" ({factor} times)", factor=f"{theirs / ours:.6g}") if ours else ""
    message = phrase(
        "the learning rate is {reference} in the reference and {port} in the port{factor}",
        reference=f"{ours:.6g}",
        port=f"{theirs:.6g}",
        factor=factor,
    )
    claim = Claim("lr.value", message, phrase("set the port's learning rate to {rate}", rate=f"{ours:.9g}"))
    multiple = [left[step] * (theirs / ours) if ours else math.inf for step in common]
    return _judged(claim, common, left, right, multiple)


def _judged(
    claim: Claim,
    steps: Sequence[int],
    left: Mapping[int, float],
    right: Mapping[int, float],
    made: Sequence[float],
) -> Cause:
    """Proven where the rates made of the reference's are the port's, at several steps."""
    before = max((_apart(right[step], left[step]) for step in steps), default=math.inf)
    after = max((_apart(right[step], rate) for step, rate in zip(steps, made, strict=True)), default=math.inf)
    return claim.judged(ProvenBy.RELATED, before, after if len(steps) > 1 else math.inf, 1.0, Grounds.VALUES)


def rates_of(side: RecordedStep) -> dict[int, float]:
    """Of every step of the run."""
    return {
        each.step: each.learning_rate for each in side.run.steps(side.rank) if each.learning_rate is not None
    }


def _close(a: float, b: float) -> bool:
    return _apart(a, b) <= 1.0


def _apart(a: float, b: float) -> float:
    """In units of what two equal rates may differ by."""
    largest = max(abs(a), abs(b))
    return abs(a - b) / (RATE * largest) if largest else 0.0
