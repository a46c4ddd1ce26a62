"""Curves of known formulas are told with their numbers; others are not told."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parfocal.explain.rate_shapes import shape_of
from parfocal.explain.rates import RatePair, cause_of, distance

LIMIT = 4.0


def words(curve: np.ndarray) -> str | None:
    shape = shape_of(curve, distance, LIMIT)
    return None if shape is None else shape.in_words()


def cosine(steps: int, top: float, end: float, length: int) -> np.ndarray:
    """By a loop, as an oracle of its own."""
    return np.array([end + (top - end) * 0.5 * (1 + math.cos(math.pi * t / length)) for t in range(steps)])


@given(
    top=st.sampled_from([1.0, 0.1, 3e-4]),
    share=st.sampled_from([0.0, 0.1, 0.01]),
    length=st.integers(8, 2000),
    steps=st.integers(8, 300),
)
def test_a_cosine_is_told_with_length_and_end(top: float, share: float, length: int, steps: int) -> None:
    curve = cosine(min(steps, length), top, top * share, length)
    told = words(curve)
    assert told is not None
    assert f"over {length} updates" in told or length > 20 * steps  # hardly begun


@pytest.mark.parametrize(
    ("curve", "told"),
    [
        (0.1 * 0.95 ** np.arange(60), "0.1 times 0.95 at every update"),
        (0.2 * (1 - np.arange(80) / 100), "a line from 0.2 to 0 over 100 updates"),
        (
            np.maximum(0.2 - 0.004 * np.arange(80), 0.04),
            "a line from 0.2 to 0.04 over 40 updates",
        ),
        (0.1 * (1 - np.arange(90) / 100) ** 0.9, "a polynomial of power 0.9 from 0.1 to 0 over 100 updates"),
        (0.05 * (1 - np.arange(8) / 8) ** 2, "a polynomial of power 2 from 0.05 to 0 over 8 updates"),
        (0.1 / (1 + np.arange(50) / 40), "0.1 over (1 + updates / 40)"),
        (0.1 / np.sqrt(1 + np.arange(50) / 400), "0.1 over the root of (1 + updates / 400)"),
        (
            np.concatenate([np.linspace(0.01, 0.1, 10), cosine(60, 0.1, 0.0, 90)[1:]]),
            "a warm-up from 0.01 over 9 updates, then a cosine from 0.1 to 0 over 90 updates",
        ),
        (
            np.concatenate([np.full(20, 0.1), cosine(60, 0.1, 0.0, 60)[1:]]),
            "0.1 for 20 updates, then a cosine from 0.1 to 0 over 60 updates",
        ),
    ],
)
def test_formulas_are_told_with_their_numbers(curve: np.ndarray, told: str) -> None:
    assert words(curve) == told
    assert words(curve.astype("float32").astype("float64")) == told  # as a log keeps it


@pytest.mark.parametrize(
    "curve",
    [
        0.1 * np.abs(np.sin(np.arange(60.0) ** 2)),
        cosine(60, 0.1, 0.0, 60) * (1 + 1e-3 * np.cos(np.arange(60))),
        np.zeros(60),
        np.full(60, np.nan),
        np.array([0.1, 0.05, 0.01]),
    ],
)
def test_other_curves_are_not_told(curve: np.ndarray) -> None:
    assert words(curve) is None


def test_another_length_of_a_cosine_is_the_cause() -> None:
    cause = cause_of(RatePair(cosine(100, 0.1, 0.0, 50), cosine(100, 0.1, 0.0, 100)), LIMIT)
    assert cause is not None
    assert cause.code == "lr.value"
    assert "over 50 updates in the reference" in cause.message
    assert "over 100 updates in the port" in cause.message


@pytest.mark.parametrize("steps", [17, 50, 400])
@pytest.mark.parametrize(("right", "wrong"), [(8, 7), (10, 20), (100, 90)])
def test_a_cosine_that_turns_back_is_told_though_its_highest_comes_again(
    right: int, wrong: int, steps: int
) -> None:
    """Computed step by step from the rate before, as both frameworks do it: the highest drifts."""
    curves = [cosine(steps, 0.1, 0.0, length) * (1 + 4e-17 * np.arange(steps)) for length in (right, wrong)]
    if steps < right:
        assert words(curves[0]) is not None
        return
    cause = cause_of(RatePair(*curves), LIMIT)
    assert cause is not None
    assert cause.message.endswith(f"a cosine from 0.1 to 0 over {wrong} updates in the port")


def test_a_curve_without_formula_has_no_cause() -> None:
    ours, theirs = (0.1 * np.abs(np.sin(np.arange(60.0) ** 2 + shift)) for shift in (0, 1))
    assert cause_of(RatePair(ours, theirs), LIMIT) is None


def test_a_part_of_a_curve_that_comes_back_is_no_offset() -> None:
    """With restarts the first ten updates come again after thirty: the port has none, and is not ahead."""
    restarts = np.tile(cosine(10, 0.1, 0.0, 10), 4)
    waves = np.array([0.05 * (1 + math.cos(math.pi * t / 10)) for t in range(40)])
    cause = cause_of(RatePair(restarts, waves, False), LIMIT)
    assert cause is None or cause.code != "lr.offset"
    ahead = cause_of(RatePair(cosine(40, 0.1, 0.0, 60), cosine(43, 0.1, 0.0, 60)[3:], False), LIMIT)
    assert ahead is not None
    assert ahead.code == "lr.offset"


def test_the_end_of_a_formula_may_lie_behind_the_last_update() -> None:
    cause = cause_of(RatePair(cosine(40, 0.1, 1e-4, 40), cosine(40, 0.1, 0.0, 40), False), LIMIT)
    assert cause is not None
    assert cause.code == "lr.end"
    assert cause.fix == "make the port's schedule a cosine from 0.1 to 0.0001 over 40 updates"
