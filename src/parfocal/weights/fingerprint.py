"""A few numbers that tell a tensor's values apart from any other tensor's.

The first seven do not depend on the layout (NCHW against NHWC, time first against batch first);
the sums over stretches do, and count only between tensors of the same shape. They see what the
others cannot: two branches joined in the wrong order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.judge import limits

Array = NDArray[Any]

STRETCHES = 16
COMB = 13
SMALL = 1 << 14  # elements: up to this it is quicker to convert once than in every sum
# Relative difference that rounding alone may cause after many layers, by dtype.
NOISE = {"float16": 2e-2, "bfloat16": 1e-1}
USUAL_NOISE = limits.transfer.USUAL_NOISE.value


@dataclass(frozen=True, slots=True)
class WeightFingerprint:
    """Moments of a tensor and sums over its stretches."""

    shape: tuple[int, ...]  # without axes of length 1
    size: int
    total: float
    absolute: float  # sum of magnitudes
    square: float
    cube: float
    least: float
    greatest: float
    stretches: NDArray[np.float64]
    noise: float

    @property
    def live(self) -> bool:
        """Whether the values say anything: finite, and not all the same."""
        return bool(np.isfinite(self.square)) and self.greatest > self.least


def fingerprint(array: Array) -> WeightFingerprint:
    """The fingerprint of an array of any dtype."""
    noise = NOISE.get(array.dtype.name, USUAL_NOISE)
    plain = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    flat = plain.reshape(-1)
    shape = tuple(length for length in array.shape if length != 1)
    if flat.size == 0:
        return WeightFingerprint(shape, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, np.zeros(0), noise)
    if flat.size <= SMALL:
        flat = flat.astype(np.float64)
    with np.errstate(all="ignore"):
        squares = flat * flat
        return WeightFingerprint(
            shape,
            flat.size,
            float(_sum(flat)),
            float(_sum(np.abs(flat))),
            float(_sum(squares)),
            float(_sum(squares * flat)),  # np.dot would wake BLAS's threads for each tensor
            float(flat.min()),
            float(flat.max()),
            _stretches(flat),
            noise,
        )


def _sum(values: Array) -> Any:
    return np.add.reduce(values, dtype=np.float64)


@lru_cache(maxsize=1024)
def _edges(size: int) -> NDArray[np.intp]:
    return np.unique(np.arange(STRETCHES) * size // STRETCHES)


def _stretches(flat: Array) -> NDArray[np.float64]:
    sums = np.add.reduceat(flat, _edges(flat.size), dtype=np.float64)
    whole = flat.size // COMB * COMB
    teeth = np.add.reduce(flat[:whole].reshape(-1, COMB), axis=0, dtype=np.float64) if whole else np.zeros(0)
    return np.concatenate([sums, teeth])


def distance(first: WeightFingerprint, second: WeightFingerprint) -> float:
    """Relative difference, 0 for equal values; infinite when they cannot be the same tensor."""
    if first.size != second.size:
        return float("inf")
    if first.size == 0:
        return 0.0
    numbers = (first.square, second.square)
    if not (math.isfinite(first.square) and math.isfinite(second.square)):
        return 0.0 if first.live == second.live else float("inf")
    absolute = max(first.absolute, second.absolute)
    if absolute == 0.0:
        return 0.0
    peak = max(abs(number) for side in (first, second) for number in (side.least, side.greatest))
    square = max(numbers)
    differences = [
        abs(first.total - second.total) / absolute,
        abs(first.absolute - second.absolute) / absolute,
        abs(first.square - second.square) / square if square else 0.0,
        abs(first.cube - second.cube) / (square * peak) if square * peak else 0.0,
        abs(first.least - second.least) / peak,
        abs(first.greatest - second.greatest) / peak,
    ]
    if first.shape == second.shape and len(first.stretches):
        gap = float(np.abs(first.stretches - second.stretches).max())
        differences.append(gap / (absolute / STRETCHES))
    return max(differences)


def distances(first: Sequence[WeightFingerprint], second: Sequence[WeightFingerprint]) -> float:
    """Between the tensors of two calls.

    Tensors are paired with their nearest of equal size. One side may return more than the other
    (attention weights) or return it in other pieces (the states of two directions), but the largest
    tensor of the side with fewer must have its like.
    """
    if not first or not second:
        return float("inf")
    if len(first) == len(second) == 1:
        return distance(first[0], second[0])
    fewer, more = sorted((list(first), list(second)), key=len)
    worst = 0.0
    for wanted in sorted(fewer, key=lambda each: -each.size):
        found = [
            (distance(wanted, other), number)
            for number, other in enumerate(more)
            if other.size == wanted.size
        ]
        if not found:
            if wanted.size == max(each.size for each in fewer):
                return float("inf")
            continue
        best, place = min(found)
        worst = max(worst, best)
        del more[place]
    return worst


def resemblance(first: Sequence[WeightFingerprint], second: Sequence[WeightFingerprint]) -> float:
    """The cosine between the sums of the largest tensors of one shape, at most 1; 0 where there is none.

    Unlike a distance it hardly minds a factor: it tells what is related to what behind a mistake.
    """
    shapes = {each.shape for each in first} & {each.shape for each in second}
    found = [
        max((each for each in side if each.shape in shapes), key=lambda each: each.size, default=None)
        for side in (first, second)
    ]
    mine, yours = (None if each is None or not each.live else each.stretches for each in found)
    if mine is None or yours is None or mine.shape != yours.shape:
        return 0.0
    sizes = float(np.linalg.norm(mine) * np.linalg.norm(yours))
    return float(mine @ yours) / sizes if sizes > 0.0 else 0.0


def shared_distance(first: Sequence[WeightFingerprint], second: Sequence[WeightFingerprint]) -> float:
    """Between what two calls both take: masks and positions that only one of them takes do not count."""
    sizes = {each.size for each in first} & {each.size for each in second}
    return distances(*([each for each in side if each.size in sizes] for side in (first, second)))


def noise_of(*sides: Sequence[WeightFingerprint]) -> float:
    """The relative difference up to which the values count as equal."""
    return max((each.noise for side in sides for each in side), default=USUAL_NOISE)
