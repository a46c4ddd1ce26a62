"""The compiled loops: that they are built, and that they are left alone where they do not fit."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from parfocal.judge import kernels, moments
from parfocal.judge.moments import Pass, gather
from parfocal.judge.sketch import sketch
from parfocal.native import library as compiled
from tests.unit.native.presence import needs_library

BUILT = compiled.LIBRARY is not None


@pytest.mark.skipif(os.environ.get(compiled.VARIABLE) == compiled.NO_PATH, reason="NumPy alone was asked for")
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_with_a_compiler_the_loops_are_built():
    assert BUILT, "install the package again, or run python hatch_build.py: it was built without its loops"


def test_a_missing_or_foreign_library_is_none(tmp_path: Path):
    assert compiled._load(tmp_path / "none.so") is None
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(b"no library")
    assert compiled._load(foreign) is None


@needs_library
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 255, 65537, 262144, 262145, 700001])
@pytest.mark.parametrize("width", [16, 48, 256, 1024])
def test_both_ways_give_the_same_sketch(dtype, size, width, monkeypatch):
    array = np.random.default_rng(size).standard_normal(size).astype(np.float32).astype(dtype)
    monkeypatch.setattr(moments, "LIBRARY", compiled.LIBRARY)
    fast = sketch(array, size=width, seed=3)
    monkeypatch.setattr(moments, "LIBRARY", None)
    slow = sketch(array, size=width, seed=3)
    norm = slow.fingerprint.l2
    assert np.allclose(fast.projection, slow.projection, rtol=0, atol=2e-6 * norm)
    assert fast.fingerprint.l1 == pytest.approx(slow.fingerprint.l1, rel=1e-6)
    assert fast.fingerprint.l2 == pytest.approx(norm, rel=1e-6)
    assert fast.fingerprint.third == pytest.approx(slow.fingerprint.third, rel=1e-5, abs=1e-6 * norm**3)
    assert (fast.fingerprint.minimum, fast.fingerprint.maximum) == (
        slow.fingerprint.minimum,
        slow.fingerprint.maximum,
    )


@needs_library
@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e-42])
def test_blocks_out_of_the_ordinary_are_left_to_numpy(odd, monkeypatch):
    monkeypatch.setattr(moments, "LIBRARY", compiled.LIBRARY)
    array = np.full(1000, odd, np.float32)
    assert moments._compiled(array, Pass(powers=True)) is None
    assert moments._compiled(array[:0], Pass(powers=True)) is not None
    gathered = gather(array, Pass(powers=True))
    assert gathered.finite == (1000 if np.isfinite(odd) else 0)


@needs_library
def test_very_large_and_very_small_numbers_are_scaled(monkeypatch):
    monkeypatch.setattr(moments, "LIBRARY", compiled.LIBRARY)
    sizes = np.repeat(np.array([1.0, 1e-12, 1e-25, 1e25, 1.0, 0.0, 1e12], np.float32), 1000)
    array = np.random.default_rng(0).standard_normal(7000).astype(np.float32) * sizes
    for part in np.split(array, 7):
        found, wide = moments._compiled(part, Pass(powers=True)), part.astype(np.float64)
        assert found is not None
        assert (found.minimum, found.maximum) == (wide.min(), wide.max())
        assert found.absolute.over(1) == pytest.approx(np.abs(wide).sum(), rel=1e-6)
        assert found.square.over(1) == pytest.approx((wide**2).sum(), rel=1e-6)
        assert found.cube.over(1) == pytest.approx((wide**3).sum(), rel=1e-4)


@needs_library
def test_a_pair_with_a_nan_is_left_to_numpy(monkeypatch):
    monkeypatch.setattr(kernels, "LIBRARY", compiled.LIBRARY)
    x = np.ones(600, np.float32)
    y = x.copy()
    y[599] = np.nan
    assert kernels.quick_block(x, y, 0, kernels.Tolerance(), kernels.Scratch(), -1.0) is None
    assert kernels.quick_block(x, x, 0, kernels.Tolerance(), kernels.Scratch(), -1.0) is not None


@needs_library
def test_other_dtypes_layouts_and_byte_orders_are_left_to_numpy(monkeypatch):
    monkeypatch.setattr(moments, "LIBRARY", compiled.LIBRARY)
    plain = np.ones((8, 8), np.float32)
    for array in (plain.astype(np.float64), plain[:, ::2], plain.astype(">f4"), plain.astype(np.float16)):
        assert moments._compiled(array, Pass()) is None
    assert moments._compiled(plain, Pass()) is not None
