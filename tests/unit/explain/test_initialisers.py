"""What few numbers were drawn from: by what explains them, not by how their shape happens to look."""

from __future__ import annotations

import math

import numpy as np
import pytest

from parfocal.explain.initialisers import Fans, InitialiserFamily, drawn

FANS = Fans(72.0, 144.0)
BOUND = 1 / math.sqrt(72)
SEEDS = range(25)

DRAWS = {
    "uniform by fan-in": (Fans(72.0, 144.0, bias=True), lambda rng, n: rng.uniform(-BOUND, BOUND, n)),
    "Kaiming uniform, a=√5": (FANS, lambda rng, n: rng.uniform(-BOUND, BOUND, n)),
    "Xavier uniform": (FANS, lambda rng, n: rng.uniform(-1, 1, n) * math.sqrt(6 / 216)),
    "Kaiming normal": (FANS, lambda rng, n: rng.normal(0, math.sqrt(2 / 72), n)),
}


@pytest.mark.parametrize("size", [16, 64, 1024])
@pytest.mark.parametrize("name", DRAWS)
def test_initialisers_are_named(name: str, size: int) -> None:
    """Of 128 numbers one in a hundred samples may well look otherwise; of more, none."""
    fans, draw = DRAWS[name]
    found = [
        drawn([draw(generator, size) for _ in range(8)], fans).name
        for generator in map(np.random.default_rng, SEEDS)
    ]
    assert found.count(name) >= len(SEEDS) - (size < 64)


@pytest.mark.parametrize("scale", [0.02, 0.05])
@pytest.mark.parametrize("fans", [FANS, Fans(72.0, 144.0, bias=True)])
def test_other_scales_are_not_named_after_an_initialiser(scale: float, fans: Fans) -> None:
    for generator in map(np.random.default_rng, SEEDS):
        normal = drawn([generator.normal(0, scale, 64) for _ in range(8)], fans)
        uniform = drawn([generator.uniform(-scale, scale, 64) for _ in range(8)], fans)
        assert normal.exact_std is None
        assert uniform.exact_std is None
        assert normal.family is InitialiserFamily.NORMAL
        assert uniform.family is InitialiserFamily.UNIFORM
