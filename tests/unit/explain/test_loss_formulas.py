"""A number of a loss's formula is solved from one value and must hold of another; one value fits anything."""

from __future__ import annotations

import numpy as np

from parfocal.explain.loss_formulas import class_losses, identify_distance, identify_smoothing, smooth_l1

GENERATOR = np.random.default_rng(0)
PAIRS = [tuple(GENERATOR.standard_normal((2, 6, 4)).astype("float32")) for _ in range(2)]
LABELLED = [(GENERATOR.standard_normal((8, 5)).astype("float32"), np.arange(8) % 5) for _ in range(2)]


def smooth(pair: tuple[np.ndarray, ...]) -> np.ndarray:
    return np.asarray(smooth_l1(pair[0].astype("float64") - pair[1], 0.7).mean())


def cosine(pair: tuple[np.ndarray, ...]) -> np.ndarray:
    """Of another kind: a number near a smooth L1's, for some beta."""
    ours, theirs = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in pair)
    return np.asarray((1 - (ours * theirs).sum(1)).mean())


def smoothed(pair: tuple[np.ndarray, ...]) -> np.ndarray:
    parts = class_losses(pair)
    assert parts is not None
    return np.asarray((0.9 * parts[0] + 0.1 * parts[1]).mean())


def test_a_distance_is_told_from_two_values() -> None:
    found = identify_distance([(pair, smooth(pair)) for pair in PAIRS])
    assert found is not None
    assert (found.name, found.reduction, found.turning) == ("smooth L1", "mean", 0.7)


def test_a_distance_with_a_number_of_its_own_is_not_told_from_one_value() -> None:
    assert identify_distance([(PAIRS[0], smooth(PAIRS[0]))]) is None
    assert identify_distance([(PAIRS[0], cosine(PAIRS[0]))]) is None
    assert identify_distance([(pair, cosine(pair)) for pair in PAIRS]) is None


def test_a_distance_without_one_is() -> None:
    found = identify_distance([(PAIRS[0], np.asarray(np.square(PAIRS[0][0] - PAIRS[0][1]).mean()))])
    assert found is not None
    assert found.name == "L2"


def test_smoothing_is_told_from_two_values() -> None:
    found = identify_smoothing([(pair, smoothed(pair)) for pair in LABELLED])
    assert found is not None
    assert abs(found - 0.1) < 1e-6
    assert identify_smoothing([(LABELLED[0], smoothed(LABELLED[0]))]) is None
