"""Stages: the loss, and the gradient with which it enters the model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from parfocal.explain.causes import rounded
from parfocal.explain.loss_causes import offset_claim
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.verdict import SIDES, Cause, Claim, Divergence, ProvenBy, side_name
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData, Value
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import JUMP
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.gradients import gradients_part
from parfocal.workflow.recorded_runs.pair import NOTHING_FOUND, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.rank_causes import loss_scale_cause, loss_share_cause
from parfocal.workflow.recorded_runs.tensors import tie_values
from parfocal.workflow.recorded_runs.vectors import multiple_of, unlike, vectors_of

WHOLE = limits.recorded.WHOLE_RATIO.value


def compare_loss(pair: StepPair, diverged: bool) -> StageOutcome:
    """An error that the outputs do not explain is the loss's own; what they explain is no divergence."""
    ours, theirs = (None if side.end is None else side.end.loss for side in (pair.reference, pair.port))
    if ours is None or theirs is None:
        if ours is theirs:
            return NOTHING_FOUND
        reason = Reason.ONLY_PORT if ours is None else Reason.ONLY_REFERENCE
        return StageOutcome(left_out=(LeftOut(phrase("the loss"), reason),))
    compared = (Compared("losses", 1),)
    unit = _unit(pair, ours)
    apart = abs(theirs - ours)
    if pair.tolerance is not None:
        wrong = apart > pair.tolerance.atol + pair.tolerance.rtol * abs(ours)
    else:
        wrong = apart > JUMP * unit
    if not wrong and math.isnan(ours) == math.isnan(theirs):
        return StageOutcome(compared=compared)
    message = phrase(
        "{reference} in the reference, {port} in the port", reference=f"{ours:.9g}", port=f"{theirs:.9g}"
    )
    found = Divergence(
        "loss",
        *pair.sites(),
        "loss",
        None,
        Size(unit, unit),
        apart / unit if unit else math.inf,
        message,
        cause=_explain(pair, ours, theirs, diverged),
        step=pair.step,
        rank=pair.rank,
    )
    explained = diverged and not pair.output_error < OUTPUTS_EXPLAIN
    return StageOutcome(inherited_from([found], explained), compared=compared)


OUTPUTS_EXPLAIN = limits.recorded.OUTPUTS_EXPLAIN.value


def _unit(pair: StepPair, loss: float) -> float:
    """What the loss may be off: by rounding of its terms, and by the outputs' error along their gradients."""
    terms = 0.0
    for _, reference in _outputs(pair):
        if reference.gradient is not None:
            terms += reference.gradient.fingerprint.l2 * reference.data.fingerprint.l2
    scale = max(abs(loss), terms)
    return scale * pair.unit + (terms or scale) * pair.finite_output_error


def _outputs(pair: StepPair) -> Iterator[tuple[Value, Value]]:
    """What the models gave: the port's value and the reference's."""
    for reference, port in pair.roots:
        for slot, value in tie_values(port.outputs, reference.outputs).items():
            yield port.outputs[slot], value


def _explain(pair: StepPair, ours: float, theirs: float, diverged: bool) -> Cause | None:
    """A ratio that is a number of samples or elements is a sum on one side and a mean on the other."""
    if pair.output_error > OUTPUTS_EXPLAIN or not ours or not theirs or not math.isfinite(theirs / ours):
        return None
    ratio = theirs / ours
    by_ranks = loss_scale_cause(pair, ratio) or loss_share_cause(pair, ours, theirs)
    if by_ranks is not None:
        return by_ranks
    larger, smaller = SIDES[::-1] if abs(ratio) > 1 else SIDES
    times = max(abs(ratio), 1 / abs(ratio))
    for count, meaning in _counts(pair):
        if count > 1 and abs(times / count - 1) < WHOLE and ratio > 0:
            message = phrase(
                "the loss of the {larger} is {count} times that of the {smaller}, which is the number of "
                "{meaning}: a sum against a mean",
                larger=side_name(larger),
                count=count,
                smaller=side_name(smaller),
                meaning=meaning,
            )
            claim = Claim("loss.reduction", message, phrase("reduce the port's loss as the reference's"))
            return claim.proven(ProvenBy.RELATED, (times - 1) / WHOLE, abs(times / count - 1) / WHOLE)
    scaled, equal = (_entering_unlike(pair, factor) for factor in (ratio, 1.0))
    # where something parted before, small differences of gradients are excused
    known = "loss.offset" in pair.memory.causes or not diverged
    if equal <= 1.0 and equal < scaled and known and not gradients_part(pair):
        pair.memory.causes.add("loss.offset")
        return offset_claim(rounded(theirs - ours)).proven(ProvenBy.RELATED, scaled, equal)
    if scaled <= 1.0 and scaled < equal:
        message = phrase(
            "the loss of the port and its gradient are {ratio} times the reference's", ratio=f"{ratio:.6g}"
        )
        claim = Claim(
            "loss.weight", message, phrase("divide the port's loss by {ratio}", ratio=f"{ratio:.6g}")
        )
        return claim.proven(ProvenBy.RELATED, equal, scaled)
    return None


def _counts(pair: StepPair) -> Iterator[tuple[int, str]]:
    for _, reference in _outputs(pair):
        shape = reference.data.shape
        if shape:
            yield shape[0], phrase("samples in the batch")
            yield math.prod(shape[:-1]), phrase("rows of the output")
            yield math.prod(shape), phrase("elements of the output")
            yield shape[-1], phrase("classes")
            yield math.prod(shape[1:]), phrase("elements of a sample")
    calls = len(pair.roots)
    yield calls, phrase("calls of the model in the step")


def _entering_unlike(pair: StepPair, factor: float) -> float:
    """How far the port's entering gradients are from so many times the reference's; infinite if unknown."""
    vectors = [vectors_of(pair, own, other) for own, other in _entering(pair)]
    known = [each for each in vectors if each is not None]
    if not known or len(known) < len(vectors):
        return math.inf
    return max(unlike(own, factor * other) for own, other in known)


def _entering(pair: StepPair) -> Iterator[tuple[TensorData, TensorData]]:
    for own, other in _outputs(pair):
        if own.gradient is not None and other.gradient is not None:
            yield own.gradient, other.gradient


def compare_entering(pair: StepPair, diverged: bool) -> StageOutcome:
    """The gradient that comes back to what the model gave: the loss made it, not the model."""
    found: list[Divergence] = []
    count = 0
    for own, other in _entering(pair):
        count += 1
        apart = pair.distances.between(own, other, judged=True)
        # where the loss saturates its gradient is a difference of nearly equal numbers
        unit = max(math.sqrt(pair.unit) / JUMP, pair.finite_output_error)
        if apart.error <= (0.0 if pair.tolerance else JUMP * unit):
            continue
        found.append(
            Divergence(
                "backward",
                *pair.sites(),
                phrase("gradient that enters the model from the loss"),
                apart.comparison,
                NOTHING,
                apart.error / unit,
                cause=_explain_entering(pair, own, other),
                step=pair.step,
                rank=pair.rank,
            )
        )
    compared = (Compared("entering gradients", count),) if count else ()
    return StageOutcome(inherited_from(found, diverged), compared=compared)


def _explain_entering(pair: StepPair, own: TensorData, other: TensorData) -> Cause | None:
    vectors = vectors_of(pair, own, other)
    factor = None if vectors is None else multiple_of(*vectors)
    if vectors is None or factor is None:
        return None
    message = phrase(
        "the gradient that enters the port is {factor} times that of the reference, the loss is the same",
        factor=f"{factor:.6g}",
    )
    fix = phrase("divide what the port goes backward from by {factor}", factor=f"{factor:.6g}")
    before, after = unlike(*vectors), unlike(vectors[0], factor * vectors[1])
    return Claim("grad.scale", message, fix).proven(ProvenBy.RELATED, before, after)
