"""Fingerprints: blind to layout, keen on values, and honest about dead ones."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.weights.fingerprint import NOISE, USUAL_NOISE, distance, distances, fingerprint, noise_of


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def test_the_same_values_in_another_layout() -> None:
    x = values(2, 3, 5, 7)
    assert distance(fingerprint(x), fingerprint(x.transpose(0, 2, 3, 1))) < 1e-6


def test_rounding_is_within_noise_and_other_values_are_not() -> None:
    x = values(4, 100)
    assert distance(fingerprint(x), fingerprint(x * (1 + 1e-5))) < USUAL_NOISE
    assert distance(fingerprint(x), fingerprint(values(4, 100, seed=1))) > 10 * USUAL_NOISE
    assert distance(fingerprint(x), fingerprint(np.maximum(x, 0))) > 10 * USUAL_NOISE


def test_parts_in_another_order_are_seen_in_the_same_layout() -> None:
    first, second = values(2, 8), values(2, 8, seed=1)
    joined, swapped = np.concatenate([first, second], 1), np.concatenate([second, first], 1)
    assert distance(fingerprint(joined), fingerprint(swapped)) > 10 * USUAL_NOISE


def test_sizes_and_empties() -> None:
    assert distance(fingerprint(values(3)), fingerprint(values(4))) == float("inf")
    assert distance(fingerprint(values(0, 3)), fingerprint(values(0, 3))) == 0.0
    assert distances([], [fingerprint(values(3))]) == float("inf")


def test_dead_values_say_so() -> None:
    assert not fingerprint(np.zeros((3, 3), "float32")).live
    assert not fingerprint(np.full(4, 2.0)).live
    assert not fingerprint(np.array([1.0, np.nan])).live
    assert fingerprint(np.arange(4)).live


def test_not_a_number_equals_only_its_like() -> None:
    broken = fingerprint(np.array([1.0, np.nan]))
    assert distance(broken, fingerprint(np.array([1.0, np.nan]))) == 0.0
    assert distance(broken, fingerprint(np.array([1.0, 2.0]))) == float("inf")


def test_calls_that_return_more_or_in_other_pieces() -> None:
    out, weights, state = (fingerprint(values(*shape)) for shape in ((3, 5, 6), (3, 5, 5), (2, 3, 4)))
    halves = [fingerprint(values(3, 4, seed=9)), fingerprint(values(3, 4, seed=8))]
    assert distances([out, weights], [out]) == 0.0
    assert distances([out, state], [out, *halves]) == 0.0
    assert distances([weights], [out]) == float("inf")


@pytest.mark.parametrize("name", ["float16", "float32"])
def test_noise_depends_on_the_dtype(name: str) -> None:
    assert noise_of([fingerprint(values(3).astype(name))]) == NOISE.get(name, USUAL_NOISE)
    assert noise_of([]) == USUAL_NOISE
