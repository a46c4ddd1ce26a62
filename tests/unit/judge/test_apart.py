"""The quick measure of a difference agrees with the full comparison, and leaves the extraordinary to it."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from parfocal.judge import apart as module
from parfocal.judge.apart import apart
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance

DTYPES = ["float32", "float64", "float16", ml_dtypes.bfloat16]
SHAPES = [(1,), (15,), (3, 5, 7), (1000,), (4, 3, 300_000)]


@pytest.fixture(params=["compiled", "numpy"])
def way(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(module, "LIBRARY", None)
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
