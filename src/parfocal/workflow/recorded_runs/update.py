"""Stage: what an update adds to every parameter, and what the optimizers are set to.

Updates are compared by their projections, which are linear: what holds between tensors holds there. An
update may be off by what its gradient is off. Optimizers that divide by the size of a gradient turn the
sign of an element that is nothing but rounding into a whole step: of those the sizes of updates are
compared, parameter by parameter, and the updates themselves only all together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from parfocal.backends.vocabulary.meanings import optimizers
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, Size
from parfocal.judge.verdict import Cause, Divergence, Finding
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.counterfactual import NOT_TRIED, Counterfactual, counterfactual_step
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.gradients import parameter_errors, sites_of
from parfocal.workflow.recorded_runs.pair import StageOutcome, StepPair, Vector
from parfocal.workflow.recorded_runs.parameters import ParameterTie, arrangement_of
from parfocal.workflow.recorded_runs.steps import BeforeAndAfter, RecordedStep
from parfocal.workflow.recorded_runs.update_causes import RecordedUpdate, explain_updates, factors_of
from parfocal.workflow.recorded_runs.update_settings import differing_settings
from parfocal.workflow.recorded_runs.vectors import project_pair

LINEAR = frozenset({"SGD", "Momentum", "ASGD"})  # optimizers whose update is in proportion to the gradient
LIMIT = limits.recorded.UPDATE.value
SIZES = limits.recorded.UPDATE_SIZES.value
TOGETHER = limits.recorded.UPDATES_TOGETHER.value
SEEN = limits.recorded.UPDATE_SEEN.value
SAME_ORDER = limits.recorded.SAME_ORDER.value


@dataclass(frozen=True, slots=True)
class _Judged:
    evidence: RecordedUpdate
    error: float  # norm of the difference of the two updates
    judged: float  # what of that counts: all of it, or the difference of their sizes
    allowed: float
    rounding: float  # of the weights that were updated

    @property
    def score(self) -> float:
        return self.judged / self.allowed if self.allowed else (math.inf if self.judged else 0.0)


def compare_updates(pair: StepPair, diverged: bool) -> StageOutcome:
    _remember_gradients(pair)
    judged = list(_judge(pair))
    for each in judged:
        pair.memory.updates[each.evidence.tie.reference] = (
            each.evidence.port.update,
            each.evidence.reference.update,
        )
    pair.memory.rates = _rate(pair.port), _rate(pair.reference)
    moved = [each for each in judged if each.evidence.moved]
    counterfactual = counterfactual_step(pair) if moved else NOT_TRIED
    wrong = [each for each in moved if each.score > LIMIT] or _wrong_together(moved)
    parted = [each for each in moved if each.error > SEEN * each.rounding]
    if not wrong:
        # What is lost among the differences of gradients. Where updates and slots of both sides agree, they
        # were not made from the recorded gradients, which were clipped or reduced by hand since.
        wrong = [
            each
            for each in moved
            if each.evidence.tie.reference in counterfactual.wrong
            and (each in parted or each.evidence.tie.reference in counterfactual.slots_apart)
        ]
    settings = differing_settings(pair)
    seen = not moved or bool(parted)
    left_out = _left_out(pair)
    compared = (Compared("updates of parameters", len(moved), len(pair.parameters)),) if moved else ()
    if counterfactual.tried:
        compared = (*compared, Compared("updates made again by the reference's rule", counterfactual.tried))
    if not wrong and not (settings and seen):
        findings = tuple(Finding("run.settings", each.message) for each in settings)
        return StageOutcome(findings=findings, compared=compared, left_out=left_out)
    cause = _exact(counterfactual) or explain_updates(
        pair, settings, [each.evidence for each in moved], diverged
    )
    worst = max(wrong or moved, key=lambda each: each.score, default=None)
    if worst is None:
        sites, what, score, noise = pair.sites(), phrase("settings of the optimizer"), math.inf, 0.0
    else:
        first = min(wrong or moved, key=lambda each: -each.score)
        sites, score, noise = sites_of(first.evidence.tie), first.score, first.allowed
        what = phrase("update of the parameter {name}", name=first.evidence.tie.name)
    others = (
        phrase("so are the updates of {count} more parameters", count=len(wrong) - 1)
        if len(wrong) > 1
        else ""
    )
    found = Divergence(
        "optimizer",
        *sites,
        what,
        None,
        Size(noise, noise),
        score,
        others,
        cause=cause,
        step=pair.step,
        rank=pair.rank,
    )
    known = cause is None or cause.code in pair.memory.causes
    pair.memory.causes |= {cause.code} if cause is not None else set()
    return StageOutcome(inherited_from([found], diverged and known), compared=compared, left_out=left_out)


def _exact(counterfactual: Counterfactual) -> Cause | None:
    """What the reference's rule, made on the port's own numbers, shows."""
    if not counterfactual.causes:
        return None
    first, *rest = counterfactual.causes
    return replace(first, alternatives=tuple(rest))


def _left_out(pair: StepPair) -> tuple[LeftOut, ...]:
    sides = [
        any(m.after is not None for m in side.parameters.values()) for side in (pair.reference, pair.port)
    ]
    if sides[0] != sides[1]:
        reason = Reason.ONLY_REFERENCE if sides[0] else Reason.ONLY_PORT
        return (LeftOut(phrase("updates of parameters"), reason),)
    paths = tuple(sorted(pair.memory.unordered))
    if not paths:
        return ()
    words = phrase("their values differ from the start, or lie in another order")
    return (LeftOut(phrase("updates of parameters"), Reason.IMPOSSIBLE, words, paths),)


def _remember_gradients(pair: StepPair) -> None:
    """An optimizer's state carries the errors of earlier gradients on."""
    known = pair.memory.gradient_errors
    for each in parameter_errors(pair):
        path = each.tie.reference
        known[path] = max(known.get(path, 0.0), each.relative if math.isfinite(each.relative) else 1.0)


def _judge(pair: StepPair) -> Iterator[_Judged]:
    found = [each for each in (_evidence(pair, tie) for tie in pair.parameters) if each is not None]
    descends = factors_of(found, "reference") is not None
    for evidence in found:
        ours, theirs = evidence.reference, evidence.port
        error = float(np.linalg.norm(theirs.update - ours.update))
        sizes = [float(np.linalg.norm(each.update)) for each in (ours, theirs)]
        weights = max(float(np.linalg.norm(each.after)) for each in (ours, theirs))
        rounding = evidence.epsilon * weights
        given = max(pair.memory.gradient_errors.get(evidence.tie.reference, pair.drift), pair.unit)
        if _is_linear(pair, evidence.tie, descends):
            yield _Judged(evidence, error, error, rounding + max(sizes) * given, rounding)
        else:
            allowed = rounding + max(sizes) * (SIZES + math.sqrt(given))
            yield _Judged(evidence, error, abs(sizes[1] - sizes[0]), allowed, rounding)


def _is_linear(pair: StepPair, tie: ParameterTie, descends: bool) -> bool:
    """Whether updates are in proportion to gradients, as the optimizers say, or else as the updates show."""
    kinds = {side.updates[path].kind for side, path in _sides(pair, tie) if path in side.updates}
    known = kinds & optimizers().keys()
    return known <= LINEAR and (descends or (bool(kinds) and known == kinds))


def _wrong_together(moved: list[_Judged]) -> list[_Judged]:
    """All parameters as one: a few elements that turned round are lost among all others."""
    error, allowed = (
        math.sqrt(sum(each**2 for each in numbers))
        for numbers in ([each.error for each in moved], [each.allowed for each in moved])
    )
    return moved if error > TOGETHER * allowed else []


def _sides(pair: StepPair, tie: ParameterTie) -> tuple[tuple[RecordedStep, str], tuple[RecordedStep, str]]:
    return (pair.reference, tie.reference), (pair.port, tie.port)


def _evidence(pair: StepPair, tie: ParameterTie) -> RecordedUpdate | None:
    """Weights before and after, and gradients, as projections in one order."""
    ours, theirs = pair.reference.parameters.get(tie.reference), pair.port.parameters.get(tie.port)
    if ours is None or theirs is None:
        return None
    before = _projections(pair, tie, ours, theirs, "before")
    after = _projections(pair, tie, ours, theirs, "after")
    if before is None or after is None:
        return None
    if pair.first and np.linalg.norm(before[0] - before[1]) > SAME_ORDER * np.linalg.norm(before[1]):
        pair.memory.unordered.add(tie.reference)
    if tie.reference in pair.memory.unordered:
        return None  # other values, or the same in another order: the projections cannot be compared
    gradients: tuple[Vector | None, Vector | None] = (None, None)
    own, other = pair.port.gradients.get(tie.port), pair.reference.gradients.get(tie.reference)
    if own is not None and other is not None:
        lies = arrangement_of(tie, pair.reference, pair.port, own, other)
        gradients = project_pair(pair, own, other, lies) or gradients
    dtype = theirs.before.dtype if theirs.before is not None else "float32"
    previous = _at_present_rates(pair, pair.memory.updates.get(tie.reference))
    return RecordedUpdate.of(tie, before, after, gradients, previous, EPSILON.get(dtype, 0.0))


def _at_present_rates(
    pair: StepPair, updates: tuple[Vector, Vector] | None
) -> tuple[Vector | None, Vector | None]:
    """The last updates as they would have been at the rates of this step: momentum is of what they are of."""
    if updates is None:
        return None, None
    now = _rate(pair.port), _rate(pair.reference)
    own, other = (
        update * (present / last) if last and present is not None else update
        for update, present, last in zip(updates, now, pair.memory.rates, strict=True)
    )
    return own, other


def _rate(side: RecordedStep) -> float | None:
    return side.end.learning_rate if side.end is not None else None


def _projections(
    pair: StepPair, tie: ParameterTie, ours: BeforeAndAfter, theirs: BeforeAndAfter, moment: str
) -> tuple[Vector, Vector] | None:
    own, other = getattr(theirs, moment), getattr(ours, moment)
    if own is None or other is None:
        return None
    return project_pair(pair, own, other, arrangement_of(tie, pair.reference, pair.port, own, other))
