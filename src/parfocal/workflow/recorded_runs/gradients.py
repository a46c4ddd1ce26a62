"""Stage: gradients of parameters, judged beside the calls that use the parameters.

A parameter's gradient is a sum over everything its layer saw, and may cancel down to nothing but
rounding. So its error is put in relation not to the gradient but to what was summed: the size of
the layer's values times that of the gradients that came back to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Cause, Claim, Divergence, Proof, ProvenBy, Site, side_name
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData
from parfocal.report.coverage import Compared
from parfocal.workflow.recorded_runs.call_errors import GIVEN, CallErrors
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.pair import SMALLEST_UNIT, StageOutcome, StepPair, Vector
from parfocal.workflow.recorded_runs.parameters import ParameterTie, arrangement_of
from parfocal.workflow.recorded_runs.rank_causes import reduction_cause
from parfocal.workflow.recorded_runs.steps import Reduction
from parfocal.workflow.recorded_runs.ties import tied_otherwise
from parfocal.workflow.recorded_runs.vectors import (
    PROPORTIONAL,
    multiple_of,
    project_pair,
    unlike,
    vectors_of,
)

SEVERAL = limits.recorded.SEVERAL.value


@dataclass(frozen=True, slots=True)
class ParameterError:
    """A parameter, and how far apart its two gradients are."""

    tie: ParameterTie
    error: float  # as a share of what was summed; infinite where only one side has a gradient
    given: float  # the error that its layers were given, going forward or backward
    relative: float = math.inf  # the error as a share of the gradient itself
    unit: float = 0.0  # what of that sum is rounding
    comparison: Comparison | None = None
    message: str = ""

    def as_divergence(self, pair: StepPair) -> Divergence:
        comparison, score, noise = self.comparison, self.error / self.given, NOTHING
        if comparison is not None and math.isfinite(score):
            noise = Size(comparison.rmse / score, comparison.max_abs / score)
        what = phrase("gradient of the parameter {name}", name=self.tie.name)
        return Divergence(
            "gradient",
            *sites_of(self.tie),
            what,
            comparison,
            noise,
            score,
            self.message,
            cause=tied_otherwise(self.tie, pair.reference, pair.port),
            step=pair.step,
            rank=pair.rank,
        )


def compare_gradients(pair: StepPair, diverged: bool) -> StageOutcome:
    """``diverged`` says nothing here: what a layer was given going backward does."""
    found = parameter_errors(pair)
    wrong = [each for each in found if _is_wrong(each, pair.limit)]
    scaled = _not_cleared(pair, wrong) or _scaled_throughout(pair, found, wrong)
    _remember(pair)
    divergences = [
        each if each.cause is not None else replace(each, cause=scaled)
        for each in (each.as_divergence(pair) for each in wrong)
    ]
    return StageOutcome(
        divergences=inherited_from(divergences, pair.parted),
        compared=(Compared("parameter gradients", len(found)),) if found else (),
    )


def gradients_part(pair: StepPair) -> bool:
    """Whether the gradient of any parameter is wrong."""
    return any(_is_wrong(each, pair.limit) for each in parameter_errors(pair))


def _remember(pair: StepPair) -> None:
    for tie in pair.parameters:
        vectors = _projected(pair, tie)
        if vectors is not None:
            pair.memory.gradients[tie.reference] = vectors[0]


def _projected(pair: StepPair, tie: ParameterTie) -> tuple[Vector, Vector] | None:
    own, other = pair.port.gradients.get(tie.port), pair.reference.gradients.get(tie.reference)
    if own is None or other is None:
        return None
    return project_pair(pair, own, other, arrangement_of(tie, pair.reference, pair.port, own, other))


def _not_cleared(pair: StepPair, wrong: Sequence[ParameterError]) -> Cause | None:
    """The port's gradients are the reference's and those of its own last step besides."""
    if len(wrong) < SEVERAL:
        return None
    before = after = 0.0
    for each in wrong:
        vectors, last = _projected(pair, each.tie), pair.memory.gradients.get(each.tie.reference)
        if vectors is None or last is None or not np.any(last):
            return None
        own, other = vectors
        before, after = max(before, unlike(own, other)), max(after, unlike(own, other + last))
        if after > 1.0:
            return None
    message = phrase("the port's gradients are the reference's with those of its last step added to them")
    fix = phrase("clear the port's gradients after every update")
    return Claim("grad.accumulated", message, fix).proven(ProvenBy.RELATED, before, after)


def _scaled_throughout(
    pair: StepPair, found: Sequence[ParameterError], wrong: Sequence[ParameterError]
) -> Cause | None:
    """All gradients of the port are the reference's times one number; the layers were given the same."""
    alive = [each for each in found if _is_alive(each, pair.limit)]
    if not wrong:
        return None
    reductions = pair.reference.reduction, pair.port.reduction
    if reductions.count(Reduction.NONE) == 1:
        return reduction_cause(pair)
    if len(wrong) < len(alive) or len(alive) < SEVERAL:
        return None
    factors = [_factor(pair, each.tie) for each in wrong]
    known = [factor for factor in factors if factor is not None]
    if len(known) < SEVERAL or max(known) - min(known) > PROPORTIONAL * abs(known[0]):
        return None
    factor = known[0]
    vectors = [both for each in wrong if (both := _in_one_order(pair, each.tie)) is not None]
    proof = Proof(
        ProvenBy.RELATED,
        max(unlike(own, other) for own, other in vectors),
        max(unlike(own, factor * other) for own, other in vectors),
    )
    reduced = reduction_cause(pair, factor, proof)
    if reduced is not None:
        return reduced
    message = phrase("every gradient of the port is {factor} times the reference's", factor=f"{factor:.6g}")
    fix = phrase("divide the port's gradients by {factor}", factor=f"{factor:.6g}")
    return Cause("grad.scale", message, fix, proof)


def _is_alive(each: ParameterError, limit: float) -> bool:
    """Whether the gradient is more than rounding: that of a bias before a BatchNorm is nothing else."""
    if not each.relative or not math.isfinite(each.relative):
        return False
    return each.error / each.relative > limit * each.given


def _factor(pair: StepPair, tie: ParameterTie) -> float | None:
    vectors = _in_one_order(pair, tie)
    return None if vectors is None else multiple_of(*vectors)


def _in_one_order(pair: StepPair, tie: ParameterTie) -> tuple[Vector, Vector] | None:
    own, other = pair.port.gradients.get(tie.port), pair.reference.gradients.get(tie.reference)
    if own is None or other is None:
        return None
    return vectors_of(pair, own, other, arrangement_of(tie, pair.reference, pair.port, own, other))


def _is_wrong(each: ParameterError, limit: float) -> bool:
    if math.isinf(each.error):
        return True
    return math.isfinite(each.given) and each.error > limit * each.given


def sites_of(tie: ParameterTie) -> tuple[Site, Site]:
    """Where a parameter is: the first call that uses it, or its module."""
    if tie.users:
        return tie.users[0].reference.site, tie.users[0].port.site
    owners = [path.rpartition(".")[0] for path in (tie.reference, tie.port)]
    return Site(owners[0], ""), Site(owners[1], "")


def parameter_errors(pair: StepPair) -> list[ParameterError]:
    """Of every parameter that both sides have, where both went backward."""
    if not (pair.reference.gradients and pair.port.gradients):
        return []
    return list(_measured(pair))


def _measured(pair: StepPair) -> Iterator[ParameterError]:
    for tie in pair.parameters:
        if tie.reference not in pair.reference.gradients:
            continue
        other, own = pair.reference.gradients[tie.reference], pair.port.gradients.get(tie.port)
        data = own or other
        if data is None:
            continue
        unit = GIVEN * EPSILON.get(data.dtype, SMALLEST_UNIT)
        given = max([unit, *(_given(user.errors) for user in tie.users)])
        if own is None or other is None:
            yield _one_sided(tie, data, given, "port" if own is None else "reference")
            continue
        lies = arrangement_of(tie, pair.reference, pair.port, own, other)
        apart = pair.distances.between(own, other, lies=lies)
        summed = max(sum(user.summed for user in tie.users), other.fingerprint.l2)
        error = apart.error * other.fingerprint.l2 / summed if apart.error and summed else 0.0
        yield ParameterError(tie, error, given, apart.error, unit, apart.comparison)


def _given(errors: CallErrors) -> float:
    return max(errors.given, errors.backward_given, errors.weights)


def _one_sided(tie: ParameterTie, data: TensorData, given: float, side: str) -> ParameterError:
    """A gradient of zeros and none at all are the same."""
    message = phrase("no gradient arrives in the {side}: frozen, or not used", side=side_name(side))
    if data.fingerprint.l1 == 0.0:
        return ParameterError(tie, 0.0, given, 0.0)
    finite = given if math.isfinite(given) else 1.0
    return ParameterError(tie, math.inf, finite, message=message)
