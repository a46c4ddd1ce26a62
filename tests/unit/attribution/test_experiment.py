"""Repeat a call with a change: is it right now? On a repeater made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from parfocal.attribution.experiment import NEAR, Change, Experiment, is_accepted, repeated
from parfocal.attribution.measures import LIMIT
from parfocal.errors import InputError
from parfocal.judge.floors import EPSILON, Size
from parfocal.replay.repeat import RepeatResult

PLACE = 3, "output", "0", "forward"
OTHER = 3, "output", "1", "forward"
RIGHT = np.linspace(1, 2, 64, dtype="float32")


class Repeats:
    """Gives an array that is wrong unless the module is prepared; takes note of how it was asked."""

    def __init__(self, fails=None):
        self.fails = fails
        self.asked = []

    def repeat(self, calls, dtype, supply, prepare=None, **how):
        self.asked.append((calls, dtype, supply, how))
        if self.fails is not None:
            raise self.fails
        result = RepeatResult()
        result.places[PLACE] = RIGHT + (0.0 if prepare is not None else 0.1)
        return result


def recorded(data):
    return data


def experiment(change, repeats=None, places=(PLACE,), **more):
    expected = dict.fromkeys(places, lambda observed: RIGHT)
    return Experiment(repeats or Repeats(), [3], change, expected, **more)


def mended(twin):
    return None


def test_a_call_is_right_with_the_change_and_not_without():
    assert experiment(Change(prepare=mended)).is_right(recorded)
    assert not experiment(Change()).is_right(recorded)


def test_every_place_must_be_there_unless_a_part_will_do():
    change = Change(prepare=mended)
    assert not experiment(change, places=(PLACE, OTHER)).is_right(recorded)
    assert experiment(change, places=(PLACE, OTHER), partial=True).is_right(recorded)
    assert not experiment(change, places=(OTHER,), partial=True).is_right(recorded)


def test_the_change_reaches_the_repetition():
    repeats = Repeats()
    other = object()
    change = Change(supply=other, dtype="float64", inside=False, backward=False)
    repeated(repeats, [3], recorded, change)
    assert repeats.asked == [
        ([3], "float64", other, {"on_op": None, "inside": False, "backward": False, "listener": None})
    ]
    repeated(repeats, [3], recorded)
    assert repeats.asked[1][2] is recorded


@pytest.mark.parametrize("error", [InputError("no such shape"), RuntimeError("no such shape")])
def test_what_a_framework_refuses_is_not_right_and_told(error):
    reasons = []
    assert not experiment(Change(), Repeats(error)).is_right(recorded, reasons.append)
    assert len(reasons) == 1
    assert "no such shape" in reasons[0]


def test_acceptance_is_the_limit_of_a_call_and_more_without_its_floor():
    unit = EPSILON["float32"]
    floor = Size(unit, unit)
    for times, by_floor in ((0.9 * LIMIT, True), (1.5 * LIMIT, False)):
        off = RIGHT.astype("float64") + times * unit
        assert is_accepted(off, RIGHT.astype("float64"), floor) is by_floor
    assert is_accepted(RIGHT * np.float32(1 + 1.5 * LIMIT * unit), RIGHT)
    assert not is_accepted(RIGHT * np.float32(1 + 2 * NEAR * unit), RIGHT)


def test_another_shape_is_not_right():
    assert not is_accepted(RIGHT, RIGHT.reshape(8, 8))
    assert not is_accepted(RIGHT, None)
