"""Why updates differ: as the optimizers are set, or as their updates, computed again, show.

An update of gradient descent is a sum of the gradient, the weight and the last update, each with a
factor: the rate, the decay and the momentum. The factors are solved for on both sides. Of any other
optimizer the difference of two updates is looked at: decay apart from the gradient leaves a multiple of
the weight there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parfocal.brief import some
from parfocal.judge import limits
from parfocal.judge.verdict import SIDES, Cause, Claim, Grounds, ProvenBy, side_name
from parfocal.phrases import phrase
from parfocal.workflow.recorded_runs.pair import StepPair, Vector
from parfocal.workflow.recorded_runs.parameters import ParameterTie
from parfocal.workflow.recorded_runs.update_settings import DifferingSetting

FITTED = limits.recorded.UPDATE_FITTED.value
CLEAR = limits.recorded.FACTOR_CLEAR.value
WHOLE = limits.recorded.FACTOR_THROUGHOUT.value


@dataclass(frozen=True, slots=True)
class RecordedSideUpdate:
    """One side's parameter over one update, as projections."""

    before: Vector
    after: Vector
    gradient: Vector | None
    previous: Vector | None  # the update of the step before, at the rate of this one

    @property
    def update(self) -> Vector:
        return self.after - self.before

    def stands_still(self, epsilon: float) -> bool:
        """Whether it is not moved by a gradient that would move it, as far as one is known."""
        moving = self.gradient is None or _norm(self.gradient) > epsilon * _norm(self.before)
        return moving and not np.any(self.update)


def _norm(vector: Vector) -> float:
    return float(np.linalg.norm(vector))


@dataclass(frozen=True, slots=True)
class RecordedUpdate:
    """One parameter's update on both sides."""

    tie: ParameterTie
    reference: RecordedSideUpdate
    port: RecordedSideUpdate
    epsilon: float

    @staticmethod
    def of(
        tie: ParameterTie,
        before: tuple[Vector, Vector],
        after: tuple[Vector, Vector],
        gradients: tuple[Vector | None, Vector | None],
        previous: tuple[Vector | None, Vector | None],
        epsilon: float,
    ) -> RecordedUpdate:
        """Of pairs whose first is the port's."""
        port, reference = (
            RecordedSideUpdate(before[side], after[side], gradients[side], previous[side]) for side in (0, 1)
        )
        return RecordedUpdate(tie, reference, port, epsilon)

    @property
    def moved(self) -> bool:
        return any(bool(np.any(each.update)) for each in (self.reference, self.port))


@dataclass(frozen=True, slots=True)
class _Factors:
    """``update = -rate * (gradient + decay * weight) + momentum * last update``."""

    rate: float
    decay: float
    momentum: float

    def update_of(self, side: RecordedSideUpdate) -> Vector:
        gradient = np.zeros_like(side.before) if side.gradient is None else side.gradient
        past = np.zeros_like(side.before) if side.previous is None else side.previous
        made: Vector = -self.rate * (gradient + self.decay * side.before) + self.momentum * past
        return made


def explain_updates(
    pair: StepPair, settings: Sequence[DifferingSetting], evidence: Sequence[RecordedUpdate], diverged: bool
) -> Cause | None:
    """``diverged``: gradients or rates part already, so that only each side by itself says anything."""
    causes = [_as_set(each) for each in settings if each.telling]
    shown = (_frozen(evidence), _by_factors(pair, evidence), None if diverged else _by_decay(pair, evidence))
    causes += [each for each in shown if each is not None]
    causes += [_as_set(each) for each in settings if not each.telling]
    if not causes:
        return None
    codes = dict.fromkeys(each.code for each in causes)
    distinct = [next(each for each in causes if each.code == code) for code in codes]
    first = distinct[0]
    return replace(first, alternatives=tuple(distinct[1:]))


def _as_set(setting: DifferingSetting) -> Cause:
    return Claim(setting.code, setting.message, setting.fix).likely(Grounds.SETTINGS)


def _frozen(evidence: Sequence[RecordedUpdate]) -> Cause | None:
    """Parameters that only one side moves."""
    for side, other in (SIDES[::-1], SIDES):
        still = [
            each.tie.name
            for each in evidence
            if getattr(each, side).stands_still(each.epsilon) and np.any(getattr(each, other).update)
        ]
        if still:
            message = phrase(
                "{places} is not updated in the {side}", places=some(still, 1), side=side_name(side)
            )
            fix = phrase("see that the {side}'s optimizer has all parameters", side=side_name(side))
            return Claim("optim.lr_group", message, fix).likely(Grounds.VALUES)
    return None


def _by_factors(pair: StepPair, evidence: Sequence[RecordedUpdate]) -> Cause | None:
    """Gradient descent: rate, decay and momentum are solved for on both sides."""
    ours, theirs = factors_of(evidence, "reference"), factors_of(evidence, "port")
    if ours is None or theirs is None:
        return None
    changed = replace(theirs, momentum=ours.momentum, decay=ours.decay)

    def judged(claim: Claim) -> Cause:
        """By the updates that the port would make of its own numbers with the reference's factors."""
        before = max(_unlike(each.port.update, each.reference.update) for each in evidence)
        after = max(_unlike(changed.update_of(each.port), each.reference.update) for each in evidence)
        return claim.judged(ProvenBy.RECOMPUTED, before, after, 1.0, Grounds.VALUES)

    if _differ(ours.momentum, theirs.momentum):
        return judged(_told("optim.momentum", phrase("momentum"), ours.momentum, theirs.momentum))
    if _differ(ours.decay, theirs.decay):
        return judged(_told("optim.weight_decay", phrase("weight decay"), ours.decay, theirs.decay))
    rates = [side.end.learning_rate if side.end is not None else None for side in (pair.reference, pair.port)]
    known = rates[1] / rates[0] if rates[0] and rates[1] else 1.0  # told by the learning rate
    if _differ(ours.rate * known, theirs.rate):
        changed = replace(changed, rate=ours.rate * known)
        return judged(_told("optim.update", phrase("learning rate in effect"), ours.rate, theirs.rate))
    return None


def _told(code: str, name: str, ours: float, theirs: float) -> Claim:
    shown = phrase(
        "{reference} in the reference and {port} in the port", reference=f"{ours:.4g}", port=f"{theirs:.4g}"
    )
    message = phrase("the updates, computed again, show a {name} of {shown}", name=name, shown=shown)
    return Claim(
        code, message, phrase("make the {name} of the port's update {ours}", name=name, ours=f"{ours:.4g}")
    )


def _unlike(made: Vector, wanted: Vector) -> float:
    """As a share of the update, in units of the difference of factors that is one."""
    size = float(np.linalg.norm(wanted))
    apart = float(np.linalg.norm(made - wanted))
    return apart / (CLEAR * size) if size else (math.inf if apart else 0.0)


def _differ(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) > max(CLEAR * max(abs(ours), abs(theirs)), NOTHING_FITTED)


NOTHING_FITTED = limits.recorded.FACTOR_NONE.value


def factors_of(evidence: Sequence[RecordedUpdate], side: str) -> _Factors | None:
    """One set of factors for all parameters; None where no such update was made."""
    rows: list[Vector] = []
    wanted: list[Vector] = []
    sides: list[RecordedSideUpdate] = [getattr(each, side) for each in evidence]
    with_past = any(each.previous is not None for each in sides)
    for each in sides:
        size = float(np.linalg.norm(each.update))
        if each.gradient is None or not size:
            continue
        past = each.previous if each.previous is not None else np.zeros_like(each.update)
        columns = [each.gradient, each.before, past] if with_past else [each.gradient, each.before]
        rows.append(np.stack(columns, axis=1) / size)
        wanted.append(each.update / size)
    if not rows:
        return None
    basis, target = np.concatenate(rows), np.concatenate(wanted)
    solved, *_ = np.linalg.lstsq(basis, target, rcond=None)
    left = float(np.linalg.norm(basis @ solved - target))
    if not solved[0] or left > FITTED * float(np.linalg.norm(target)):
        return None
    rate = -float(solved[0])
    return _Factors(rate, -float(solved[1]) / rate, float(solved[2]) if with_past else 0.0)


def _by_decay(pair: StepPair, evidence: Sequence[RecordedUpdate]) -> Cause | None:
    """What the two updates differ by is a multiple of the weight: decay that is apart from the gradient."""
    differences = [each.port.update - each.reference.update for each in evidence]
    weights = [each.reference.before for each in evidence]
    if not differences:
        return None
    apart, weight = np.concatenate(differences), np.concatenate(weights)
    power = float(weight @ weight)
    if not power:
        return None
    factor = float(apart @ weight) / power
    left = float(np.linalg.norm(apart - factor * weight))
    explained = abs(factor) * math.sqrt(power)
    if explained < WHOLE * left:
        return None
    rate = pair.reference.end.learning_rate if pair.reference.end is not None else None
    amount = phrase(": a weight decay of {abs} more", abs=f"{abs(factor) / rate:.4g}") if rate else ""
    side, other = SIDES if factor > 0 else SIDES[::-1]
    message = phrase(
        "the updates differ by {abs} of the weights: the {side} shrinks them more{amount}, the "
        "{other} does not",
        abs=f"{abs(factor):.4g}",
        side=side_name(side),
        amount=amount,
        other=side_name(other),
    )
    claim = Claim("optim.weight_decay", message, phrase("decay the port's weights as the reference's"))
    before, after = (WHOLE * each / explained for each in (float(np.linalg.norm(apart)), left))
    return claim.proven(ProvenBy.RELATED, before, after)
