"""ULP distances: counted floats, the percentile, and dtypes that have none."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parfocal.judge import compare_arrays, ulp
from parfocal.judge.ulp import UlpDistances

DTYPES = ["float16", "bfloat16", "float32", "float64"]


def as_dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def distances(a: np.ndarray, b: np.ndarray) -> UlpDistances:
    found = compare_arrays(a, b, ulp=True).ulp
    assert found is not None
    return found


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("start", [1.0, -2.0, 0.0])
def test_steps_of_nextafter_are_counted(name: str, start: float) -> None:
    dtype = as_dtype(name)
    a = np.array([start], dtype)
    b = a.copy()
    for _ in range(5):
        b = np.nextafter(b, np.array([100], dtype)).astype(dtype)
    assert distances(a, b) == UlpDistances(name, 1, 5, 5)
    assert distances(b, a).maximum == 5


@pytest.mark.parametrize("name", DTYPES)
def test_across_zero(name: str) -> None:
    dtype = as_dtype(name)
    zero = np.array([0.0], dtype)
    tiny = np.nextafter(zero, np.array([1], dtype)).astype(dtype)
    assert distances(zero, -zero).maximum == 0
    assert distances(tiny, -tiny).maximum == 2


def test_the_whole_range_of_float64_does_not_wrap() -> None:
    top = np.finfo(np.float64).max
    assert distances(np.array([top]), np.array([-top])).maximum == 2 * (0x7FF << 52) - 2


def test_mixed_dtypes_count_in_the_coarser() -> None:
    a = np.array([1.0, 1.5, 2.0], np.float16)
    b = a.astype(np.float64) * (1 + 1e-5)
    assert distances(a, b) == UlpDistances("float16", 3, 0, 0)
    assert distances(b, a.astype(ml_dtypes.bfloat16)).dtype == "bfloat16"
    assert distances(a, a.astype(ml_dtypes.bfloat16)).dtype == "bfloat16"


def test_nonfinite_pairs_are_left_out() -> None:
    a = np.array([math.nan, math.inf, 1.0, 2.0], np.float32)
    b = np.array([math.nan, 3.0, 1.0, math.nan], np.float32)
    assert distances(a, b) == UlpDistances("float32", 1, 0, 0)
    assert distances(np.full(3, math.nan), np.zeros(3)) == UlpDistances("float64", 0, 0, 0)


@pytest.mark.parametrize("dtype", [np.int32, np.bool_, np.complex64, ml_dtypes.float8_e5m2])
def test_other_dtypes_have_no_ulp(dtype) -> None:
    assert compare_arrays(np.ones(3).astype(dtype), np.ones(3).astype(dtype), ulp=True).ulp is None
    assert compare_arrays(np.ones(3, np.float32), np.ones(3).astype(dtype), ulp=True).ulp is None


def test_not_asked_for() -> None:
    assert compare_arrays(np.ones(3), np.ones(3)).ulp is None


def rank(value: float, dtype: np.dtype) -> int:
    """The number of positive floats up to ``value``, by its exact value, slowly."""
    info = ml_dtypes.finfo(dtype)
    smallest = Fraction(float(info.smallest_subnormal))
    magnitude = abs(Fraction(value))
    exponent = 0
    while magnitude >= smallest * 2 ** (info.nmant + 1 + exponent):
        exponent += 1
    steps = exponent * 2**info.nmant + magnitude / (smallest * 2**exponent)
    assert steps.denominator == 1
    return int(steps) if value >= 0 else -int(steps)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), name=st.sampled_from(DTYPES[:3]))
def test_against_counting(data, name) -> None:
    dtype = as_dtype(name)
    floats = st.lists(st.floats(-1e4, 1e4, width=32), min_size=6, max_size=6)
    a = np.array(data.draw(floats)).astype(dtype)
    b = np.array(data.draw(floats)).astype(dtype)
    expected = sorted(abs(rank(float(x), dtype) - rank(float(y), dtype)) for x, y in zip(a, b, strict=True))
    found = distances(a, b)
    assert (found.maximum, found.percentile_99) == (expected[-1], expected[-1])


@pytest.mark.parametrize("spread", [3, 1000, 10**6, 10**14])
def test_percentile_without_sorting(monkeypatch, spread) -> None:
    monkeypatch.setattr(ulp, "_LENGTH", 64)
    generator = np.random.default_rng(spread)
    a = generator.standard_normal(1000)
    steps = generator.integers(0, spread, 1000)
    b = (a.view(np.int64) + steps).view(np.float64)
    found = distances(a, b)
    assert found.maximum == steps.max()
    assert found.percentile_99 == np.percentile(steps, 99, method="inverted_cdf")
