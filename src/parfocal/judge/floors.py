"""How far two arrays are apart, in units of what cannot be avoided.

``apart`` measures all that most verdicts need, in a third of the work of ``compare_arrays``. Whatever is out
of the ordinary (non-finite values, squares that leave the range, integers, mismatches) is left to that one.

An error and a floor are both two numbers, the root mean square and the maximum: a small error
everywhere shows in the first, one wrong element in the second. The score is the larger of the
two ratios, the second with some slack, because a maximum is one sample of a long tail. Floors are
combined by taking the largest.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from parfocal.backends.checks import dtype_name
from parfocal.judge import limits
from parfocal.judge.kernels import dot, wide_pieces
from parfocal.judge.metrics import Comparison, compare_arrays
from parfocal.judge.parallel import blocks, run_spans
from parfocal.judge.picture import picture_of
from parfocal.judge.reading import BFLOAT16, Array, Scratch, admitted, arithmetic, block_reader, memory_of
from parfocal.judge.tolerance import Tolerance
from parfocal.native.library import LIBRARY

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
CALL_LIMIT = limits.verdicts.CALL.value

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_PLAIN = {_FLOAT32, BFLOAT16}
_FIVE = ctypes.c_double * 5
_BLOCK = 1 << 18
_ANYTHING = Tolerance(atol=1e38)
# Sums of squares of numbers in this range are right to a few digits, which is all that is asked here.
_RANGE = {_FLOAT32: (1e-15, 1e15), _FLOAT64: (1e-140, 1e140)}


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
# With a fixed tolerance a score above 1 is simply a violation of it, by however many elements.
_VIOLATION = Size(0.5, 0.5)


@dataclass(slots=True)
class ElementDistance:
    """Extremes and sums over all elements."""

    size: int = 0
    peak: float = 0.0  # of the difference
    square: float = 0.0  # its sum of squares
    reference_peak: float = 0.0
    reference_square: float = 0.0

    @property
    def rms(self) -> float:
        return math.sqrt(self.square / self.size) if self.size else 0.0

    @property
    def reference_rms(self) -> float:
        return math.sqrt(self.reference_square / self.size) if self.size else 0.0

    @property
    def relative(self) -> float:
        """The norm of the difference over that of the reference."""
        if self.square == 0.0:
            return 0.0
        return math.sqrt(self.square / self.reference_square) if self.reference_square else math.inf

    def add(self, other: ElementDistance) -> None:
        self.size += other.size
        self.peak = max(self.peak, other.peak)
        self.square += other.square
        self.reference_peak = max(self.reference_peak, other.reference_peak)
        self.reference_square += other.reference_square


def apart(a: Any, b: Any, tolerance: Tolerance | None = None) -> ElementDistance | None:
    """``a`` (actual) against ``b`` (reference) of one shape; None where ``compare_arrays`` must decide.

    So it must where an element may exceed the tolerance.
    """
    if type(a) is type(b) is np.ndarray and a.shape == b.shape:
        compiled = _compiled(a, b, tolerance)
        if compiled is not None:
            return _ordinary(*compiled, tolerance)
    actual, reference = admitted(a, "a"), admitted(b, "b")
    dtype = arithmetic(actual.dtype, reference.dtype)
    if dtype.kind != "f" or actual.shape != reference.shape:
        return None
    if LIBRARY is not None and actual.size <= _BLOCK and {actual.dtype, reference.dtype} <= _PLAIN:
        # laid out otherwise: faster copied as a whole than read in blocks
        compiled = _compiled(np.ascontiguousarray(actual), np.ascontiguousarray(reference), tolerance)
        if compiled is not None:
            return _ordinary(*compiled, tolerance)
    read_actual = block_reader(actual, dtype, "actual")
    read_reference = block_reader(reference, dtype, "reference")

    def span(start: int, stop: int, scratch: Scratch) -> ElementDistance | None:
        found = ElementDistance()
        with np.errstate(all="ignore"):
            for begin, end in blocks(start, stop, _BLOCK):
                x, y = read_actual(begin, end, scratch), read_reference(begin, end, scratch)
                block = _block(x, y, tolerance, scratch)
                if block is None:
                    return None
                found.add(block)
        return found

    total = ElementDistance()
    for found in run_spans(actual.size, _BLOCK, span, threads=False):
        if found is None:
            return None
        total.add(found)
    return total


def _block(x: Array, y: Array, tolerance: Tolerance | None, scratch: Scratch) -> ElementDistance | None:
    compiled = _compiled(x, y, tolerance)
    if compiled is not None:
        return _ordinary(*compiled, tolerance)
    return _ordinary(_by_numpy(x, y, scratch), False, tolerance, x.dtype)


def _ordinary(
    found: ElementDistance, within: bool, tolerance: Tolerance | None, dtype: np.dtype[Any] = _FLOAT32
) -> ElementDistance | None:
    """What was found, unless something about it is out of the ordinary."""
    low, high = _RANGE[_FLOAT64 if dtype == _FLOAT64 else _FLOAT32]
    # written so that a NaN, from wherever, is out of the ordinary
    if not (found.peak == 0.0 or low < found.peak < high):
        return None
    if not (found.reference_peak == 0.0 or low < found.reference_peak < high):
        return None
    if not math.isfinite(found.square + found.reference_square):
        return None
    return found if tolerance is None or within or found.peak <= tolerance.atol / 2 else None


def _compiled(x: Array, y: Array, tolerance: Tolerance | None) -> tuple[ElementDistance, bool] | None:
    """What was found, and whether all of it is within the tolerance for sure.

    None where there is no compiled loop for arrays like these.
    """
    if LIBRARY is None or (actual := memory_of(x)) is None or (reference := memory_of(y)) is None:
        return None
    out, size = _FIVE(), x.size
    allowed = tolerance or _ANYTHING
    LIBRARY.parfocal_apart(*actual, *reference, size, allowed.atol, allowed.rtol, out)
    peak, square, reference_peak, reference_square, over = out[:]  # at once: one by one takes longer
    return ElementDistance(size, peak, square, reference_peak, reference_square), over == 0


def _by_numpy(x: Array, y: Array, scratch: Scratch) -> ElementDistance:
    difference = np.subtract(x, y, out=scratch.get("difference", x.dtype, len(x)))
    square = reference_square = 0.0
    for off, reference in wide_pieces((difference, y), scratch):
        square += dot(off, off)
        reference_square += dot(reference, reference)
    return ElementDistance(len(x), _largest(difference), square, _largest(y), reference_square)


def _largest(values: Array) -> float:
    """The largest magnitude; NaN if there is one."""
    high, low = float(np.maximum.reduce(values)), float(np.minimum.reduce(values))
    return high if high >= -low else -low


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


def typical(sizes: Sequence[Size]) -> Size:
    """Of several trials: their mean square, and the largest maximum."""
    if not sizes:
        return NOTHING
    rms = float(np.sqrt(np.mean([size.rms**2 for size in sizes])))
    return Size(rms, max(size.peak for size in sizes))


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
    epsilon = coarser(dtype_name(first.dtype), dtype_name(second.dtype))
    if first.shape != second.shape or not first.size or not epsilon:
        return None
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    return score(difference(first, second), (size_of(first) | size_of(second)) * epsilon)


class JudgedArrays(NamedTuple):
    """An array against another: all figures where they may be needed, the error, and the scale floor."""

    comparison: Comparison | None
    error: Size
    floor: Size
    relative: float


def judge_arrays(
    observed: Array, expected: Array, tolerance: Tolerance | None, *, picture: bool = False
) -> JudgedArrays:
    """The port's array against the reference's of the same shape; with a ``picture`` of what differs."""
    judged = judge_roughly(observed, expected, tolerance)
    limit = CALL_LIMIT if tolerance is None else 1.0
    if score(judged.error, judged.floor) <= limit:
        return judged
    comparison = judged.comparison or compare_arrays(observed, expected, tolerance=tolerance)
    if picture:
        comparison = replace(comparison, picture=picture_of(observed, expected))
    return judged._replace(comparison=comparison)


def judge_roughly(observed: Array, expected: Array, tolerance: Tolerance | None) -> JudgedArrays:
    """Without all the figures, unless it takes those to judge."""
    found = apart(observed, expected, tolerance)
    if found is None:
        return judge_fully(observed, expected, tolerance)
    if tolerance is not None:
        return JudgedArrays(None, NOTHING, _VIOLATION, found.relative)
    if not found.peak:
        return JudgedArrays(None, NOTHING, NOTHING, found.relative)
    epsilon = coarser(dtype_name(observed.dtype), dtype_name(expected.dtype))
    floor = Size(found.reference_rms * epsilon, found.reference_peak * epsilon)
    return JudgedArrays(None, Size(found.rms, found.peak), floor, found.relative)


def judge_fully(observed: Array, expected: Array, tolerance: Tolerance | None) -> JudgedArrays:
    comparison = compare_arrays(observed, expected, tolerance=tolerance)
    if tolerance is not None:
        wrong = float(comparison.mismatched)
        return JudgedArrays(comparison, Size(wrong, wrong), _VIOLATION, comparison.rel_l2)
    error = error_of(comparison)
    epsilon = coarser(observed.dtype.name, expected.dtype.name)
    floor = size_of(expected) * epsilon if error.peak else NOTHING
    return JudgedArrays(comparison, error, floor, comparison.rel_l2)
