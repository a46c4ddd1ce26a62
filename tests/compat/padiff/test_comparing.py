"""The verdict on two arrays, and how a difference is told."""

import ml_dtypes
import numpy as np
import pytest

from parfocal.compat.padiff.comparing import CompareConfig, compare
from parfocal.compat.padiff.utils import assert_tensor_equal
from parfocal.errors import InputError

MEAN = CompareConfig(atol=1e-4)
STRICT = CompareConfig(atol=1e-4, compare_mode="strict")
ABS_MEAN = CompareConfig(atol=1e-4, compare_mode="abs_mean")


def test_mean_mode_holds_the_mean_of_the_differences_against_the_tolerance():
    first, second = np.array([1.0, -1.0]), np.array([-1.0, 1.0])
    assert first.mean() == second.mean()
    assert not compare(first, second, MEAN).equal
    assert (
        "The two means agree, but 2 of 2 elements differ, by 2 at most" in compare(first, second, MEAN).text
    )


def test_mean_mode_says_that_elements_differ_though_the_mean_is_within_tolerance():
    first = np.zeros(1000)
    second = first.copy()
    second[7] = 0.05
    outcome = compare(first, second, MEAN)
    assert outcome.equal
    assert outcome.hidden == "1 of 1000 elements differ, by 0.05 at most"
    assert compare(first, first, MEAN).hidden == ""


def test_strict_mode_looks_at_every_element():
    first = np.zeros(1000)
    second = first.copy()
    second[7] = 0.05
    assert not compare(first, second, STRICT).equal
    assert compare(first, second * 1e-3, STRICT).equal


def test_abs_mean_mode_compares_the_means_of_absolute_values():
    assert compare(np.array([1.0, -1.0]), np.array([-1.0, 1.0]), ABS_MEAN).equal
    assert not compare(np.array([1.0, -1.0]), np.array([-1.0, 2.0]), ABS_MEAN).equal


@pytest.mark.parametrize("config", [MEAN, STRICT, ABS_MEAN])
def test_nan_equals_nan_in_the_same_places_only(config):
    first, second = np.array([np.nan, 1.0]), np.array([1.0, np.nan])
    assert compare(first, first.copy(), config).equal
    assert not compare(first, second, config).equal
    assert not compare(first, np.ones(2), config).equal


@pytest.mark.parametrize("config", [MEAN, STRICT, ABS_MEAN])
def test_other_shapes_are_a_difference(config):
    outcome = compare(np.ones((2, 3)), np.ones((3, 2)), config)
    assert not outcome.equal
    assert outcome.text.endswith("(shapes (2, 3), (3, 2) mismatch)")


def test_bfloat16_and_mixed_dtypes_compare_by_value():
    values = np.array([1.0, 2.5, -3.0])
    assert compare(values.astype(ml_dtypes.bfloat16), values.astype("float32"), STRICT).equal
    assert not compare(values.astype(ml_dtypes.bfloat16), values + 1, STRICT).equal


def test_the_text_of_mean_mode_is_the_documents():
    first, second = np.full(4, 0.044507, "float32"), np.full(4, 0.268678, "float32")
    assert compare(first, second, MEAN).text == (
        "\nNot equal to tolerance rtol=1e-07, atol=0.0001\n"
        "\n"
        "Mismatched elements: 1 / 1 (100%)\n"
        "Max absolute difference: 0.22417101\n"
        "Max relative difference: 0.8343482\n"
        " x: array(0.044507, dtype=float32)\n"
        " y: array(0.268678, dtype=float32)"
    )


def test_the_text_of_strict_mode_is_the_documents():
    first = np.arange(10000, dtype="float32").reshape(100, 100)
    second = first.copy()
    second[0, 1] = 3
    text = compare(first, second, STRICT).text
    assert text.startswith(
        "\nNot equal to tolerance rtol=1e-07, atol=0.0001\n"
        "\n"
        "Mismatched elements: 1 / 10000 (0.01%)\n"
        "Max absolute difference: 2.0\n"
        "Max relative difference: 0.6666667\n"
        " x: array([["
    )
    assert text.count("...") >= 2


def test_wrong_settings_are_refused():
    with pytest.raises(InputError, match="compare_mode is 'median'; the modes are: mean, strict, abs_mean"):
        CompareConfig(compare_mode="median")
    with pytest.raises(InputError, match="cfg has no entry called 'tol'"):
        CompareConfig.of({"tol": 1})
    with pytest.raises(InputError, match="atol must be finite"):
        CompareConfig(atol=-1)


def test_assert_tensor_equal_raises_an_assertion_error():
    assert assert_tensor_equal(np.ones(3), np.ones(3), {}) is None
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_tensor_equal(np.ones(3), np.zeros(3), {"atol": 0.5})
