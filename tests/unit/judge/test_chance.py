"""Simulated trainings of a known spread: how often correct ports are called different, and wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy

from parfocal.judge import limits
from parfocal.judge.chance import Parts, chance_of, runs_that_decide

ALARMS = limits.verdicts.TRAINED_ALARMS.value
PAIRS = 2000
# by chance itself, three standard deviations of a rate that is measured on so many pairs
MOST_ALARMS = ALARMS + 3 * math.sqrt(ALARMS * (1 - ALARMS) / PAIRS)

Draw = Callable[[np.random.Generator, int], np.ndarray]  # [training] or [training, sample]


def normal(generator: np.random.Generator, runs: int) -> np.ndarray:
    return 0.76 + 0.01 * generator.normal(size=runs)


def heavy_tailed(generator: np.random.Generator, runs: int) -> np.ndarray:
    return 0.76 + 0.01 * generator.laplace(size=runs)


def coarse(generator: np.random.Generator, runs: int) -> np.ndarray:
    """Most trainings give one of three values."""
    return 0.5 + 0.02 * generator.binomial(2, 0.3, size=runs)


def rate_of(
    draw: Draw, runs: int, shift: float = 0.0, *, published: bool = False, alarms: float = ALARMS
) -> float:
    """How often the port is called different, with nothing but its runs known."""
    generator = np.random.default_rng(runs)
    found = 0
    for _ in range(PAIRS):
        ours, theirs = draw(generator, runs), draw(generator, runs) + shift
        wanted = float(draw(generator, 1)[0]) if published else ours.mean()
        allowed = chance_of(ours, theirs, None, published=published, alarms=alarms).allowed
        found += allowed is not None and abs(theirs.mean() - wanted) > allowed
    return found / PAIRS


@pytest.mark.parametrize("runs", [2, 3, 5, 8])
@pytest.mark.parametrize("draw", [normal, heavy_tailed, coarse])
@pytest.mark.parametrize("published", [False, True], ids=["reference", "published"])
def test_correct_ports_are_called_different_as_rarely_as_stated(
    draw: Draw, runs: int, published: bool
) -> None:
    # of one published training nothing averages out: with heavy tails it is off more often than is stated
    most = 3 * ALARMS if published and draw is heavy_tailed else MOST_ALARMS
    assert rate_of(draw, runs, published=published) <= most


@pytest.mark.parametrize("alarms", [0.05, 0.2])
def test_another_rate_is_held_as_well_and_not_by_allowing_anything(alarms: float) -> None:
    rate = rate_of(normal, 5, alarms=alarms)
    assert alarms / 4 < rate <= alarms + 3 * math.sqrt(alarms / PAIRS)


@pytest.mark.parametrize("runs", [5, 8, 20])
def test_three_standard_deviations_are_found_as_often_as_student_says(runs: int) -> None:
    """Against the noncentral distribution of one test at half the rate: two are made."""
    freedom = 2 * runs - 2
    limit = scipy.stats.t.isf(ALARMS / 4, freedom)
    beyond = 3 * math.sqrt(runs / 2)  # standard errors
    expected = scipy.stats.nct.sf(limit, freedom, beyond) + scipy.stats.nct.cdf(-limit, freedom, beyond)
    found = rate_of(normal, runs, shift=0.03)
    assert found >= expected - 4 * math.sqrt(expected * (1 - expected) / PAIRS) - 1 / PAIRS
    assert found > {5: 0.75, 8: 0.97, 20: 0.999}[runs]


def test_a_port_that_fails_now_and_then_hides_nothing_in_its_own_spread() -> None:
    ours, theirs = [0.901, 0.899, 0.9, 0.902, 0.898], [0.9, 0.901, 0.899, 0.1, 0.9]
    allowed = chance_of(ours, theirs, None, published=False, alarms=ALARMS).allowed
    assert allowed is not None
    assert np.mean(ours) - np.mean(theirs) > 10 * allowed


def answers(generator: np.random.Generator, runs: int, easy: np.ndarray, quality: float) -> np.ndarray:
    """Right or wrong, [training, sample]: by the odds of each sample, and a training as a whole."""
    odds = np.log(easy / (1 - easy)) + quality * generator.normal(size=(runs, 1))
    return (generator.random((runs, len(easy))) < 1 / (1 + np.exp(-odds))).astype(float)


def rate_of_answers(
    runs: int, samples: int, quality: float, *, shift: float = 0.0, pairs: int = PAIRS
) -> float:
    generator = np.random.default_rng(samples + runs)
    easy = generator.beta(2, 1, samples).clip(0.02, 0.98)
    worse = (easy - shift).clip(0.02, 0.98)
    shares = np.full(samples, 1 / samples)
    found = 0
    for _ in range(pairs):
        sides = answers(generator, runs, easy, quality), answers(generator, runs, worse, quality)
        ours, theirs = (side.mean(1) for side in sides)
        allowed = chance_of(ours, theirs, Parts(shares, *sides), published=False, alarms=ALARMS).allowed
        found += allowed is not None and abs(ours.mean() - theirs.mean()) > allowed
    return found / pairs


@pytest.mark.parametrize(
    ("runs", "samples", "quality"),
    [(1, 45, 0.0), (1, 2000, 0.0), (2, 45, 0.3), (3, 45, 0.0), (5, 45, 0.3), (5, 500, 0.5)],
)
def test_answers_of_samples_are_called_different_as_rarely_as_stated(
    runs: int, samples: int, quality: float
) -> None:
    assert rate_of_answers(runs, samples, quality) <= MOST_ALARMS


def test_a_port_that_answers_worse_is_found() -> None:
    assert rate_of_answers(1, 2000, 0.0, shift=0.1, pairs=300) > 0.95
    assert rate_of_answers(5, 500, 0.1, shift=0.1, pairs=300) > 0.95


def test_two_pictures_of_45_are_chance_and_a_third_of_them_are_not() -> None:
    shares = np.full(45, 1 / 45)
    ours = np.array([[1.0] * 30 + [0.0] * 15])
    for wrong, chance in ((2, True), (15, False)):
        theirs = ours.copy()
        theirs[0, :wrong] = 0.0
        allowed = chance_of(
            [30 / 45], [theirs.mean()], Parts(shares, ours, theirs), published=False, alarms=ALARMS
        )
        assert allowed.allowed is not None
        assert not allowed.from_runs
        assert (wrong / 45 <= allowed.allowed) == chance


def test_one_training_a_side_of_a_metric_that_is_no_mean_says_nothing() -> None:
    assert chance_of([0.7], [0.6], None, published=False, alarms=ALARMS).allowed is None


def test_results_that_are_all_the_same_need_as_many_runs_as_a_deal_of_them() -> None:
    """3 and 3 equal results are dealt so to two sides in a tenth of all deals, 5 and 5 in 1 of 126."""
    assert chance_of([0.7] * 3, [0.6] * 3, None, published=False, alarms=ALARMS).allowed is None
    assert chance_of([0.7] * 5, [0.6] * 5, None, published=False, alarms=ALARMS).allowed == 0.0


def test_the_number_of_runs_that_decides_is_the_smallest_that_does() -> None:
    def allowed(runs: int, spread: float) -> float:
        around = np.resize([1.0, -1.0], runs)
        around = around - around.mean()
        around *= spread / math.sqrt(np.square(around).sum() / (runs - 1))
        found = chance_of(around, around + 1, None, published=False, alarms=ALARMS).allowed
        assert found is not None
        return found

    for difference in (0.5, 1.0, 2.0, 5.0):
        runs = runs_that_decide(difference, 1.0, ALARMS)
        assert runs is not None
        assert scipy.stats.t.isf(ALARMS / 4, 2 * runs - 2) * math.sqrt(2 / runs) < difference
        assert allowed(runs, 1.0) < difference * (1 + 1e-9)
        if runs > 2:
            assert scipy.stats.t.isf(ALARMS / 4, 2 * runs - 4) * math.sqrt(2 / (runs - 1)) >= difference
    assert runs_that_decide(0.01, 1.0, ALARMS) is None
