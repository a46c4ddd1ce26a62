"""Why two learning rates go different ways: hypotheses about a curve, each tested on all of its points.

A hypothesis turns the reference's curve into the one the port would have if it were right, and is the cause
only if that is the port's curve up to rounding. Only NumPy: recorded rates are explained as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.causes import number, rounded
from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import Cause

FURTHEST = 64  # steps that a curve is looked for earlier or later
MOST = 1024  # steps between two of a schedule that goes by epochs
FEW = 3  # points that a hypothesis must be seen at, besides those it is fitted to
CANCELLED = 64 * EPSILON["float64"]  # of the largest rate: what is left of a cosine near its end


@dataclass(frozen=True, slots=True)
class Rates:
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


def cause_of(rates: Rates, limit: float) -> Cause | None:
    """The first hypothesis that makes the curves one; the others that do as alternatives."""
    found = [each for make in HYPOTHESES for each in make(rates, limit)]
    return replace(found[0], alternatives=tuple(found[1:])) if found else None


def _is_constant(curve: Array, limit: float) -> bool:
    return distance(curve, np.full_like(curve, curve[0])) <= limit


def _constant(rates: Rates, limit: float) -> Iterator[Cause]:
    still = [_is_constant(side, limit) for side in (rates.reference, rates.port)]
    if rates.steps < 2 or still[0] == still[1]:
        return
    ways = [
        f"stays {number(float(side[0]))}" if is_still else f"goes from {_span(side)}"
        for side, is_still in zip((rates.reference, rates.port), still, strict=True)
    ]
    message = f"the port's learning rate {ways[1]}; the reference's {ways[0]}"
    if still[0]:
        yield Cause("lr.constant", message, "leave the port's learning rate constant: no scheduler", 0.0)
        return
    if rates.given_number:
        message += ": the optimizer was given a number, so its scheduler changes nothing"
    fix = "give the scheduler itself to the optimizer (learning_rate=scheduler) and step it after each update"
    yield Cause("lr.constant", message, fix, 0.0)


def _span(curve: Array) -> str:
    return f"{number(float(curve[0]))} to {number(float(curve[-1]))}"


def _shifted(rates: Rates, limit: float) -> Iterator[Cause]:
    """The same curve some steps earlier or later."""
    for by in range(1, min(FURTHEST, rates.steps - FEW) + 1):
        for early in (True, False):
            ours = rates.reference[by:] if early else rates.reference[:-by]
            theirs = rates.port[:-by] if early else rates.port[by:]
            if _is_constant(ours, limit) or (score := distance(theirs, ours)) > limit:
                continue
            steps = "1 step" if by == 1 else f"{by} steps"
            message = f"the port's schedule is {steps} {'ahead of' if early else 'behind'} the reference's"
            when = "once too often before the first update" if early else "later than the reference's"
            fix = f"the port's scheduler is stepped {when}: step it once after each update, {steps} "
            fix += "less before the first" if early else "earlier"
            yield Cause("lr.offset", message, fix, score)
            return


def _stretched(rates: Rates, limit: float) -> Iterator[Cause]:
    """One side goes by updates and the other by epochs of so many updates."""
    for every in range(2, min(MOST, rates.steps // 2) + 1):
        held = np.arange(rates.steps) // every
        for slower, ours, theirs in (
            (True, rates.reference[held], rates.port),
            (False, rates.port[held], rates.reference),
        ):
            if _is_constant(ours, limit) or (score := distance(theirs, ours)) > limit:
                continue
            slow, fast = ("port", "reference") if slower else ("reference", "port")
            message = f"the {slow}'s schedule goes on every {every} updates, the {fast}'s at every update"
            when = "after every update" if slower else f"once in {every} updates (an epoch)"
            yield Cause("lr.value", message, f"step the port's scheduler {when}", score)
            return


def _scaled(rates: Rates, limit: float) -> Iterator[Cause]:
    used = np.abs(rates.reference) > 0
    if not used.any() or not np.abs(rates.port[used]).any():
        return
    at = int(np.argmax(np.abs(rates.reference)))
    factor = rounded(float(rates.port[at] / rates.reference[at]))
    if factor == 1.0 or (score := distance(rates.port, rates.reference * factor)) > limit:
        return
    right, wrong = number(float(rates.reference[at])), number(float(rates.port[at]))
    message = f"the port's learning rate is {number(factor)} times the reference's ({wrong} for {right})"
    yield Cause("lr.value", message, f"write {right} where the port's learning rate is {wrong}", score)


def _ending(rates: Rates, limit: float) -> Iterator[Cause]:
    """The same way from the same start to another end: the two differ by a multiple of the way gone."""
    ends = [float(side[-1]) for side in (rates.reference, rates.port)]
    peak = int(np.argmax(np.abs(rates.reference)))
    top = float(rates.reference[peak])
    if rates.steps - peak < FEW + 2 or top == ends[0] or abs(ends[0] - ends[1]) == 0.0:
        return
    expected = rates.reference.copy()
    tail = slice(peak, None)
    expected[tail] = ends[1] + (expected[tail] - ends[0]) * (top - ends[1]) / (top - ends[0])
    floored = np.maximum(rates.reference, ends[1])
    for curve, how in ((expected, "falls to"), (floored, "never falls below")):
        if (score := distance(rates.port, curve)) <= limit and distance(curve, rates.reference) > limit:
            wrong, right = number(ends[1]), number(ends[0])
            message = f"the port's learning rate {how} {wrong} at the end, the reference's to {right}"
            yield Cause("lr.end", message, f"set the end of the port's schedule to {right}", score)
            return


def _jumps(curve: Array) -> list[int]:
    floor = np.maximum(rounding(curve)[1:], rounding(curve)[:-1]) * 4
    return [int(at) + 1 for at in np.flatnonzero(np.abs(np.diff(curve)) > floor)]


def _milestones(rates: Rates, limit: float) -> Iterator[Cause]:
    """Two curves in steps: at other updates, or by another factor."""
    ours, theirs = _jumps(rates.reference), _jumps(rates.port)
    if not ours or not theirs or any(np.diff(jumps).min(initial=2) < 2 for jumps in (ours, theirs)):
        return  # a curve that goes on at every update has no steps
    if ours != theirs:
        shown = [some([str(at) for at in jumps], 6) for jumps in (ours, theirs)]
        message = f"the learning rate changes at updates {shown[0]} in the reference, {shown[1]} in the port"
        yield Cause("lr.value", message, f"change the port's rate at updates {shown[0]}", 0.0)
        return
    factors = [float(side[ours[0]] / side[ours[0] - 1]) for side in (rates.reference, rates.port)]
    if abs(factors[0] - factors[1]) > 1e-6 * abs(factors[0]):
        right, wrong = (number(rounded(each)) for each in factors)
        message = (
            f"each step multiplies the learning rate by {right} in the reference, by {wrong} in the port"
        )
        yield Cause("lr.value", message, f"write {right} for the port's factor {wrong}", 0.0)


def _warming(rates: Rates, limit: float) -> Iterator[Cause]:
    """Different at the beginning only."""
    apart = np.abs(rates.port - rates.reference) / np.maximum(rounding(rates.reference), 1e-300)
    wrong = np.flatnonzero(apart > limit)
    last = int(wrong[-1])
    if wrong[0] > 1 or last + 1 > rates.steps - FEW or last > rates.steps // 2:
        return
    ours, theirs = (
        some([number(float(x)) for x in side[: last + 2]], 4) for side in (rates.reference, rates.port)
    )
    message = f"only the first {last + 1} updates differ (the warm-up): "
    message += f"{ours} in the reference, {theirs} in the port"
    fix = f"make the port's warm-up give {ours}"
    yield Cause("lr.value", message, fix, 0.0)


Hypothesis = Callable[[Rates, float], Iterator[Cause]]
# In order of how much they say: what explains every point by one number goes first.
HYPOTHESES: tuple[Hypothesis, ...] = (
    _constant,
    _shifted,
    _stretched,
    _scaled,
    _ending,
    _milestones,
    _warming,
)
