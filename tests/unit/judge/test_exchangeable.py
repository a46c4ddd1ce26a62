"""Draws of one distribution pass as often as is promised, those of others are told with the statistic."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from parfocal.judge.exchangeable import exchange_test

SOURCES, DRAWS, STATISTICS = 24, 10, 12


def drawn(generator, sides=2):
    """Draws around a value of each source: some continuous, some of two values, some that never change."""
    place = generator.normal(size=(SOURCES, 1, STATISTICS))
    found = []
    for _ in range(sides):
        values = place + generator.normal(size=(SOURCES, DRAWS, STATISTICS))
        values[..., 0] = np.where(generator.random((SOURCES, DRAWS)) < 0.5, place[..., 0], -place[..., 0])
        values[..., 1] = place[..., 1]
        found.append(values)
    return found


def test_equal_sides_look_different_as_often_as_the_probability_says():
    """Over many seeds the probabilities are spread evenly: an independent test of the test."""
    found = [exchange_test(*drawn(np.random.default_rng(seed)), seed).probability for seed in range(150)]
    assert not any(exchange_test(*drawn(np.random.default_rng(seed)), seed).differ for seed in range(20))
    for share in (0.1, 0.3, 0.6):
        below = int(np.sum(np.asarray(found) <= share))
        assert scipy.stats.binomtest(below, len(found), share).pvalue > 1e-4


@pytest.mark.parametrize(
    ("change", "statistic"),
    [
        (lambda values: values[..., 5] + 1.0, 5),
        (lambda values: values[..., 5] * 2.5, 5),  # the spread about the sources' places, too
        (lambda values: np.abs(values[..., 0]), 0),  # one of two values, always
    ],
)
def test_another_distribution_is_told_with_its_statistic(change, statistic):
    ours, theirs = drawn(np.random.default_rng(0))
    theirs[..., statistic] = change(theirs)
    found = exchange_test(ours, theirs)
    assert found.differ
    assert found.worst[0] % STATISTICS == statistic
    assert {each % STATISTICS for each in found.unlike} == {statistic}


def test_rounding_makes_no_difference():
    """Two outcomes, of which one side's are off by rounding: no rank may tell the sides apart."""
    generator = np.random.default_rng(0)
    ours, theirs = (np.where(generator.random((SOURCES, DRAWS, 1)) < 0.5, 0.7, 0.2) for _ in range(2))
    assert exchange_test(ours, theirs * (1 + 1e-6)).probability > 0.01
    assert exchange_test(ours, theirs + 0.01).differ
