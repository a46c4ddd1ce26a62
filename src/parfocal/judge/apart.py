"""How far two arrays are apart, and how large they are: all that most verdicts need.

A third of the work of ``compare_arrays``, for the many tensors that turn out to be within the noise. Whatever
is out of the ordinary (non-finite values, squares that leave the range, integers, mismatches) is left to it.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.judge.kernels import dot, wide_pieces
from parfocal.judge.parallel import blocks, run_spans
from parfocal.judge.reading import BFLOAT16, Array, Reader, Scratch, admitted, arithmetic, memory_of
from parfocal.judge.tolerance import Tolerance
from parfocal.native.library import LIBRARY

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_PLAIN = {_FLOAT32, BFLOAT16}
_FIVE = ctypes.c_double * 5
_BLOCK = 1 << 18
_ANYTHING = Tolerance(atol=1e38)
# Sums of squares of numbers in this range are right to a few digits, which is all that is asked here.
_RANGE = {_FLOAT32: (1e-15, 1e15), _FLOAT64: (1e-140, 1e140)}


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
    read_actual = Reader(actual, dtype, "actual").read
    read_reference = Reader(reference, dtype, "reference").read

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
