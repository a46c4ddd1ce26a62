"""The parts of recording state that need no framework."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from parfocal.capture.state import check_roles, sum_of_squares
from parfocal.errors import InputError


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", ml_dtypes.bfloat16, "complex64"])
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_sum_of_squares(dtype, scale):
    values = (np.random.default_rng(0).normal(size=200_000) * scale).astype(dtype)
    wide = values.astype("complex128" if dtype == "complex64" else "float64")
    assert sum_of_squares(values) == pytest.approx(float((np.abs(wide) ** 2).sum()), rel=1e-6)


@pytest.mark.parametrize("value", [1e30, 1e-30])
def test_squares_out_of_float32s_range(value):
    values = np.full(10, value, "float32")
    assert sum_of_squares(values) == pytest.approx(10 * float(values[0]) ** 2, rel=1e-6)


def test_no_values_and_non_finite_ones():
    assert sum_of_squares(np.empty((0, 3), "float32")) == 0
    assert np.isnan(sum_of_squares(np.array([np.nan, 1.0], "float32")))
    assert np.isinf(sum_of_squares(np.array([-np.inf, 1.0], "float32")))


def test_roles():
    assert check_roles("parameter", False) == ("parameter",)
    assert check_roles(("optimizer",), True) == ("optimizer",)
    with pytest.raises(InputError, match="state has 'weights'"):
        check_roles(("weights",), True)
    with pytest.raises(InputError, match="needs to know the optimizer"):
        check_roles(("optimizer",), False)
