"""Errors in units of what cannot be avoided.

An error and a floor are both two numbers, the root mean square and the maximum: a small error
everywhere shows in the first, one wrong element in the second. The score is the larger of the
two ratios, the second with some slack, because a maximum is one sample of a long tail. Floors are
combined by taking the largest.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.apart import apart
from parfocal.judge.metrics import Comparison, compare_arrays
from parfocal.run.dtypes import dtype_name

# What one unit in the last place is, relative to the value.
EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}


PEAK_SLACK = limits.verdicts.PEAK_SLACK.value


@dataclass(frozen=True, slots=True)
class Size:
    """How large something is: root mean square and maximum."""

    rms: float
    peak: float

    def __or__(self, other: Size) -> Size:
        return Size(max(self.rms, other.rms), max(self.peak, other.peak))

    def __mul__(self, factor: float) -> Size:
        return Size(self.rms * factor, self.peak * factor)


NOTHING = Size(0.0, 0.0)


@cache
def coarser(*dtypes: str) -> float:
    """The largest epsilon among the dtypes; 0 for integers, which have no rounding."""
    return max(EPSILON.get(dtype, 0.0) for dtype in dtypes)


def size_of(array: Array) -> Size:
    """Over the finite values."""
    found = apart(array, array)
    if found is not None:
        return Size(found.reference_rms, found.reference_peak)
    wide = np.abs(array.astype(np.complex128 if array.dtype.kind == "c" else np.float64, copy=False))
    finite = wide[np.isfinite(wide)]
    if not finite.size:
        return NOTHING
    peak = float(finite.max())
    if peak == 0.0:
        return NOTHING
    return Size(peak * math.sqrt(float(np.mean(np.square(finite / peak)))), peak)


def error_of(comparison: Comparison) -> Size:
    """Infinite where the two could not be compared or a NaN met a number."""
    return Size(float(comparison.rmse), float(comparison.max_abs))


def difference(a: Array, b: Array) -> Size:
    found = apart(a, b)
    return error_of(compare_arrays(a, b)) if found is None else Size(found.rms, found.peak)


def score(error: Size, floor: Size) -> float:
    """The error in units of the floor; anything over a floor of zero is infinite."""
    if error.peak == 0.0 == error.rms:  # of most tensors, and asked many times
        return 0.0
    return max(_ratio(error.rms, floor.rms), _ratio(error.peak, floor.peak * PEAK_SLACK))


def _ratio(error: float, floor: float) -> float:
    if error == 0.0:
        return 0.0
    return error / floor if floor > 0.0 else math.inf


def rounding_score(first: Array, second: Array) -> float | None:
    """How often the rounding of values of this size the two are apart; None where nothing is rounded."""
    epsilon = coarser(dtype_name(first.dtype) or "", dtype_name(second.dtype) or "")
    if first.shape != second.shape or not first.size or not epsilon:
        return None
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    return score(difference(first, second), (size_of(first) | size_of(second)) * epsilon)
