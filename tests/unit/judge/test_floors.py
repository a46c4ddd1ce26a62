"""Sizes, floors and scores: nothing that is not a number ever passes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.judge.floors import (
    EPSILON,
    NOTHING,
    PEAK_SLACK,
    Size,
    coarser,
    difference,
    error_of,
    score,
    size_of,
)
from parfocal.judge.metrics import compare_arrays

positive = st.floats(1e-30, 1e30)


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
