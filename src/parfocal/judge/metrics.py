"""``compare_arrays``: every figure about the difference of two arrays, in one pass.

The pass goes over flat blocks that stay in the cache, on a few threads, and needs a few
megabytes whatever the size of the arrays. Floats of up to 32 bits are subtracted in float32 and
summed in float64, by the compiled loop over trees of 16 in float32: sums are right to about 1e-7
on every processor (docs/metrics.md has the bounds), extremes to the rounding of one subtraction.
Wider floats, and integers against floats, use float64; integers among themselves are exact.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from parfocal.backends.checks import dtype_name
from parfocal.judge.comparison import Comparison, Number, SideFacts
from parfocal.judge.kernels import careful_block, integer_block, quick_block, quick_whole
from parfocal.judge.parallel import blocks, run_spans
from parfocal.judge.picture import picture_of
from parfocal.judge.reading import (
    Array,
    Scratch,
    admitted,
    arithmetic,
    block_length,
    block_reader,
    memory_of,
)
from parfocal.judge.scaled import cosine
from parfocal.judge.shape import error_shape, layout_shape
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.totals import SideTotals, Totals
from parfocal.judge.ulp import ulp_distances
from parfocal.phrases import phrase

__all__ = ["Comparison", "compare_arrays"]

# Of the arrays in blocks that allocate temporaries: below what the C library takes from the
# system, and returns to it, on every single allocation.
_SLICE_BYTES = 1 << 16
_EXACT_IN_FLOAT64 = 2**53  # below it float64 holds every integer; this one may be a rounded neighbour


def compare_arrays(
    a: Any,
    b: Any,
    *,
    tolerance: Tolerance | None = None,
    ulp: bool = False,
    shape: bool = False,
    picture: bool = False,
) -> Comparison:
    """Compare ``a`` (actual) with ``b`` (reference), element by element, without broadcasting.

    Without a tolerance every inequality is a mismatch. ``ulp`` adds distances in units in the
    last place (floats only), ``shape`` an analysis of what the error looks like, ``picture`` a histogram
    and heat maps of it.
    """
    actual, reference = admitted(a, "a"), admitted(b, "b")
    tolerance = tolerance or Tolerance()
    if actual.shape != reference.shape:
        return _incomparable(actual, reference, tolerance, shape)
    dtype = arithmetic(actual.dtype, reference.dtype)
    totals = _totals(actual, reference, dtype, tolerance)
    comparison = _comparison(actual, reference, dtype, tolerance, totals)
    if not (ulp or shape or picture):
        return comparison
    return replace(
        comparison,
        ulp=ulp_distances(actual, reference) if ulp else None,
        error_shape=error_shape(actual, reference, tolerance) if shape else None,
        picture=picture_of(actual, reference) if picture else None,
    )


def _totals(actual: Array, reference: Array, dtype: np.dtype[Any], tolerance: Tolerance) -> Totals:
    """One pass over both arrays."""
    totals = Totals()
    whole = quick_whole(memory_of(actual), memory_of(reference), actual.size, tolerance)
    if whole is not None:
        totals.merge(whole)
        return totals
    length = block_length(dtype)
    read_actual = block_reader(actual, dtype, "actual")
    read_reference = block_reader(reference, dtype, "reference")

    def span(start: int, stop: int, scratch: Scratch) -> Totals:
        found = Totals()
        with np.errstate(all="ignore"):
            for begin, end in blocks(start, stop, length):
                x, y = read_actual(begin, end, scratch), read_reference(begin, end, scratch)
                _add_block(found, x, y, begin, tolerance, scratch)
        return found

    for found in run_spans(actual.size, length, span):
        totals.merge(found)
    return totals


def _add_block(found: Totals, x: Array, y: Array, start: int, tolerance: Tolerance, scratch: Scratch) -> None:
    """Add one block, by the quickest way that is right for it."""
    if x.dtype.kind == "f":
        quick = quick_block(x, y, start, tolerance, scratch, found.maximum)
        if quick is not None:
            found.merge(quick)
            return
    if x.dtype == np.float32:  # once more with twice the digits and a wider range, in halves
        _add_wide_halves(found, x, y, start, tolerance, scratch)
        return
    kernel = integer_block if x.dtype.kind in "iuO" else careful_block
    length = _SLICE_BYTES // x.dtype.itemsize
    for begin in range(0, len(x), length):
        part = slice(begin, begin + length)
        found.merge(kernel(x[part], y[part], start + begin, tolerance))


def _add_wide_halves(
    found: Totals, x: Array, y: Array, start: int, tolerance: Tolerance, scratch: Scratch
) -> None:
    wide = np.dtype(np.float64)
    for begin in range(0, len(x), block_length(wide)):
        part = slice(begin, begin + block_length(wide))
        size = len(x[part])
        wide_x, wide_y = (scratch.get(name, wide, size) for name in ("actual", "reference"))
        np.copyto(wide_x, x[part])
        np.copyto(wide_y, y[part])
        _add_block(found, wide_x, wide_y, start + begin, tolerance, scratch)


def _comparison(
    actual: Array, reference: Array, dtype: np.dtype[Any], tolerance: Tolerance, totals: Totals
) -> Comparison:
    """The totals as figures."""
    side_a, side_b = _side(actual, totals.first), _side(reference, totals.second)
    position = totals.maximum_position
    if totals.disagreeing:
        position = totals.disagreement_position
    index = None if position is None else _index(position, actual.shape)
    value_a, value_b = (None if index is None else _value(array, index) for array in (actual, reference))
    return Comparison(
        a=side_a,
        b=side_b,
        comparable=True,
        reason="",
        arithmetic="integer" if dtype.kind in "iuO" else dtype_name(dtype),
        inputs_exact=_exact(actual, side_a, dtype) and _exact(reference, side_b, dtype),
        tolerance=tolerance,
        size=actual.size,
        counted=totals.counted,
        max_index=index,
        max_a=value_a,
        max_b=value_b,
        min_abs=totals.minimum if totals.counted or totals.disagreeing else 0.0,
        mismatched=totals.mismatched,
        mismatched_share=totals.mismatched / actual.size if actual.size else 0.0,
        nonfinite_agreeing=totals.agreeing,
        nonfinite_disagreeing=totals.disagreeing,
        **_figures(totals, value_a, value_b),
    )


def _figures(totals: Totals, value_a: Number | None, value_b: Number | None) -> dict[str, Any]:
    """The figures that become infinite when a non-finite value has no equal partner."""
    if totals.disagreeing:
        return _WORST
    if not totals.counted:
        return {"max_abs": 0.0, "mean_abs": 0.0, "rmse": 0.0, "max_rel": 0.0, "rel_l2": 0.0, "cosine": 1.0}
    largest = totals.maximum
    if isinstance(largest, float) and value_a is not None and value_b is not None:
        difference = complex(value_a - value_b)
        largest = math.hypot(
            difference.real, difference.imag
        )  # in float64, where the block's dtype had rounded
    rel_l2 = 0.0
    if totals.square.value:
        reference = totals.second.square
        rel_l2 = totals.square.root_over(reference) if reference.value else math.inf
    return {
        "max_abs": largest,
        "mean_abs": totals.absolute.over(totals.counted),
        "rmse": totals.square.root_over(type(totals.square)(float(totals.counted))),
        "max_rel": totals.relative,
        "rel_l2": rel_l2,
        "cosine": cosine(totals.product, totals.first.square, totals.second.square),
    }


_WORST: dict[str, Any] = {
    "max_abs": math.inf,
    "mean_abs": math.inf,
    "rmse": math.inf,
    "max_rel": math.inf,
    "rel_l2": math.inf,
    "cosine": 0.0,
}


def _side(array: Array, totals: SideTotals) -> SideFacts:
    """The facts of one array."""
    nonfinite = totals.nan + totals.positive_infinity + totals.negative_infinity
    some = array.size > nonfinite
    constant = some and not nonfinite and totals.minimum == totals.maximum
    if constant and array.dtype.kind == "c":  # equal magnitudes are not yet equal numbers
        constant = _all_equal(array)
    return SideFacts(
        shape=tuple(array.shape),
        dtype=dtype_name(array.dtype),
        size=int(array.size),
        nan=totals.nan,
        positive_infinity=totals.positive_infinity,
        negative_infinity=totals.negative_infinity,
        minimum=totals.minimum if some else None,
        maximum=totals.maximum if some else None,
        constant=constant,
        all_zero=constant and totals.minimum == totals.maximum == 0,
    )


def _all_equal(array: Array) -> bool:
    """Whether every element equals the first one."""
    dtype = array.dtype.newbyteorder("=")
    length = block_length(dtype)
    read = block_reader(array, dtype, "actual")
    first = array[(0,) * array.ndim]

    def span(start: int, stop: int, scratch: Scratch) -> bool:
        return all(
            bool((read(begin, end, scratch) == first).all()) for begin, end in blocks(start, stop, length)
        )

    return all(run_spans(array.size, length, span))


def _exact(array: Array, facts: SideFacts, dtype: np.dtype[Any]) -> bool:
    """Whether every element of ``array`` enters arithmetic of ``dtype`` without rounding."""
    if array.dtype.kind in "fc":
        return array.dtype.itemsize <= dtype.itemsize
    if dtype.kind not in "fc" or facts.minimum is None or facts.maximum is None:
        return True
    return max(abs(facts.minimum), abs(facts.maximum)) < _EXACT_IN_FLOAT64


def _incomparable(actual: Array, reference: Array, tolerance: Tolerance, shape: bool) -> Comparison:
    """Differing shapes: the facts of both sides, and figures that pass no threshold."""
    sides = []
    for array in (actual, reference):
        own = arithmetic(array.dtype, array.dtype)
        sides.append(_side(array, _totals(array, array, own, tolerance).first))
    size = max(actual.size, reference.size)
    dtype = arithmetic(actual.dtype, reference.dtype)
    return Comparison(
        a=sides[0],
        b=sides[1],
        comparable=False,
        reason=phrase("shapes differ: {first} against {second}", first=sides[0].shape, second=sides[1].shape),
        arithmetic="integer" if dtype.kind in "iuO" else dtype_name(dtype),
        inputs_exact=True,
        tolerance=tolerance,
        size=size,
        counted=0,
        max_index=None,
        max_a=None,
        max_b=None,
        min_abs=math.inf,
        mismatched=size,
        mismatched_share=1.0,
        nonfinite_agreeing=0,
        nonfinite_disagreeing=0,
        error_shape=layout_shape(actual, reference, tolerance) if shape else None,
        **_WORST,
    )


def _index(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(part) for part in np.unravel_index(position, shape))


def _value(array: Array, index: tuple[int, ...]) -> Number:
    """One element as a Python number."""
    element = array[index]
    kind = array.dtype.kind
    if kind in "biu":
        return int(element)
    return complex(element) if kind == "c" else float(element)
