"""The arithmetic of one block: two equally long 1-D arrays in, ``Totals`` out.

``quick_block`` works in float32 or float64 without allocating, and gives up (None) when the
block holds a non-finite value or numbers whose squares could leave the range; ``careful_block``
then does the same block in float64 (or complex128), with a census and scaling.
``integer_block`` is exact for every integer type.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from parfocal.judge.reading import Array, Memory, Scratch, address_of
from parfocal.judge.scaled import Scaled
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.totals import SideTotals, Totals
from parfocal.native.library import LIBRARY

PIECE = 1 << 15  # elements: a few pieces of float64 fit a core's second-level cache
_CHUNK = 1024
_ONES = np.ones(_CHUNK)
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
_BOOL = np.dtype(np.bool_)
# Relative and absolute rounding of a tolerance and a difference in the dtype; float64 is taken as is.
_SLACK = {np.dtype(np.float32): (1e-6, 1e-44), _FLOAT64: (0.0, 0.0)}
_FEW = 64  # a part of the block that is cheaper to look at than one more pass
_AT_ONCE = 8192  # elements with temporaries in float64
_MASK32 = np.uint64(0xFFFFFFFF)

# Squares of numbers in this range neither overflow nor lose digits to underflow.
_SAFE = {np.dtype(np.float32): (1e-12, 1e15), _FLOAT64: (1e-140, 1e140)}


def widened(values: Array, scratch: Scratch, name: str = "wide") -> Array:
    """Numbers as float64, in which their sum is right in whatever order it is made.

    The processor's width and the number of threads decide in which order a library adds. In float32 that
    shows: the sum of a thousand equal terms can be wrong by 1e-5.
    """
    if values.dtype == _FLOAT64:
        return values
    wide = scratch.get(name, _FLOAT64, len(values))
    np.copyto(wide, values)
    return wide


def wide_pieces(block: Sequence[Array], scratch: Scratch) -> Iterator[list[Array]]:
    """Equally long arrays piece by piece, in float64."""
    for begin in range(0, len(block[0]), PIECE):
        part = slice(begin, begin + PIECE)
        yield [widened(array[part], scratch, f"wide {number}") for number, array in enumerate(block)]


def dot(first: Array, second: Array | None = None) -> float:
    """The sum of one piece in float64, or of its products with another; chunks wake no threads of BLAS."""
    whole = len(first) - len(first) % _CHUNK
    total = 0.0
    if whole:
        right = _ONES if second is None else second[:whole]
        total = float(np.matmul(first[:whole].reshape(-1, 1, _CHUNK), right.reshape(-1, _CHUNK, 1)).sum())
    rest = first[whole:]
    if len(rest):
        total += float(np.dot(rest, _ONES[: len(rest)] if second is None else second[whole:]))
    return total


def quick_block(
    x: Array, y: Array, start: int, tolerance: Tolerance, scratch: Scratch, known: float
) -> Totals | None:
    """Everything about a block of ordinary numbers; None when it needs ``careful_block``.

    The place of the maximum is looked for only if it exceeds the one already ``known``.
    """
    if LIBRARY is not None and x.dtype == np.float32:
        places = (address_of(x), False), (address_of(y), False)
        return _compiled_block(LIBRARY, *places, len(x), start, tolerance, known)
    difference = scratch.get("difference", x.dtype, len(x))
    np.subtract(x, y, out=difference)
    np.abs(difference, out=difference)
    largest, least = float(np.maximum.reduce(difference)), float(np.minimum.reduce(difference))
    if not math.isfinite(largest):  # also whenever x or y holds a non-finite value
        return None
    first, second = _quick_side(x), _quick_side(y)
    low, high = _SAFE[x.dtype]
    if any(scale and not low < scale < high for scale in (largest, first.reach, second.reach)):
        return None
    magnitude = y if tolerance.exact else np.abs(y, out=scratch.get("magnitude", y.dtype, len(y)))
    relative = _largest_ratio(difference, magnitude, tolerance.exact, scratch)
    if relative is None:
        return None
    if tolerance.exact:
        mismatched = len(x) if least > 0 else _count_nonzero(difference, scratch)
    elif largest <= tolerance.atol / 2 or relative <= tolerance.rtol / 2:
        mismatched = 0
    else:
        mismatched = _count_mismatches(x, y, difference, magnitude, tolerance, scratch)
    sums = np.zeros(4)
    for off, wide_x, wide_y in wide_pieces((difference, x, y), scratch):
        sums += dot(off), dot(off, off), dot(wide_x, wide_x), dot(wide_y, wide_y)
    absolute, square, square_x, square_y = sums.tolist()
    first.square, second.square = Scaled(square_x), Scaled(square_y)
    return Totals(
        first=first,
        second=second,
        counted=len(x),
        maximum=largest,
        maximum_position=start + int(difference.argmax()) if largest > known else None,
        minimum=least,
        absolute=Scaled(absolute),
        square=Scaled(square),
        product=Scaled(_product(x, y, square, square_x, square_y, scratch)),
        relative=relative,
        mismatched=mismatched,
    )


def quick_whole(x: Memory | None, y: Memory | None, size: int, tolerance: Tolerance) -> Totals | None:
    """``quick_block`` of whole arrays where they lie, by the compiled loop on several threads.

    None where there is no compiled loop for arrays like these.
    """
    if LIBRARY is None or x is None or y is None:
        return None
    return _compiled_block(LIBRARY, x, y, size, 0, tolerance, -1.0)


def _compiled_block(
    library: ctypes.CDLL,
    x: Memory,
    y: Memory,
    size: int,
    start: int,
    tolerance: Tolerance,
    known: float,
) -> Totals | None:
    """``quick_block`` of float32 or bfloat16 numbers in one loop; ``x``, ``y``: as ``memory_of`` says."""
    found = (ctypes.c_double * 14)()
    library.parfocal_difference(
        *x,
        *y,
        size,
        tolerance.atol,
        tolerance.rtol,
        known,
        found,
    )
    largest, least, absolute, square, square_x, square_y, product = found[:7]
    low_x, high_x, low_y, high_y, relative, mismatched, place = found[7:]
    first = SideTotals(minimum=low_x, maximum=high_x, square=Scaled(square_x))
    second = SideTotals(minimum=low_y, maximum=high_y, square=Scaled(square_y))
    low, high = _SAFE[_FLOAT32]
    if not math.isfinite(absolute) or any(
        scale and not low < scale < high for scale in (largest, first.reach, second.reach)
    ):
        return None
    return Totals(
        first=first,
        second=second,
        counted=size,
        maximum=largest,
        maximum_position=start + int(place) if largest > known else None,
        minimum=least,
        absolute=Scaled(absolute),
        square=Scaled(square),
        product=Scaled(product),
        relative=relative,
        mismatched=int(mismatched),
    )


def _quick_side(values: Array) -> SideTotals:
    low, high = float(np.minimum.reduce(values)), float(np.maximum.reduce(values))
    return SideTotals(minimum=low, maximum=high)


def _product(x: Array, y: Array, square: float, square_x: float, square_y: float, scratch: Scratch) -> float:
    """x . y from the three squares when that loses no digits, which saves a pass."""
    if 0.25 * square_y <= square_x <= 4 * square_y:
        return (square_x + square_y - square) / 2
    return sum(dot(*pair) for pair in wide_pieces((x, y), scratch))


def _largest_ratio(difference: Array, y: Array, signed: bool, scratch: Scratch) -> float | None:
    """max(difference / |y|) with 0/0 = 0 and x/0 = inf; None if the division overflowed.

    Unless ``signed``, y is known not to be negative.
    """
    ratios = np.divide(difference, y, out=scratch.get("work", y.dtype, len(y)))
    # fmax and fmin pass over the NaN of 0/0; they give NaN only if there is nothing else.
    ratio = float(np.fmax.reduce(ratios))
    if signed:
        ratio = max(ratio, -float(np.fmin.reduce(ratios)))
    if math.isnan(ratio):
        return 0.0
    if math.isinf(ratio) and not np.any((y == 0) & (difference > 0)):
        return None
    return ratio


def _count_nonzero(difference: Array, scratch: Scratch) -> int:
    mask = scratch.get("over", _BOOL, len(difference))
    return int(np.count_nonzero(np.greater(difference, 0, out=mask)))


def _count_mismatches(
    x: Array, y: Array, difference: Array, magnitude: Array, tolerance: Tolerance, scratch: Scratch
) -> int:
    """How many differences exceed the tolerance.

    In float32 slightly less is allowed than asked for, and the few elements beyond that are looked
    at in float64; if they are many, only those that slightly more would allow.
    """
    slack, tiny = _SLACK[y.dtype]
    number = y.dtype.type
    allowed = scratch.get("work", y.dtype, len(y))
    over, far_over = (scratch.get(name, _BOOL, len(y)) for name in ("over", "far over"))
    np.multiply(magnitude, number(tolerance.rtol * (1 - slack)), out=allowed)
    np.add(allowed, number(max(0.0, tolerance.atol * (1 - slack) - tiny)), out=allowed)
    count = int(np.count_nonzero(np.greater(difference, allowed, out=over)))
    if count == 0 or slack == 0:
        return count
    if count > len(y) // _FEW:  # leave only those between the two bounds to be looked at
        np.multiply(allowed, number(1 + 3 * slack), out=allowed)
        np.add(allowed, number(3 * tiny), out=allowed)
        count = int(np.count_nonzero(np.greater(difference, allowed, out=far_over)))
        np.not_equal(over, far_over, out=over)
    else:
        count = 0
    unsure = np.flatnonzero(over)
    for begin in range(0, len(unsure), _AT_ONCE):
        part = unsure[begin : begin + _AT_ONCE]
        wide_x, wide_y = x[part].astype(np.float64), y[part].astype(np.float64)
        exceeding = np.abs(wide_x - wide_y) > tolerance.atol + tolerance.rtol * np.abs(wide_y)
        count += int(np.count_nonzero(exceeding))
    return count


def careful_block(x: Array, y: Array, start: int, tolerance: Tolerance) -> Totals:
    """A block in float64 or complex128: non-finite values counted and set aside, sums scaled."""
    wide = np.dtype(np.complex128) if x.dtype.kind == "c" else _FLOAT64
    x, y = x.astype(wide, copy=False), y.astype(wide, copy=False)
    totals = Totals(first=_census(x), second=_census(y))
    finite = np.isfinite(x) & np.isfinite(y)
    positions: Array | None = None
    if not finite.all():
        agreeing = ~finite & ((x == y) | (np.isnan(x) & np.isnan(y)))
        totals.agreeing = int(np.count_nonzero(agreeing))
        disagreeing = np.flatnonzero(~finite & ~agreeing)
        totals.disagreeing = totals.mismatched = len(disagreeing)
        if len(disagreeing):
            totals.disagreement_position = start + int(disagreeing[0])
        positions = np.flatnonzero(finite)
        x, y = x[finite], y[finite]
    if len(x):
        _careful_differences(totals, x, y, tolerance)
        place = int(totals.maximum_position or 0)
        totals.maximum_position = start + (place if positions is None else int(positions[place]))
    return totals


def _census(values: Array) -> SideTotals:
    """Non-finite values by kind, and the range of the others (of their magnitude if complex)."""
    nan = np.isnan(values)
    infinite = np.isinf(values)
    direction = values
    if values.dtype.kind == "c":  # the part that is infinite gives the sign, the real one first
        direction = np.where(np.isinf(values.real), values.real, values.imag)
    side = SideTotals(nan=int(np.count_nonzero(nan)))
    infinite &= ~nan
    side.negative_infinity = int(np.count_nonzero(infinite & (direction < 0)))
    side.positive_infinity = int(np.count_nonzero(infinite)) - side.negative_infinity
    usual = values[np.isfinite(values)]
    if len(usual):
        ordered = np.abs(usual) if usual.dtype.kind == "c" else usual
        side.minimum, side.maximum = float(ordered.min()), float(ordered.max())
    return side


def _careful_differences(totals: Totals, x: Array, y: Array, tolerance: Tolerance) -> None:
    """Fill in the difference statistics of finite values; ``maximum_position`` is local."""
    difference, magnitude = np.abs(x - y), np.abs(y)
    place = int(difference.argmax())
    totals.counted = len(x)
    totals.maximum, totals.maximum_position = float(difference[place]), place
    totals.minimum = float(difference.min())
    ratio = np.divide(difference, magnitude, out=np.zeros_like(difference), where=difference > 0)
    totals.relative = float(ratio.max())
    allowed = tolerance.atol + tolerance.rtol * magnitude
    totals.mismatched += int(np.count_nonzero(difference > allowed))
    small, exponent = _scaled(difference)
    totals.absolute = Scaled(float(small.sum()), exponent)
    totals.square = Scaled(float(np.vdot(small, small)), 2 * exponent)
    small_x, exponent_x = _scaled(x)
    small_y, exponent_y = _scaled(y)
    totals.first.square = Scaled(float(np.vdot(small_x, small_x).real), 2 * exponent_x)
    totals.second.square = Scaled(float(np.vdot(small_y, small_y).real), 2 * exponent_y)
    totals.product = Scaled(float(np.vdot(small_y, small_x).real), exponent_x + exponent_y)


def _scaled(values: Array) -> tuple[Array, int]:
    """``values * 2**-exponent`` with an exponent that keeps squares in range, mostly 0."""
    parts = (values.real, values.imag) if values.dtype.kind == "c" else (values,)
    largest = max(float(np.abs(part).max()) for part in parts)
    low, high = _SAFE[_FLOAT64]
    if largest == 0 or low < largest < high or math.isinf(largest):
        return values, 0
    exponent = math.frexp(largest)[1]
    # In two steps: 2**-exponent alone may itself be out of range.
    half = exponent // 2
    return values * math.ldexp(1.0, -half) * math.ldexp(1.0, half - exponent), exponent


def integer_block(x: Array, y: Array, start: int, tolerance: Tolerance) -> Totals:
    """A block of int64, uint64 or Python integers: differences, extremes and their sum are exact."""
    if x.dtype == object:
        difference = np.abs(x - y)
        absolute = int(difference.sum())
    else:  # larger minus smaller fits uint64 even where int64 wraps around
        difference = (np.maximum(x, y) - np.minimum(x, y)).view(np.uint64)
        high, low = difference >> np.uint64(32), difference & _MASK32
        absolute = (int(high.sum()) << 32) + int(low.sum())
    place = int(difference.argmax())
    wide, wide_x, wide_y = (values.astype(np.float64) for values in (difference, x, y))
    magnitude = np.abs(wide_y)
    ratio = np.divide(wide, magnitude, out=np.zeros_like(wide), where=wide > 0)
    if tolerance.rtol == 0:
        mismatches = _exceeds(difference, math.floor(tolerance.atol))
    else:
        mismatches = wide > tolerance.atol + tolerance.rtol * magnitude
    return Totals(
        first=_integer_side(x, wide_x),
        second=_integer_side(y, wide_y),
        counted=len(x),
        maximum=int(difference[place]),
        maximum_position=start + place,
        minimum=int(difference.min()),
        absolute=Scaled(absolute),
        square=Scaled(float(np.dot(wide, wide))),
        product=Scaled(float(np.dot(wide_x, wide_y))),
        relative=float(ratio.max()),
        mismatched=int(np.count_nonzero(mismatches)),
    )


def _exceeds(difference: Array, allowed: int) -> Any:
    """Where an exact difference is larger than a whole number of any size."""
    if difference.dtype != object and allowed > np.iinfo(np.uint64).max:
        return np.zeros(len(difference), np.bool_)
    limit: Any = allowed if difference.dtype == object else np.uint64(allowed)
    return np.asarray(difference > limit, np.bool_)


def _integer_side(values: Array, wide: Array) -> SideTotals:
    square = Scaled(float(np.dot(wide, wide)))
    return SideTotals(minimum=int(values.min()), maximum=int(values.max()), square=square)
