"""Why two learning rates go different ways: hypotheses about a curve, each tested on all of its points.

A hypothesis turns the reference's curve into the one the port would have if it were right, and is the cause
only if that is the port's curve up to rounding. Only NumPy: recorded rates are explained as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.causes import number, rounded
from parfocal.explain.rate_shapes import shape_of
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy
from parfocal.phrases import phrase

FURTHEST = limits.searches.RATE_SHIFTS.value
MOST = limits.searches.RATE_EPOCHS.value
FEW = limits.causes.RATE_POINTS.value
CANCELLED = limits.causes.CANCELLED.value * EPSILON["float64"]


@dataclass(frozen=True, slots=True)
class RatePair:
    """The learning rate of every update on both sides, and what is known of the port's."""

    reference: Array
    port: Array
    given_number: bool = False  # the port's optimizer was given a number and has a scheduler besides

    @property
    def steps(self) -> int:
        return len(self.reference)


def rounding(reference: Array) -> Array:
    """How far apart two rates may be and still make the same update in float32."""
    largest = float(np.abs(reference).max(initial=0.0))
    return np.abs(reference) * EPSILON["float32"] + largest * CANCELLED


def distance(port: Array, reference: Array) -> float:
    """The largest difference in units of rounding; infinite where one is not a number."""
    if not len(port):
        return np.inf
    floor = np.maximum(rounding(reference), np.finfo(np.float64).tiny)
    apart = np.abs(port - reference) / floor
    return float(np.nanmax(apart)) if np.isfinite(port).all() else np.inf


Curves = Sequence[tuple[Array, Array]]  # what a hypothesis makes, and what that should be


@dataclass(frozen=True, slots=True)
class RateClaim:
    """A hypothesis, and the curves that it makes beside those that they should be."""

    claim: Claim
    curves: Curves = ()


def cause_of(rates: RatePair, limit: float) -> Cause | None:
    """The first hypothesis that makes the curves one; the others that do as alternatives."""
    found = [_tested(each, rates, limit) for make in HYPOTHESES for each in make(rates, limit)]
    return replace(found[0], alternatives=tuple(found[1:])) if found else None


def _tested(found: RateClaim, rates: RatePair, limit: float) -> Cause:
    """Proven by curves that are one; a description of both curves alone makes it likely."""
    before = distance(rates.port, rates.reference)
    after = max((distance(*each) for each in found.curves), default=np.inf)
    return found.claim.judged(ProvenBy.RELATED, before, after, limit, Grounds.VALUES)


def _is_constant(curve: Array, limit: float) -> bool:
    return distance(curve, np.full_like(curve, curve[0])) <= limit


def _constant(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    still = [_is_constant(side, limit) for side in (rates.reference, rates.port)]
    if rates.steps < 2 or still[0] == still[1]:
        return
    ways = [
        phrase("stays {rate}", rate=number(float(side[0])))
        if is_still
        else phrase("goes from {span}", span=_span(side))
        for side, is_still in zip((rates.reference, rates.port), still, strict=True)
    ]
    message = phrase(
        "the port's learning rate {port}; the reference's {reference}", port=ways[1], reference=ways[0]
    )
    if still[0]:
        fix = phrase("leave the port's learning rate constant: no scheduler")
        unscheduled = np.full_like(rates.port, rates.port[0])
        yield RateClaim(Claim("lr.constant", message, fix), [(unscheduled, rates.reference)])
        return
    if rates.given_number:
        message += phrase(": the optimizer was given a number, so its scheduler changes nothing")
    fix = phrase(
        "give the scheduler itself to the optimizer (learning_rate=scheduler) and step it after each update"
    )
    unscheduled = np.full_like(rates.reference, rates.reference[0])
    yield RateClaim(Claim("lr.constant", message, fix), [(rates.port, unscheduled)])


def _span(curve: Array) -> str:
    return phrase("{first} to {last}", first=number(float(curve[0])), last=number(float(curve[-1])))


def _shifted(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """The same curve shifted by some steps; at least half of it must overlap, or any curve would fit."""
    for by in range(1, min(FURTHEST, rates.steps - FEW, rates.steps // 2) + 1):
        for early in (True, False):
            ours = rates.reference[by:] if early else rates.reference[:-by]
            theirs = rates.port[:-by] if early else rates.port[by:]
            if _is_constant(ours, limit) or distance(theirs, ours) > limit:
                continue
            steps = phrase("1 step") if by == 1 else phrase("{by} steps", by=by)
            if early:
                message = phrase("the port's schedule is {steps} ahead of the reference's", steps=steps)
                fix = phrase(
                    "the port's scheduler is stepped once too often before the first update: step it once "
                    "after each update, {steps} less before the first",
                    steps=steps,
                )
            else:
                message = phrase("the port's schedule is {steps} behind the reference's", steps=steps)
                fix = phrase(
                    "the port's scheduler is stepped later than the reference's: step it once after each "
                    "update, {steps} earlier",
                    steps=steps,
                )
            yield RateClaim(Claim("lr.offset", message, fix), [(theirs, ours)])
            return


def _stretched(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """One side steps its schedule per update, the other per epoch."""
    for every in range(2, min(MOST, rates.steps // 2) + 1):
        held = np.arange(rates.steps) // every
        for slower, ours, theirs in (
            (True, rates.reference[held], rates.port),
            (False, rates.port[held], rates.reference),
        ):
            if _is_constant(ours, limit) or distance(theirs, ours) > limit:
                continue
            slow, fast = (
                (phrase("port"), phrase("reference")) if slower else (phrase("reference"), phrase("port"))
            )
            message = phrase(
                "the {slow}'s schedule goes on every {every} updates, the {fast}'s at every update",
                slow=slow,
                every=every,
                fast=fast,
            )
            fix = (
                phrase("step the port's scheduler after every update")
                if slower
                else phrase("step the port's scheduler once in {every} updates (an epoch)", every=every)
            )
            yield RateClaim(Claim("lr.value", message, fix), [(theirs, ours)])
            return


def _scaled(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    used = np.abs(rates.reference) > 0
    if not used.any() or not np.abs(rates.port[used]).any():
        return
    at = int(np.argmax(np.abs(rates.reference)))
    factor = rounded(float(rates.port[at] / rates.reference[at]))
    if factor == 1.0 or distance(rates.port, rates.reference * factor) > limit:
        return
    right, wrong = number(float(rates.reference[at])), number(float(rates.port[at]))
    message = phrase(
        "the port's learning rate is {factor} times the reference's ({wrong} for {right})",
        factor=number(factor),
        wrong=wrong,
        right=right,
    )
    fix = phrase("write {right} where the port's learning rate is {wrong}", right=right, wrong=wrong)
    yield RateClaim(Claim("lr.value", message, fix), [(rates.port, rates.reference * factor)])


def _ending(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """The same curve from the same start to another end: the difference is proportional to the progress."""
    ends = [float(side[-1]) for side in (rates.reference, rates.port)]
    peak = int(np.argmax(np.abs(rates.reference)))
    top = float(rates.reference[peak])
    if rates.steps - peak < FEW + 2 or top == ends[0] or abs(ends[0] - ends[1]) == 0.0:
        return
    expected = rates.reference.copy()
    tail = slice(peak, None)
    expected[tail] = ends[1] + (expected[tail] - ends[0]) * (top - ends[1]) / (top - ends[0])
    floored = np.maximum(rates.reference, ends[1])
    for curve, how in ((expected, phrase("falls to")), (floored, phrase("never falls below"))):
        if distance(rates.port, curve) <= limit and distance(curve, rates.reference) > limit:
            wrong, right = number(ends[1]), number(ends[0])
            message = phrase(
                "the port's learning rate {how} {wrong} at the end, the reference's to {right}",
                how=how,
                wrong=wrong,
                right=right,
            )
            shape = shape_of(rates.reference, distance, limit)  # its end may lie behind the last update
            fix = (
                phrase("set the end of the port's schedule to {right}", right=right)
                if shape is None
                else phrase("make the port's schedule {shape}", shape=shape.in_words())
            )
            yield RateClaim(Claim("lr.end", message, fix), [(rates.port, curve)])
            return


def _jumps(curve: Array) -> list[int]:
    floor = np.maximum(rounding(curve)[1:], rounding(curve)[:-1]) * 4
    return [int(at) + 1 for at in np.flatnonzero(np.abs(np.diff(curve)) > floor)]


def _milestones(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """Two curves in steps: at other updates, or by another factor."""
    ours, theirs = _jumps(rates.reference), _jumps(rates.port)
    if not ours or not theirs:
        return
    curves = _with_levels(rates, ours, theirs) if ours != theirs else ()
    exact = any(distance(*each) <= limit for each in curves)  # as a curve of few updates, all of them steps
    if not exact and any(np.diff(jumps).min(initial=2) < 2 for jumps in (ours, theirs)):
        return  # a curve that goes on at every update has no steps
    if ours != theirs:
        shown = [some([str(at) for at in jumps], 6) for jumps in (ours, theirs)]
        message = phrase(
            "the learning rate changes at updates {reference} in the reference, {port} in the port",
            reference=shown[0],
            port=shown[1],
        )
        fix = phrase("change the port's rate at updates {shown}", shown=shown[0])
        yield RateClaim(Claim("lr.value", message, fix), curves)
        return
    factors = [float(side[ours[0]] / side[ours[0] - 1]) for side in (rates.reference, rates.port)]
    if abs(factors[0] - factors[1]) > 1e-6 * abs(factors[0]):
        right, wrong = (number(rounded(each)) for each in factors)
        message = phrase(
            "each step multiplies the learning rate by {reference} in the reference, by {port} in the port",
            reference=right,
            port=wrong,
        )
        fix = phrase("write {right} for the port's factor {wrong}", right=right, wrong=wrong)
        passed = np.searchsorted(ours, np.arange(rates.steps), side="right")
        made = rates.reference[0] * factors[1] ** passed
        yield RateClaim(Claim("lr.value", message, fix), [(rates.port, made)])


def _with_levels(rates: RatePair, ours: Sequence[int], theirs: Sequence[int]) -> Curves:
    """The reference's rates, changed at the port's updates; nothing where the port changes more often."""
    levels = rates.reference[[0, *ours]]
    passed = np.searchsorted(theirs, np.arange(rates.steps), side="right")
    return [(rates.port, levels[passed])] if passed.max() < len(levels) else ()


def _geometric(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """Every update multiplies the rate, by another number on either side."""
    if rates.steps < FEW + 1 or any((side <= 0).any() for side in (rates.reference, rates.port)):
        return
    factors = []
    for side in (rates.reference, rates.port):
        factor = float(side[1] / side[0])
        if distance(side[0] * factor ** np.arange(rates.steps), side) > limit * rates.steps:
            return
        factors.append(factor)
    right, wrong = (number(rounded(each)) for each in factors)
    message = phrase(
        "each update multiplies the learning rate by {reference} in the reference, by {port} in the port",
        reference=right,
        port=wrong,
    )
    if abs(factors[1] - np.exp(factors[0])) <= 1e-6 or abs(factors[1] - np.exp(-factors[0])) <= 1e-6:
        message += phrase(" (the exponential of it)")
    fix = phrase("make every update multiply the port's rate by {right}", right=right)
    made = rates.reference[0] * factors[1] ** np.arange(rates.steps)
    yield RateClaim(Claim("lr.value", message, fix), [(rates.port, made)])


def _warming(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """Different at the beginning only, where one side rises."""
    apart = np.abs(rates.port - rates.reference) / np.maximum(rounding(rates.reference), 1e-300)
    wrong = np.flatnonzero(apart > limit)
    last = int(wrong[-1])
    if wrong[0] > 1 or last + 1 > rates.steps - FEW or last > rates.steps // 2:
        return
    if not any((np.diff(side[: last + 2]) > 0).any() for side in (rates.reference, rates.port)):
        return
    ours, theirs = (
        some([number(float(x)) for x in side[: last + 2]], 4) for side in (rates.reference, rates.port)
    )
    message = phrase("only the first {last} updates differ (the warm-up): ", last=last + 1)
    message += phrase("{reference} in the reference, {port} in the port", reference=ours, port=theirs)
    fix = phrase("make the port's warm-up give {ours}", ours=ours)
    yield RateClaim(Claim("lr.value", message, fix))


def _shaped(rates: RatePair, limit: float) -> Iterator[RateClaim]:
    """Two formulas, or one with other numbers."""
    ours, theirs = (shape_of(side, distance, limit) for side in (rates.reference, rates.port))
    if ours is None or theirs is None or ours == theirs:
        return
    right, wrong = ours.in_words(), theirs.in_words()
    message = phrase(
        "the learning rate is {reference} in the reference; {port} in the port", reference=right, port=wrong
    )
    fix = phrase("make the port's schedule {shape}", shape=right)
    curves = [(ours.curve, rates.reference), (theirs.curve, rates.port)]
    yield RateClaim(Claim("lr.value", message, fix), curves)


Hypothesis = Callable[[RatePair, float], Iterator[RateClaim]]
# In order of how much they say: what explains every point by one number goes first.
HYPOTHESES: tuple[Hypothesis, ...] = (
    _constant,
    _shifted,
    _stretched,
    _scaled,
    _ending,
    _milestones,
    _geometric,
    _warming,
    _shaped,
)
