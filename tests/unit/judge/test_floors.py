"""Sizes, floors and scores: nothing that is not a number ever passes.

The quick measure of a difference agrees with the full comparison, and leaves the extraordinary to it.
"""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.judge import floors
from parfocal.judge.floors import (
    EPSILON,
    NOTHING,
    PEAK_SLACK,
    Size,
    apart,
    coarser,
    difference,
    error_of,
    score,
    size_of,
)
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance

positive = st.floats(1e-30, 1e30)
DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16]
SHAPES = [(1,), (15,), (3, 5, 7), (1000,), (4, 3, 300_000)]


def test_epsilons_are_the_distances_of_neighbours():
    for name in ("float16", "float32", "float64"):
        assert EPSILON[name] == np.finfo(name).eps
    assert EPSILON["bfloat16"] == float(ml_dtypes.finfo(ml_dtypes.bfloat16).eps)
    assert EPSILON["complex64"] == EPSILON["float32"]
    assert EPSILON["complex128"] == EPSILON["float64"]


def test_the_coarser_dtype_decides_and_integers_do_not_round():
    assert coarser("float32", "float64") == EPSILON["float32"]
    assert coarser("float16", "bfloat16") == EPSILON["bfloat16"]
    assert coarser("int64", "bool") == 0.0
    assert coarser("int64", "float32") == EPSILON["float32"]


def test_the_size_of_values():
    assert size_of(np.array([3.0, -4.0])) == Size(math.sqrt(12.5), 4.0)
    assert size_of(np.array([3 + 4j], "complex64")) == Size(5.0, 5.0)
    assert size_of(np.array([True, False])).peak == 1.0
    assert size_of(np.array(-7)) == Size(7.0, 7.0)


def test_sizes_count_finite_values_only():
    assert size_of(np.array([2.0, np.nan, np.inf, -np.inf])) == Size(2.0, 2.0)
    assert size_of(np.array([np.nan])) == NOTHING
    assert size_of(np.zeros(3)) == NOTHING
    assert size_of(np.empty((0, 2))) == NOTHING


def test_sizes_do_not_overflow():
    assert size_of(np.full(4, 1e300)).rms == pytest.approx(1e300)
    assert size_of(np.full(4, 1e-300)).rms == pytest.approx(1e-300)


def test_sizes_are_combined_by_the_largest_and_scaled():
    assert Size(1.0, 5.0) | Size(2.0, 3.0) == Size(2.0, 5.0)
    assert Size(1.0, 5.0) * 2.0 == Size(2.0, 10.0)
    assert NOTHING | Size(1.0, 2.0) == Size(1.0, 2.0)


def test_a_score_is_the_larger_of_two_ratios_the_peak_with_some_slack():
    assert score(Size(4.0, 4.0), Size(1.0, 4.0)) == 4.0
    assert score(Size(1.0, 60.0), Size(1.0, 4.0)) == 60.0 / (4.0 * PEAK_SLACK)


def test_one_wrong_element_among_many_shows():
    size = 10**6
    error = Size(1.0 / math.sqrt(size), 1.0)  # a single element off by 1
    assert score(error, Size(1e-3, 1e-3)) > 300


def test_no_error_scores_zero_whatever_the_floor():
    assert score(NOTHING, NOTHING) == 0.0
    assert score(NOTHING, Size(1.0, 1.0)) == 0.0


def test_any_error_over_no_floor_is_infinite():
    assert score(Size(1e-300, 1e-300), NOTHING) == math.inf


def test_integers_must_be_equal():
    a, b = np.array([1, 2, 3]), np.array([1, 2, 4])
    floor = size_of(b) * coarser("int64", "int64")
    assert score(difference(a, b), floor) == math.inf
    assert score(difference(a, a), floor) == 0.0


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("limit", [4.0, 1e300])
def test_a_value_that_is_not_finite_never_passes_against_a_number(bad, limit):
    b = np.ones(100, "float32")
    a = b.copy()
    a[37] = bad
    for error in (difference(a, b), difference(b, a)):
        assert error == Size(math.inf, math.inf)
        assert score(error, size_of(b)) > limit
        assert score(error, Size(1e308, 1e308)) > limit


def test_the_same_infinities_and_nans_in_the_same_places_are_no_error():
    a = np.array([np.nan, np.inf, 1.0])
    assert difference(a, a.copy()) == NOTHING


def test_shapes_that_cannot_be_compared_never_pass():
    comparison = compare_arrays(np.zeros(3), np.zeros(4))
    assert error_of(comparison) == Size(math.inf, math.inf)


def test_an_infinite_error_over_an_infinite_floor_does_not_pass():
    verdict = score(Size(math.inf, math.inf), Size(math.inf, math.inf))
    assert not verdict <= 4.0


@given(positive, positive, st.floats(1e-3, 1e3))
def test_scores_do_not_depend_on_the_unit(error, floor, factor):
    plain = score(Size(error, error), Size(floor, floor))
    scaled = score(Size(error, error) * factor, Size(floor, floor) * factor)
    assert scaled == pytest.approx(plain, rel=1e-9)


@given(positive, positive, positive)
def test_a_larger_floor_never_raises_a_score(error, floor, more):
    small = Size(floor, floor)
    assert score(Size(error, error), small | Size(more, more)) <= score(Size(error, error), small)


@pytest.fixture(params=["compiled", "numpy"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(floors, "LIBRARY", None)
    return request.param


def pair(shape, dtype):
    generator = np.random.default_rng(len(shape))
    b = generator.standard_normal(shape)
    return (b * (1 + 1e-3 * generator.standard_normal(shape))).astype(dtype), b.astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_figures_as_the_full_comparison(way, shape, dtype):
    a, b = pair(shape, dtype)
    found, wanted = apart(a, b), compare_arrays(a, b)
    assert found is not None
    assert found.peak == pytest.approx(wanted.max_abs, rel=1e-6)
    assert found.rms == pytest.approx(wanted.rmse, rel=1e-4)
    assert found.relative == pytest.approx(wanted.rel_l2, rel=1e-4)
    assert found.reference_peak == pytest.approx(float(np.abs(b.astype("float64")).max()), rel=1e-6)


def test_strides_make_no_difference(way):
    a, b = pair((40, 30, 20), "float32")
    plain = apart(a, b)
    turned = apart(a.transpose(2, 0, 1), np.ascontiguousarray(b.transpose(2, 0, 1)))
    assert plain is not None
    assert turned is not None
    assert (turned.peak, turned.reference_peak) == (plain.peak, plain.reference_peak)
    assert turned.rms == pytest.approx(plain.rms, rel=1e-5)


def test_equal_empty_and_zero_arrays(way):
    ones, zeros = np.ones(70, "float32"), np.zeros(70, "float32")
    assert apart(ones, ones).relative == 0.0
    assert apart(zeros, zeros).relative == 0.0
    assert apart(ones, zeros).relative == math.inf
    assert apart(ones[:0], ones[:0]).rms == 0.0


@pytest.mark.parametrize("place", [0, 17, 99, 4000])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e30, 1e-30])
def test_what_is_not_ordinary_is_left_to_the_full_comparison(way, bad, place):
    ordinary = np.zeros(4001, "float32")
    spoilt = ordinary.copy()
    spoilt[place] = bad
    assert apart(spoilt, ordinary) is None
    assert apart(ordinary, spoilt) is None
    if not math.isfinite(bad):
        assert apart(spoilt, spoilt) is None


def test_integers_complex_numbers_and_other_shapes_are_left_to_it_too(way):
    assert apart(np.arange(3), np.arange(3)) is None
    assert apart(np.ones(3, "complex64"), np.ones(3, "complex64")) is None
    assert apart(np.ones((2, 3)), np.ones((3, 2))) is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tolerance", [Tolerance(rtol=1e-3), Tolerance(atol=1e-3), Tolerance(1e-4, 1e-4)])
def test_whatever_may_be_a_mismatch_is_left_to_it(way, dtype, tolerance):
    a, b = pair((7, 11, 13), dtype)
    assert compare_arrays(a, b, tolerance=tolerance).mismatched > 0
    assert apart(a, b, tolerance) is None
    assert apart(b, b, tolerance) is not None
    wide = Tolerance(rtol=0.1, atol=0.1)
    assert apart(a, b, wide) is not None


def test_one_element_beyond_the_tolerance_is_enough(way):
    b = np.random.default_rng(0).standard_normal(600_000).astype("float32")
    for place in (0, 17, 300_001, 599_999):
        a = b.copy()
        a[place] += 2e-3
        assert apart(a, b, Tolerance(atol=1e-3)) is None
        assert apart(a, b, Tolerance(atol=5e-3)) is not None
