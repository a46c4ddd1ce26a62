"""Memory stays bounded whatever the size, dtype and layout."""

from __future__ import annotations

import tracemalloc

import ml_dtypes
import numpy as np
import pytest

from parfocal.judge import Tolerance, compare_arrays, parallel
from parfocal.judge.sketch import sketch, stats

LIMIT = 32 * 2**20
ELEMENTS = 2**24


@pytest.fixture(autouse=True)
def many_cores(monkeypatch) -> None:
    monkeypatch.setattr(parallel, "_cores", lambda: 64)


def peak(job) -> int:
    parallel._workers.cache_clear()  # buffers kept from earlier calls would hide what this one needs
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 100, ELEMENTS, dtype=np.uint8)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_compare(values, dtype) -> None:
    a = values.astype(getattr(ml_dtypes, dtype, dtype))
    b = a[::-1]
    assert peak(lambda: compare_arrays(a, b, tolerance=Tolerance(1e-3, 1e-3))) < LIMIT
    assert peak(lambda: compare_arrays(a.reshape(4096, -1).T, b.reshape(4096, -1).T)) < LIMIT


def test_compare_where_float32_does_not_suffice(values) -> None:
    a = values.astype(np.float32) * np.float32(1e-30)
    assert peak(lambda: compare_arrays(a, a[::-1], tolerance=Tolerance(1e-3, 1e-33))) < LIMIT


def test_compare_at_the_very_edge_of_a_tolerance(values) -> None:
    a = values.astype(np.float32)
    b = a + np.float32(0.5)
    assert peak(lambda: compare_arrays(b, a, tolerance=Tolerance(atol=0.5))) < LIMIT


def test_compare_with_nan_everywhere(values) -> None:
    a = values.astype(np.float32)
    a[::1000] = np.nan
    assert peak(lambda: compare_arrays(a, a)) < LIMIT


def test_ulp(values) -> None:
    a = values.astype(np.float32)
    assert peak(lambda: compare_arrays(a, a[::-1], ulp=True)) < LIMIT


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_sketch(values, dtype) -> None:
    a = values.astype(getattr(ml_dtypes, dtype, dtype))
    assert peak(lambda: sketch(a)) < LIMIT
    assert peak(lambda: sketch(a, size=1024)) < LIMIT
    assert peak(lambda: stats(a)) < LIMIT
    assert peak(lambda: sketch(a.reshape(4096, -1).T)) < LIMIT


def test_what_is_kept_between_calls_is_bounded(values) -> None:
    def many() -> None:
        for dtype in (np.float32, np.float64, np.int32, np.uint64, np.complex64, np.float16):
            a = values[: 2**21].astype(dtype)
            compare_arrays(a, a, tolerance=Tolerance(1e-3, 1e-3), ulp=True)
            sketch(a)
        compare_arrays(values[:100_000].astype(np.uint64), -values[:100_000].astype(np.int64))

    parallel._workers.cache_clear()
    tracemalloc.start()
    try:
        many()
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < LIMIT


def test_the_measurement_can_fail(values) -> None:
    assert peak(lambda: values.astype(np.float32)) > LIMIT
