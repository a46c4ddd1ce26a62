"""What formula a learning rate follows: a warm-up, a plateau, a fall as a cosine, a line, a power and so on.

Each formula is a row of ``FALLS``: a function that solves for its numbers. A shape is told only if the curve
computed from these numbers is the given one, at every update. Only NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import number, rounded
from parfocal.judge import limits
from parfocal.phrases import phrase

SHORTEST = limits.causes.SHAPE_SHORTEST.value
POWERS = limits.causes.SHAPE_POWERS.value
NOTHING_LEFT = limits.causes.SHAPE_NOTHING_LEFT.value
STILL = limits.causes.SHAPE_STILL.value

Far = Callable[[Array, Array], float]  # how far a curve is from another, in units of rounding


@dataclass(frozen=True, slots=True)
class Fall:
    """How a rate decreases: a description, and the curve that it gives."""

    words: str
    curve: Array


@dataclass(frozen=True, slots=True)
class RateShape:
    """A curve by its formula: how it begins, how long it stays at its highest, how it falls."""

    parts: tuple[str, ...]
    curve: Array = field(compare=False)

    def in_words(self) -> str:
        words = self.parts[0]
        for part in self.parts[1:]:
            words = phrase("{first}, then {second}", first=words, second=part)
        return words


def shape_of(curve: Array, far: Far, limit: float) -> RateShape | None:
    """The formula that gives all of a curve, or None."""
    if not np.isfinite(curve).all() or curve.max() <= 0:
        return None
    highest = int(np.argmax(curve))
    # of a curve that comes back to its highest, up to rounding, the first time
    peak = next(at for at in range(highest + 1) if far(curve[at : at + 1], curve[highest:][:1]) <= limit)
    top = float(curve[peak])
    parts: list[str] = []
    line = np.linspace(curve[0], top, peak + 1)
    if peak:
        if far(curve[: peak + 1], line) > limit:
            return None
        parts.append(
            phrase("a warm-up from {start} over {count} updates", start=number(float(curve[0])), count=peak)
        )
    tail = curve[peak:]
    held = int(np.argmax(tail != top)) if (tail != top).any() else len(tail)
    if held > 1:
        parts.append(phrase("{top} for {count} updates", top=number(top), count=held))
    level = np.full(held, top)
    if held == len(tail):
        return RateShape(tuple(parts), np.concatenate([line[:-1], level]))
    falling = tail[held - 1 :]
    fall = next((each for each in _falls(falling) if far(falling, each.curve) <= limit), None)
    if fall is None:
        return None
    return RateShape((*parts, fall.words), np.concatenate([line[:-1], level[:-1], fall.curve]))


def _falls(curve: Array) -> Iterator[Fall]:
    """All formulas, each fitted to the curve up to where it becomes constant."""
    moves = np.flatnonzero(np.abs(curve - curve[-1]) > STILL * curve[0])
    still = int(moves[-1]) + 1
    ends = still < len(curve) - 1
    moving = curve[: still + 1]
    if len(moving) < SHORTEST:
        return
    for make in FALLS:
        for fall in make(moving, ends):
            rest = np.full(len(curve) - len(moving), fall.curve[-1])
            yield Fall(fall.words, np.concatenate([fall.curve, rest]))


def _cosine(curve: Array, ends: bool) -> Iterator[Fall]:
    """Second differences of a cosine are a multiple of its distance from its middle."""
    bend = curve[2:] + curve[:-2] - 2 * curve[1:-1]
    design = np.stack([curve[1:-1], np.ones(len(bend))], axis=1)
    slope, offset = np.linalg.lstsq(design, bend, rcond=None)[0]
    turn = math.acos(1 + slope / 2) if -4.0 < slope < 0.0 else 0.0  # of one update
    if turn == 0.0:  # a line, too, up to rounding
        return
    top, middle = float(curve[0]), -float(offset / slope)
    solved = math.pi / turn
    for length in dict.fromkeys((float(round(solved)), rounded(solved))):
        if length < 1:
            continue
        end = _round_end(2 * middle - top, top)
        yield Fall(
            phrase(
                "a cosine from {top} to {end} over {length} updates",
                top=number(top),
                end=number(end),
                length=number(length),
            ),
            end + (top - end) * (1 + np.cos(np.pi * np.arange(len(curve)) / length)) / 2,
        )


def _line(curve: Array, ends: bool) -> Iterator[Fall]:
    top = float(curve[0])
    slope = float(curve[-1] - curve[0]) / (len(curve) - 1)
    if slope >= 0:
        return
    end = float(curve[-1]) if ends else 0.0
    length = len(curve) - 1 if ends else rounded(-top / slope)
    yield Fall(
        phrase(
            "a line from {top} to {end} over {length} updates",
            top=number(top),
            end=number(end),
            length=number(length),
        ),
        top + slope * np.arange(len(curve)),
    )


def _power(curve: Array, ends: bool) -> Iterator[Fall]:
    top, end = float(curve[0]), float(curve[-1]) if ends else 0.0
    if not np.all((curve >= end) & (curve <= top)):
        return
    steps = np.arange(len(curve))
    for power in POWERS:
        left = ((curve - end) / (top - end)) ** (1 / power)  # falls as a line from 1 to 0
        gone = float(np.dot(steps, 1 - left) / np.dot(steps, steps))
        if gone <= 0:
            continue
        length = rounded(1 / gone)
        yield Fall(
            phrase(
                "a polynomial of power {power} from {top} to {end} over {length} updates",
                power=number(power),
                top=number(top),
                end=number(end),
                length=number(length),
            ),
            end + (top - end) * np.clip(1 - steps / length, 0.0, None) ** power,
        )


def _exponential(curve: Array, ends: bool) -> Iterator[Fall]:
    top = float(curve[0])
    if curve[-1] <= 0:
        return
    solved = float(curve[-1] / top) ** (1 / (len(curve) - 1))
    for factor in dict.fromkeys((rounded(solved), solved)):
        yield Fall(
            phrase("{top} times {factor} at every update", top=number(top), factor=number(factor)),
            top * factor ** np.arange(len(curve)),
        )


def _inverse(curve: Array, ends: bool) -> Iterator[Fall]:
    """By the number of updates, or by its root: a power of the inverse goes up as a line."""
    if not np.all(curve > 0):
        return
    top, steps = float(curve[0]), np.arange(len(curve))
    for power in (1, 2):
        gone = float((top / curve[-1]) ** power - 1) / (len(curve) - 1)
        if gone <= 0:
            return
        start = rounded(1 / gone)
        words = (
            phrase("{top} over (1 + updates / {start})", top=number(top), start=number(start))
            if power == 1
            else phrase(
                "{top} over the root of (1 + updates / {start})", top=number(top), start=number(start)
            )
        )
        yield Fall(words, top / (1 + steps / start) ** (1 / power))


def _round_end(end: float, top: float) -> float:
    return 0.0 if abs(end) < NOTHING_LEFT * top else rounded(end)


# In order of how few numbers they have.
FALLS: tuple[Callable[[Array, bool], Iterator[Fall]], ...] = (
    _exponential,
    _line,
    _inverse,
    _cosine,
    _power,
)
