"""Work is counted by calls, numbers, direction and precision."""

from __future__ import annotations

import pytest

from parfocal.replay.effort import BACKWARD, ELEMENTS, WIDE, Effort, Prices
from tests.unit.matching.traces import Does, trace

NET = trace(
    Does(
        "",
        "Net",
        ["x"],
        ["z"],
        [Does("first", "Linear", ["x"], ["y"]), Does("second", "Linear", ["y"], ["z:6400"])],
    )
)
SMALL, LARGE = 1 + 48 / ELEMENTS, 1 + 6400 / ELEMENTS


def test_a_call_costs_what_it_and_the_calls_inside_cost():
    prices = Prices(NET)
    assert prices.of(1, backward=False) == pytest.approx(SMALL)
    assert prices.of(2, backward=False) == pytest.approx(LARGE)
    assert prices.of(0, backward=False) == pytest.approx(1 + SMALL + LARGE)


def test_gradients_and_float64_cost_more():
    prices = Prices(NET)
    assert prices.of(1, backward=True) == pytest.approx((1 + BACKWARD) * SMALL)
    assert prices.of(1, backward=False, dtype="float64") == pytest.approx(WIDE * SMALL)
    assert prices.of(1, backward=False, dtype="float16") == pytest.approx(SMALL)


def test_efforts_add_up():
    effort = Effort()
    effort.charge(2.0)
    effort.charge(0.5)
    assert effort.spent == 2.5
