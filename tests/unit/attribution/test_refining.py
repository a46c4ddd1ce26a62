"""Errors are put to their full floors in causal order, and none is asked about that can only follow."""

from types import SimpleNamespace

from parfocal.attribution.measures import Measure
from parfocal.attribution.refining import refine
from parfocal.judge.floors import NOTHING, Size
from parfocal.replay.noise_floors import Remainder
from parfocal.replay.repeat import own_script
from tests.unit.matching.traces import Does, trace

NET = trace(
    Does(
        "",
        "Net",
        ["x"],
        ["z"],
        [Does("first", "Linear", ["x"], ["y"]), Does("second", "Linear", ["y"], ["z"])],
    )
)
FIRST, SECOND = 1, 2


class Asked:
    """Notes which calls are asked about; ``innocent``: calls whose errors are rounding."""

    def __init__(self, innocent=()):
        self.innocent = set(innocent)
        self.asked = []
        self.reference = self.port = SimpleNamespace(trace=NET, script=own_script(NET))

    def moved(self, calls, place):
        self.asked.append((calls[0], place[1], place[3]))
        return Size(100.0, 100.0) if calls[0] in self.innocent else NOTHING

    def exact(self, calls, place):
        return NOTHING

    def port_floor(self, calls, place):
        return NOTHING

    def remainder(self, *_):
        return Remainder.STAYS


class Unexcused:
    def applied(self, measure):
        return measure


class Excused:
    """Says of every error going forward that it makes no difference."""

    def applied(self, measure):
        if measure.direction == "backward":
            return measure
        return Measure(
            *(measure.port, measure.reference, "output", "0", "0", "forward"), None, NOTHING, NOTHING
        )


def off(call, direction="forward", side=None):
    side = side or ("output" if direction == "forward" else "input")
    return Measure(call, call, side, "0", "0", direction, None, Size(100.0, 100.0), Size(1.0, 1.0))


def test_forward_comes_first_in_order_of_execution_and_the_measures_stay_in_theirs():
    asked = Asked()
    measures = [off(SECOND, "backward"), off(SECOND), off(FIRST)]
    assert refine(measures, asked, Unexcused()) == measures
    assert [call for call, *_ in asked.asked] == [FIRST, SECOND]


def test_a_gradient_of_a_guilty_call_is_not_asked_about():
    asked = Asked()
    refine([off(FIRST), off(FIRST, "backward"), off(SECOND, "backward")], asked, Unexcused())
    assert asked.asked == [(FIRST, "output", "forward"), (SECOND, "input", "backward")]


def test_a_gradient_that_comes_back_from_a_guilty_call_is_not_asked_about():
    asked = Asked()
    refine([off(SECOND), off(FIRST, "backward", "output")], asked, Unexcused())
    assert asked.asked == [(SECOND, "output", "forward")]


def test_a_gradient_of_a_call_that_is_right_going_forward_is_asked_about():
    asked = Asked(innocent=[FIRST])
    refine([off(FIRST), off(FIRST, "backward")], asked, Unexcused())
    assert asked.asked == [(FIRST, "output", "forward"), (FIRST, "input", "backward")]


def test_a_call_whose_error_is_excused_is_not_guilty():
    asked = Asked()
    refine([off(FIRST), off(FIRST, "backward")], asked, Excused())
    assert asked.asked == [(FIRST, "output", "forward"), (FIRST, "input", "backward")]
