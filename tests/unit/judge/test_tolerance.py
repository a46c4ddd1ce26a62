"""Tolerance: what it admits and what it says."""

from __future__ import annotations

import math

import pytest

from parfocal.errors import InputError
from parfocal.judge import Tolerance


@pytest.mark.parametrize("value", [-1e-9, math.inf, math.nan, -math.inf])
@pytest.mark.parametrize("name", ["rtol", "atol"])
def test_out_of_range(name, value) -> None:
    with pytest.raises(InputError) as caught:
        Tolerance(**{name: value})
    assert caught.value.message == f"Tolerance: {name} must be finite and not negative, got {value!r}"
    assert caught.value.hint == f"0 <= {name} < inf; 0 asks for exact equality"


@pytest.mark.parametrize("value", ["1e-3", None, True])
def test_not_a_number(value) -> None:
    with pytest.raises(InputError, match="rtol must be a number, got"):
        Tolerance(rtol=value)


def test_defaults_are_exact() -> None:
    assert Tolerance() == Tolerance(0, 0)
    assert Tolerance().exact
    assert not Tolerance(atol=1).exact
