"""How gradients were clipped, from before and after."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.explain.clipping import clip_of

GRADIENTS = [
    np.random.default_rng(n).standard_normal(shape) for n, shape in enumerate([(4, 3), (7,), (2, 2)])
]


def norm(arrays: list[np.ndarray]) -> float:
    return float(np.sqrt(sum((array**2).sum() for array in arrays)))


def test_every_kind_is_told_with_its_limit() -> None:
    total = norm(GRADIENTS)
    whole = clip_of(GRADIENTS, [each * (0.5 / total) for each in GRADIENTS])
    assert (whole.kind, whole.limit) == ("global_norm", pytest.approx(0.5))
    single = clip_of(GRADIENTS, [each * min(1.0, 1.0 / norm([each])) for each in GRADIENTS])
    assert (single.kind, single.limit) == ("norm", pytest.approx(1.0))
    value = clip_of(GRADIENTS, [np.clip(each, -0.3, 0.3) for each in GRADIENTS])
    assert (value.kind, value.limit) == ("value", pytest.approx(0.3))
    assert clip_of(GRADIENTS, GRADIENTS).kind == "none"
    larger = clip_of(GRADIENTS, [each * 2 for each in GRADIENTS])
    assert (larger.kind, larger.limit) == ("scale", pytest.approx(2.0))
    assert clip_of(GRADIENTS, [each**3 for each in GRADIENTS]).kind == "other"


def test_gradients_of_zero_are_no_clipping() -> None:
    nothing = [np.zeros(3), np.zeros((2, 2))]
    assert clip_of(nothing, nothing).kind == "none"
