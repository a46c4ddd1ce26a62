"""Distances in units in the last place: how many floats lie between two floats.

The bits of a float, read as a sign and a magnitude, count the floats in order; the distance of
two floats is the difference of their counts, exact for every width. Two different float dtypes
are measured in the coarser one (fewer digits; bfloat16 is coarser than float16): the finer side
is rounded to it first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.judge.parallel import blocks, run_spans
from parfocal.judge.reading import BFLOAT16, Array, Scratch, block_reader

_DIGIT = 16  # bits settled per pass of the selection
# Fraction bits, coarsest first, of the dtypes that have such a distance.
_FRACTION_BITS = {BFLOAT16: 7, np.dtype(np.float16): 10, np.dtype(np.float32): 23, np.dtype(np.float64): 52}
_LENGTH = 1 << 15  # elements of a block; its temporaries are 64 bits wide
_SIGNED = {2: np.int16, 4: np.int32, 8: np.int64}


@dataclass(frozen=True, slots=True)
class UlpDistances:
    """Over the pairs in which both values are finite; the two zeros are 0 apart."""

    dtype: str  # the unit: one step of this dtype
    counted: int
    maximum: int
    percentile_99: int  # the smallest distance that at least 99% of the pairs do not exceed


def ulp_distances(actual: Array, reference: Array) -> UlpDistances | None:
    """Distances of two arrays of one shape; None unless both are float16, bfloat16, 32 or 64."""
    native = [array.dtype.newbyteorder("=") for array in (actual, reference)]
    if any(dtype not in _FRACTION_BITS for dtype in native):
        return None
    unit = min(native, key=_FRACTION_BITS.__getitem__)
    reads = [
        block_reader(array, dtype, name)
        for array, dtype, name in zip((actual, reference), native, ("actual", "reference"), strict=True)
    ]

    def distances(start: int, stop: int, scratch: Scratch) -> Array:
        x, y = (read(start, stop, scratch) for read in reads)
        with np.errstate(all="ignore"):
            finite = np.isfinite(x) & np.isfinite(y)
            ranks = [_rank(values[finite].astype(unit, copy=False)) for values in (x, y)]
        return (np.maximum(*ranks) - np.minimum(*ranks)).view(np.uint64)

    counted, maximum = _count_and_maximum(distances, actual.size)
    return UlpDistances(unit.name, counted, maximum, _select(distances, actual.size, counted, maximum))


def _rank(values: Array) -> Array:
    """The position of each float among all floats of its dtype, as int64; both zeros at 0."""
    bits = values.view(_SIGNED[values.dtype.itemsize]).astype(np.int64)
    lowest = np.int64(-1) << np.int64(8 * values.dtype.itemsize - 1)
    return np.where(bits < 0, lowest - bits, bits)


def _count_and_maximum(distances: Callable[[int, int, Scratch], Array], size: int) -> tuple[int, int]:
    def span(start: int, stop: int, scratch: Scratch) -> tuple[int, int]:
        counted = maximum = 0
        for begin, end in blocks(start, stop, _LENGTH):
            found = distances(begin, end, scratch)
            counted += len(found)
            maximum = max(maximum, int(found.max(initial=0)))
        return counted, maximum

    results = list(run_spans(size, _LENGTH, span))
    return sum(counted for counted, _ in results), max((top for _, top in results), default=0)


def _select(distances: Callable[[int, int, Scratch], Array], size: int, counted: int, maximum: int) -> int:
    """The 99th percentile, exactly and without keeping the distances: digit by digit, high to low."""
    rank = -(-99 * counted // 100)
    found = 0
    digits = -(-maximum.bit_length() // _DIGIT)
    for shift in reversed(range(0, digits * _DIGIT, _DIGIT)):
        counts = _digit_counts(distances, size, found, shift)
        cumulated = np.cumsum(counts)
        digit = int(np.searchsorted(cumulated, rank))
        rank -= int(cumulated[digit - 1]) if digit else 0
        found |= digit << shift
    return found


def _digit_counts(distances: Callable[[int, int, Scratch], Array], size: int, prefix: int, shift: int) -> Any:
    """How often each digit occurs at ``shift`` among distances that begin like ``prefix``."""

    def span(start: int, stop: int, scratch: Scratch) -> Array:
        counts = np.zeros(1 << _DIGIT, np.int64)
        for begin, end in blocks(start, stop, _LENGTH):
            found = distances(begin, end, scratch) >> np.uint64(shift)
            same = found[(found >> np.uint64(_DIGIT)) == np.uint64(prefix >> (shift + _DIGIT))]
            digits = (same & np.uint64((1 << _DIGIT) - 1)).astype(np.int64)
            counts += np.bincount(digits, minlength=1 << _DIGIT)
        return counts

    return sum(run_spans(size, _LENGTH, span), np.zeros(1 << _DIGIT, np.int64))
