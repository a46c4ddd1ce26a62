"""The differences that ``compare_info`` returns, and the figures behind the report."""

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from parfocal.compat.reprod_log import ReprodDiffHelper
from parfocal.compat.reprod_log.compare import check_data, compute_diff
from parfocal.errors import InputError


def compare(info1, info2):
    return ReprodDiffHelper().compare_info(info1, info2)


def test_returns_the_documented_formula_for_floats():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        first, second = rng.standard_normal((2, 4, 5)).astype(dtype)
        returned = compare({"x": first, "n": {"y": second}}, {"x": second, "n": {"y": first}})
        np.testing.assert_array_equal(returned["x"], np.abs(first - second), strict=True)
        np.testing.assert_array_equal(returned["n"]["y"], np.abs(first - second), strict=True)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint32", "int64", "uint64"])
def test_integers_are_exact(dtype):
    info = np.iinfo(dtype)
    values = np.array([info.min, info.max, 0, 1, info.max - 1], dtype)
    first, second = (grid.ravel() for grid in np.meshgrid(values, values))
    returned = compare({"x": first}, {"x": second})["x"]
    assert returned.tolist() == [abs(a - b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]


@settings(deadline=None)
@given(
    arrays.arrays(st.sampled_from([np.int8, np.uint8, np.int32, np.uint64, np.int64]), 4),
    arrays.arrays(st.sampled_from([np.int8, np.uint8, np.int32, np.uint64, np.int64]), 4),
)
def test_integers_of_two_types_are_exact(first, second):
    returned = compare({"x": first}, {"x": second})["x"]
    assert returned.tolist() == [abs(a - b) for a, b in zip(first.tolist(), second.tolist(), strict=True)]


def test_what_is_no_number_is_infinite_so_that_nothing_passes():
    nan = np.array([np.nan, 1.0], np.float32)
    returned = compare(
        {"nan": nan, "shape": np.ones(2), "only1": np.ones(2)},
        {"nan": nan, "shape": np.ones((2, 2)), "only2": np.ones(2)},
    )
    assert returned["nan"].tolist() == [math.inf, 0.0]
    for key in ("shape", "only1", "only2"):
        assert returned[key].shape == ()
        assert returned[key].item() == math.inf


def test_axes_of_length_1_alone_keep_every_value_with_its_own():
    first = np.arange(6.0)
    returned = compare({"x": first, "n": {"s": np.array(2.0)}}, {"x": first[:, None] + 1, "n": {"s": [2.5]}})
    np.testing.assert_array_equal(returned["x"], np.ones(6), strict=True)
    np.testing.assert_array_equal(returned["n"]["s"], np.array(0.5), strict=True)


def test_equal_infinities_differ_by_nothing_and_others_infinitely():
    first = np.array([np.inf, -np.inf, np.inf, 1.0])
    second = np.array([np.inf, -np.inf, -np.inf, 1.5])
    assert compare({"x": first}, {"x": second})["x"].tolist() == [0.0, 0.0, math.inf, 0.5]
    figures = compute_diff({"x": first}, {"x": second})["x"]
    assert figures == {"mean": math.inf, "max": math.inf, "min": 0.0}


def test_the_inputs_are_left_alone():
    first, second = np.array([np.nan, 2.0]), np.array([1.0, 1.0])
    compare({"x": first}, {"x": second})
    np.testing.assert_array_equal(first, [np.nan, 2.0])
    np.testing.assert_array_equal(second, [1.0, 1.0])


def test_bfloat16_and_complex_are_compared_by_value():
    narrow = np.array([1.0, 1.0078125], ml_dtypes.bfloat16)
    assert compare({"x": narrow}, {"x": np.ones(2, np.float32)})["x"].tolist() == [0.0, 0.0078125]
    assert compare({"x": np.array([3 + 4j])}, {"x": np.array([0j])})["x"].tolist() == [5.0]


def test_figures_are_those_of_the_formula_for_ordinary_floats():
    rng = np.random.default_rng(1)
    for dtype in (np.float32, np.float64):
        first, second = rng.standard_normal((2, 300, 70)).astype(dtype)
        difference = np.abs(first - second)
        figures = compute_diff({"x": first}, {"x": second})["x"]
        assert figures == {"mean": difference.mean(), "max": difference.max(), "min": difference.min()}
        assert {type(value) for value in figures.values()} == {float}


def test_figures_are_exact_where_the_formula_overflows():
    huge = np.full(4, 3e38, np.float32)
    figures = compute_diff({"x": huge}, {"x": -huge})["x"]
    assert figures["mean"] == figures["max"] == 2 * float(huge[0])
    vanishing = np.zeros(10_000, np.float32)
    vanishing[0] = 1e-45
    assert 0 < compute_diff({"x": vanishing}, {"x": np.zeros_like(vanishing)})["x"]["mean"] < 1e-45


def test_check_data_names_every_key_that_is_not_on_both_sides():
    one = np.ones(1)
    with pytest.raises(InputError) as caught:
        check_data({"a": one, "n": {"x": one}}, {"b": one, "n": {"y": one}})
    for text in (
        "a in data1 but not found in data2",
        "b in data2 but not found in data1",
        "x in data1 but not found in data2",
        "y in data2 but not found in data1",
    ):
        assert text in caught.value.message
    assert check_data({"a": one, "n": {"x": one}}, {"n": {"x": one}, "a": one}) is None
