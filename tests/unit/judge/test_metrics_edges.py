"""Corner cases of compare_arrays, one by one."""

from __future__ import annotations

import json
import math

import ml_dtypes
import numpy as np
import pytest

from parfocal.errors import InputError
from parfocal.judge import Comparison, Tolerance, compare_arrays

NAN, INF = math.nan, math.inf
INT64 = np.iinfo(np.int64)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (np.uint8(0), np.uint8(255), 255),
        (np.array([INT64.min]), np.array([INT64.max]), 2**64 - 1),
        (np.array([2**64 - 1], np.uint64), np.array([INT64.min]), 2**64 - 1 + 2**63),
        (np.array([2**64 - 1], np.uint64), np.array([-1], np.int8), 2**64),
        (np.array([2**63], np.uint64), np.array([2**63 - 1], np.uint64), 1),
        (np.array([2**53 + 1]), np.array([2**53]), 1),
        (np.array([True]), np.array([False]), 1),
        (np.array([True]), np.array([7], np.uint8), 6),
    ],
)
def test_integer_differences_do_not_wrap(a, b, expected) -> None:
    found = compare_arrays(a, b)
    assert found.max_abs == found.min_abs == expected
    assert type(found.max_abs) is int
    assert compare_arrays(b, a).max_abs == expected
    assert found.mean_abs == float(expected)


def test_integer_tolerance_is_exact_beyond_float64() -> None:
    a, b = np.array([2**60 + 1, 2**60 + 2]), np.array([2**60, 2**60])
    assert compare_arrays(a, b, tolerance=Tolerance(atol=1)).mismatched == 1
    assert compare_arrays(a, b, tolerance=Tolerance(atol=1.5)).mismatched == 1
    assert compare_arrays(a, b, tolerance=Tolerance(atol=1e30)).mismatched == 0


def test_float16_difference_may_exceed_float16() -> None:
    a, b = np.array([65504], np.float16), np.array([-65504], np.float16)
    assert compare_arrays(a, b).max_abs == 131008


def test_float32_difference_may_exceed_float32() -> None:
    big = np.float32(3e38)
    found = compare_arrays(np.array([big, 1]), np.array([-big, 1]))
    assert found.max_abs == 2 * float(big)
    assert found.mean_abs == float(big)
    assert found.nonfinite_disagreeing == 0


def test_float64_squares_may_exceed_float64() -> None:
    found = compare_arrays(np.array([3e200, 4e200]), np.array([0.0, 0.0]))
    assert found.rmse == pytest.approx(5e200 / math.sqrt(2), rel=1e-14)
    found = compare_arrays(np.array([3e-300, 4e-300]), np.array([6e-300, 8e-300]))
    assert found.rmse == pytest.approx(5e-300 / math.sqrt(2), rel=1e-14)
    assert found.rel_l2 == pytest.approx(0.5, rel=1e-14)
    assert found.cosine == pytest.approx(1, rel=1e-14)


def test_bfloat16_keeps_its_name_and_value() -> None:
    a = np.array([1.0, 2.0, -3.0], ml_dtypes.bfloat16)
    b = np.array([1.0, 2.5, -3.0], ml_dtypes.bfloat16)
    found = compare_arrays(a, b)
    assert (found.a.dtype, found.max_abs, found.max_index) == ("bfloat16", 0.5, (1,))
    assert (found.max_a, found.max_b) == (2.0, 2.5)


def test_mixed_float_dtypes_are_compared_in_the_wider() -> None:
    found = compare_arrays(np.array([0.1], np.float32), np.array([0.1]))
    assert found.arithmetic == "float64"
    assert found.inputs_exact
    assert found.max_abs == float(np.float32(0.1)) - 0.1


def test_large_integers_against_floats_are_said_to_be_rounded() -> None:
    assert not compare_arrays(np.array([2**53 + 1]), np.array([2.0**53])).inputs_exact
    assert compare_arrays(np.array([2**53 - 1]), np.array([2.0**53])).inputs_exact
    assert compare_arrays(np.array([2**53 + 1]), np.array([2**53])).inputs_exact


def test_complex() -> None:
    a = np.array([3 + 4j, 1j, 5], np.complex64)
    b = np.array([0, 1j, 5], np.complex128)
    found = compare_arrays(a, b)
    assert (found.max_abs, found.max_index, found.max_a, found.max_b) == (5, (0,), 3 + 4j, 0)
    assert found.arithmetic == "complex128"
    assert (found.a.minimum, found.a.maximum) == (1, 5)
    assert found.rmse == pytest.approx(5 / math.sqrt(3))
    turned = compare_arrays(np.array([1j, 1j]), np.array([1, 1]))
    assert turned.cosine == 0
    assert not compare_arrays(np.array([1, 1j]), np.array([1, 1j])).a.constant
    assert turned.a.constant
    assert not turned.a.all_zero
    assert json.dumps(found.to_json())


def test_complex_nonfinite_values() -> None:
    a = np.array([complex(NAN, 0), complex(0, -INF), complex(INF, NAN), 1])
    found = compare_arrays(a, a.copy())
    assert (found.a.nan, found.a.negative_infinity, found.a.positive_infinity) == (2, 1, 0)
    assert found.equal
    other = a.copy()
    other[1] = complex(0, INF)
    assert compare_arrays(a, other).nonfinite_disagreeing == 1


def test_zero_dimensional() -> None:
    found = compare_arrays(np.float32(2), np.array(5, np.float32))
    assert (found.max_abs, found.max_index, found.size, found.a.shape) == (3, (), 1, ())


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64"])
def test_empty(shape, dtype) -> None:
    found = compare_arrays(np.empty(shape, dtype), np.empty(shape, dtype))
    assert (found.comparable, found.size, found.counted, found.max_index) == (True, 0, 0, None)
    assert (found.max_abs, found.mismatched, found.mismatched_share) == (0, 0, 0)
    assert not found.a.constant
    assert not found.a.all_zero


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4", ">u8", ">c16", ">f2"])
def test_foreign_byte_order(dtype) -> None:
    a = np.arange(10).astype(dtype)
    b = np.arange(10).astype(np.dtype(dtype).newbyteorder("<"))
    assert compare_arrays(a, b, ulp=True, shape=True).equal
    b[3] = 7
    found = compare_arrays(a, b)
    assert (found.max_abs, found.max_index) == (4, (3,))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "complex64"])
def test_views_of_any_layout(dtype) -> None:
    base = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)
    array = base.astype(getattr(ml_dtypes, dtype, dtype))
    for view in (
        array.transpose(0, 2, 3, 1),
        array[:, ::2, ::-1, 1:4],
        array[..., None].transpose(4, 3, 2, 1, 0),
        np.asfortranarray(array),
        np.broadcast_to(array[:, :1], array.shape),
    ):
        other = np.ascontiguousarray(view).copy()
        assert compare_arrays(view, other).equal
        other[(-1,) * other.ndim] += np.asarray(3, other.dtype)
        found = compare_arrays(view, other)
        assert found.mismatched == 1
        assert found.max_index == tuple(length - 1 for length in view.shape)


@pytest.mark.parametrize(
    ("first", "second"), [((90,), (90, 1)), ((3, 4), (4, 3)), ((1, 5), (5,)), ((), (1,)), ((0,), (0, 3))]
)
def test_differing_shapes_are_never_broadcast(first, second) -> None:
    found = compare_arrays(np.ones(first), np.ones(second))
    assert not found.comparable
    assert found.reason == f"shapes differ: {first} against {second}"
    assert not found.equal
    for name in ("max_abs", "mean_abs", "rmse", "max_rel", "rel_l2", "min_abs"):
        assert getattr(found, name) == INF
    assert (found.mismatched_share, found.cosine, found.counted) == (1, 0, 0)
    assert found.a.shape == first
    assert found.a.constant == (0 not in first)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("p", "q"), [(NAN, 1), (1, NAN), (INF, 1), (1, -INF), (INF, -INF), (NAN, INF)])
def test_nothing_passes_where_a_nonfinite_value_stands_alone(dtype, p, q) -> None:
    a = np.ones((4, 5)).astype(getattr(ml_dtypes, dtype, dtype))
    b = a.copy()
    a[2, 3], b[2, 3] = p, q
    a[3, 0], b[3, 0] = 1000, 1
    found = compare_arrays(a, b, tolerance=Tolerance(1e9, 1e9))
    assert found.max_index == (2, 3)
    assert str(found.max_a) == str(float(p))
    assert found.mismatched == 1
    assert not found.same_nonfinite_places
    for name in ("max_abs", "mean_abs", "rmse", "max_rel", "rel_l2"):
        assert not getattr(found, name) <= 1e300
    assert not found.cosine >= 0.1


def test_nonfinite_values_in_the_same_places_are_set_aside_and_reported() -> None:
    a = np.array([NAN, INF, -INF, 1, 2], np.float32)
    b = np.array([NAN, INF, -INF, 1, 2.5], np.float32)
    found = compare_arrays(a, b)
    assert (found.counted, found.nonfinite_agreeing, found.mismatched) == (2, 3, 1)
    assert (found.max_abs, found.max_index, found.mean_abs) == (0.5, (4,), 0.25)
    assert (found.a.nan, found.a.positive_infinity, found.a.negative_infinity) == (1, 1, 1)
    assert found.same_nonfinite_places
    assert not found.a.finite
    assert not found.a.constant


def test_all_nan() -> None:
    a = np.full(7, NAN)
    found = compare_arrays(a, a)
    assert (found.counted, found.nonfinite_agreeing, found.max_abs, found.max_index) == (0, 7, 0, None)
    assert (found.a.minimum, found.a.maximum, found.a.constant) == (None, None, False)


def test_relative_to_zero() -> None:
    found = compare_arrays(np.array([0.0, 2.0]), np.array([0.0, 4.0]))
    assert (found.max_rel, found.cosine) == (0.5, 1)
    assert compare_arrays(np.array([1e-9, 2.0]), np.array([0.0, 2.0])).max_rel == INF
    zeros = compare_arrays(np.zeros(3), np.zeros(3))
    assert (zeros.max_rel, zeros.rel_l2, zeros.cosine) == (0, 0, 1)
    one_zero = compare_arrays(np.ones(3), np.zeros(3))
    assert (one_zero.max_rel, one_zero.rel_l2, one_zero.cosine) == (INF, INF, 0)
    assert one_zero.b.all_zero
    assert one_zero.a.constant
    assert not one_zero.a.all_zero


def test_a_ratio_beyond_float32_is_not_infinite() -> None:
    found = compare_arrays(np.array([1e10], np.float32), np.array([1e-35], np.float32))
    assert found.max_rel == pytest.approx(1e45, rel=1e-6)


def test_the_reference_is_the_second_array() -> None:
    a, b = np.array([1.0]), np.array([2.0])
    assert compare_arrays(a, b).max_rel == 0.5
    assert compare_arrays(b, a).max_rel == 1
    assert compare_arrays(a, b, tolerance=Tolerance(rtol=0.5)).mismatched == 0
    assert compare_arrays(b, a, tolerance=Tolerance(rtol=0.5)).mismatched == 1


def test_a_difference_at_the_tolerance_is_a_match() -> None:
    a, b = np.array([1.5, 1.75], np.float32), np.array([1, 1], np.float32)
    assert compare_arrays(a, b, tolerance=Tolerance(atol=0.5)).mismatched == 1
    assert compare_arrays(a, b, tolerance=Tolerance(rtol=0.75)).mismatched == 0
    assert compare_arrays(a, b, tolerance=Tolerance(rtol=0.25, atol=0.25)).mismatched == 1


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
@pytest.mark.parametrize("beyond", [0, 1, 3000, 150_000])
def test_counts_at_the_very_edge_of_a_tolerance(dtype, beyond) -> None:
    b = np.ones(300_000, getattr(ml_dtypes, dtype, dtype))
    a = b + b.dtype.type(0.5)
    a[:beyond] += b.dtype.type(0.125)
    assert compare_arrays(a, b, tolerance=Tolerance(atol=0.5)).mismatched == beyond
    assert compare_arrays(a, b, tolerance=Tolerance(rtol=0.25, atol=0.25)).mismatched == beyond
    assert compare_arrays(a, b, tolerance=Tolerance(rtol=np.nextafter(0.5, 0))).mismatched == a.size


def test_the_first_of_equal_maxima_is_reported() -> None:
    a = np.zeros((600, 1000), np.float32)
    a[7, 3] = a[100, 0] = a[599, 999] = 2
    assert compare_arrays(a, np.zeros_like(a)).max_index == (7, 3)


@pytest.mark.parametrize("value", ["text", None, {"a": 1}, np.array([None]), np.array(["2020"], "M8[D]")])
def test_what_holds_no_numbers_is_refused(value) -> None:
    with pytest.raises(InputError, match=r"b has dtype .* holds no numbers to compare"):
        compare_arrays(np.zeros(1), value)


def test_structured_arrays_are_refused() -> None:
    with pytest.raises(InputError, match="holds no numbers"):
        compare_arrays(np.zeros(2, [("x", "f4")]), np.zeros(2))


def test_lists_and_scalars_are_arrays() -> None:
    assert compare_arrays([1, 2, 3], (1, 2, 4)).max_abs == 1
    assert compare_arrays(1.5, 2).max_abs == 0.5


def plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and plain(item) for key, item in value.items())
    if isinstance(value, list):
        return all(plain(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "uint64", "bool", "complex64"])
def test_json_is_plain_and_strict(dtype) -> None:
    a = np.array([[0, 1, 0], [1, 1, 0]]).astype(getattr(ml_dtypes, dtype, dtype))
    b = a.copy()
    b[1, 1] = 0
    if dtype == "float64":
        a[0, 0] = NAN
    text = compare_arrays(a, b, ulp=True, shape=True, tolerance=Tolerance(1, 2)).to_json()
    assert plain(text)
    assert json.loads(json.dumps(text, allow_nan=False)) == text
    if dtype == "float64":
        assert (text["max_abs"], text["max_a"]) == ("inf", "nan")


def test_results_are_frozen_and_inputs_untouched() -> None:
    a, b = np.arange(5.0), np.arange(5.0)[::-1]
    a.flags.writeable = False
    found = compare_arrays(a, b, ulp=True, shape=True)
    assert isinstance(found, Comparison)
    with pytest.raises(AttributeError):
        found.max_abs = 0  # type: ignore[misc]
    assert a.tolist() == [0, 1, 2, 3, 4]


def test_error_state_of_numpy_does_not_matter() -> None:
    a, b = np.array([INF, NAN, 1e-45, 3e38], np.float32), np.array([1, NAN, 0, -3e38], np.float32)
    with np.errstate(all="raise"):
        assert compare_arrays(a, b, ulp=True, shape=True).nonfinite_disagreeing == 1
