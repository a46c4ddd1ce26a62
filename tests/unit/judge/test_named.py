"""Named arrays: every name counts, in both directions, and nothing is compared silently."""

from __future__ import annotations

import math

import numpy as np
import pytest

from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.named import METHODS, compare_named, flatten, methods_of

ONES = np.ones((2, 3), "float32")


def one(first, second, **options):
    (row,) = compare_named({"x": first}, {"x": second}, **options)
    return row


def test_equal_arrays_pass_by_every_method():
    row = one(ONES, ONES, method=list(METHODS), threshold=0.0)
    assert row.passed
    assert set(row.values) == set(METHODS)
    assert set(row.values.values()) == {0.0}


def test_each_method_reads_its_own_number():
    row = one(np.array([1.0, 2.0, 5.0]), np.array([1.0, 1.0, 1.0]), method=list(METHODS))
    assert row.values["mean"] == pytest.approx(5 / 3)
    assert (row.values["max"], row.values["min"]) == (4.0, 0.0)
    assert row.values["rmse"] == pytest.approx(math.sqrt(17 / 3))
    assert row.values["relative"] == pytest.approx(math.sqrt(17) / math.sqrt(3))


def test_a_value_equal_to_the_threshold_passes_and_the_next_does_not():
    assert one(np.array([0.5]), np.array([0.0]), threshold=0.5).passed
    assert not one(np.array([0.5]), np.array([0.0]), threshold=np.nextafter(0.5, 0)).passed


def test_all_methods_must_pass():
    row = one(np.array([0.0, 1.0]), np.array([0.0, 0.0]), method="all", threshold=0.1)
    assert row.verdicts == {"min": True, "max": False, "mean": False}
    assert not row.passed


def test_methods_expand_and_are_named_once():
    assert methods_of("all") == ("min", "max", "mean")
    assert methods_of(["mean", "all", "mean"]) == ("mean", "min", "max")


@pytest.mark.parametrize(
    ("wrong", "said"), [("median", "'median'"), (["max", "mode"], "'mode'"), ([], "(none given)")]
)
def test_methods_that_do_not_exist(wrong, said):
    with pytest.raises(InputError) as caught:
        methods_of(wrong)
    assert caught.value.message == f"unknown diff method {said}"
    assert caught.value.hint == "use one or more of mean, max, min, rmse, relative, or all"


@pytest.mark.parametrize("threshold", [-1e-9, math.nan])
def test_a_threshold_must_be_a_number_from_zero_up(threshold):
    with pytest.raises(InputError, match="it must be a number >= 0"):
        one(ONES, ONES, threshold=threshold)


def test_names_on_one_side_only_fail_in_both_directions():
    rows = compare_named({"a": ONES, "b": ONES}, {"b": ONES, "c": ONES})
    assert [(row.name, row.problem, row.passed) for row in rows] == [
        (("a",), "missing in the second", False),
        (("b",), "", True),
        (("c",), "missing in the first", False),
    ]
    assert all(row.badness == math.inf for row in (rows[0], rows[2]))


def test_other_shapes_fail_and_do_not_stop_the_rest():
    rows = compare_named({"a": ONES, "b": ONES}, {"a": ONES.T, "b": ONES})
    assert [row.passed for row in rows] == [False, True]
    assert "shape" in rows[0].problem


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_nan_against_a_number_fails_every_method(method, bad):
    spoilt = ONES.copy()
    spoilt[0, 0] = bad
    for pair in ((spoilt, ONES), (ONES, spoilt)):
        row = one(*pair, method=method, threshold=1e30)
        assert not row.passed
        assert row.remark == "NaN or infinity on one side only at 1 places"


def test_nans_in_the_same_places_pass_but_are_reported():
    spoilt = ONES.copy()
    spoilt[0, 0] = np.nan
    row = one(spoilt, spoilt)
    assert row.passed
    assert row.remark == "NaN or infinity on both sides at 1 place"


def test_nothing_to_compare_is_an_error_not_a_pass():
    with pytest.raises(EmptyComparisonError) as caught:
        compare_named({}, {})
    assert caught.value.message == "both sides are empty: there is nothing to compare"


def test_empty_arrays_of_the_same_shape():
    assert one(np.empty((0, 3)), np.empty((0, 3))).passed
    assert not one(np.empty((0, 3)), np.empty((0, 4))).passed


def test_numbers_and_booleans_count_as_arrays():
    assert one(0.5, np.float32(0.5)).passed
    assert not one(True, False).passed
    assert one([1, 2], [1, 2]).passed


def test_texts_are_equal_or_not_and_do_not_stop_the_rest():
    rows = compare_named({"kind": "adam", "x": ONES, "note": "a"}, {"kind": "sgd", "x": ONES, "note": "a"})
    assert [row.passed for row in rows] == [False, True, True]
    assert rows[0].problem == "not numbers: 'adam' and 'sgd'"
    assert not one("1.0", 1.0).passed


def test_nested_dictionaries_are_flattened_by_their_keys():
    tree = {"loss": 1.0, "layers": {"0": {"w": ONES}, 1: ONES}}
    assert [name for name, _ in flatten(tree)] == [("loss",), ("layers", "0", "w"), ("layers", "1")]
    rows = compare_named(tree, {"loss": 1.0, "layers": {"0": {"w": ONES}}})
    assert [row.passed for row in rows] == [True, True, False]
