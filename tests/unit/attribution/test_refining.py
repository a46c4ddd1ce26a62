"""Errors are put to their full floors in causal order, and none is asked about that can only follow.

The floors of one error are asked for in turn.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from parfocal.attribution.measures import LIMIT, Measure
from parfocal.attribution.refining import BEYOND_ANY_SUM, refine, refined, with_summed_floors
from parfocal.judge.floors import NOTHING, Size
from parfocal.replay.follow import Binding
from parfocal.replay.noise_floors import Remainder
from parfocal.replay.repeat import Repeater, ReplayScript, own_script
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
EPS = 2.0**-23
NO_BACKEND = None  # nothing is run


class AskedCalls:
    """Notes which calls are asked about; ``innocent``: calls whose errors are rounding."""

    def __init__(self, innocent=()):
        self.innocent = set(innocent)
        self.asked = []
        self.reference = self.port = Repeater(NO_BACKEND, None, NET, own_script(NET))

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
    asked = AskedCalls()
    measures = [off(SECOND, "backward"), off(SECOND), off(FIRST)]
    assert refine(measures, asked, Unexcused()) == measures
    assert [call for call, *_ in asked.asked] == [FIRST, SECOND]


def test_a_gradient_of_a_guilty_call_is_not_asked_about():
    asked = AskedCalls()
    refine([off(FIRST), off(FIRST, "backward"), off(SECOND, "backward")], asked, Unexcused())
    assert asked.asked == [(FIRST, "output", "forward"), (SECOND, "input", "backward")]


def test_a_gradient_that_comes_back_from_a_guilty_call_is_not_asked_about():
    asked = AskedCalls()
    refine([off(SECOND), off(FIRST, "backward", "output")], asked, Unexcused())
    assert asked.asked == [(SECOND, "output", "forward")]


def test_a_gradient_of_a_call_that_is_right_going_forward_is_asked_about():
    asked = AskedCalls(innocent=[FIRST])
    refine([off(FIRST), off(FIRST, "backward")], asked, Unexcused())
    assert asked.asked == [(FIRST, "output", "forward"), (FIRST, "input", "backward")]


def test_a_call_whose_error_is_excused_is_not_guilty():
    asked = AskedCalls()
    refine([off(FIRST), off(FIRST, "backward")], asked, Excused())
    assert asked.asked == [(FIRST, "output", "forward"), (FIRST, "input", "backward")]


class Asked:
    """Answers the questions and notes the order in which they come."""

    def __init__(self, moved=0.0, exact=0.0, port_floor=0.0, remainder=Remainder.STAYS, kind="GELU"):
        self.answers = {"moved": moved, "exact": exact, "port_floor": port_floor}
        self.left = remainder
        self.asked = []
        both = trace(Does("", "Net", ["x"], ["y"], [Does("layer", kind, ["x"], ["y"])]))
        self.reference = self.port = Repeater(NO_BACKEND, None, both, own_script(both))

    def moved(self, calls, place):
        self.asked.append(("moved", calls))
        return Size(self.answers["moved"], self.answers["moved"])

    def exact(self, calls, place):
        self.asked.append(("exact", calls))
        return Size(self.answers["exact"], self.answers["exact"])

    def port_floor(self, calls, place):
        self.asked.append(("port_floor", calls))
        return Size(self.answers["port_floor"], self.answers["port_floor"])

    def remainder(self, calls, place, port_calls, port_place, error):
        self.asked.append(("remainder", calls, port_calls))
        return self.left


def measured(error=100.0, call=1, side="output", direction="forward"):
    return Measure(call, call, side, "0", "0", direction, None, Size(error, error), Size(1.0, 1.0))


def test_within_the_scale_floor_nobody_is_asked():
    asked = Asked()
    assert refined(measured(LIMIT), asked) == measured(LIMIT)
    assert asked.asked == []


def questions(asked, direction="forward"):
    side = "output" if direction == "forward" else "input"
    score = refined(measured(side=side, direction=direction), asked).score
    return score, [question for question, *_ in asked.asked]


def test_the_questions_stop_at_the_first_that_accounts_for_the_error():
    assert questions(Asked(moved=50.0)) == (2.0, ["moved"])
    assert questions(Asked(exact=50.0)) == (2.0, ["moved", "exact"])
    everything = ["moved", "exact", "remainder", "port_floor"]
    assert questions(Asked(port_floor=50.0, remainder=Remainder.UNCLEAR)) == (2.0, everything)


def test_an_error_that_vanishes_in_float64_is_its_own_floor():
    assert questions(Asked(remainder=Remainder.GONE))[0] <= 1.0
    assert questions(Asked(remainder=Remainder.STAYS))[0] == 100.0


@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_what_stays_in_float64_is_a_mistake_whatever_the_port_makes_of_a_unit(direction):
    asked = Asked(port_floor=50.0, remainder=Remainder.STAYS)
    assert questions(asked, direction) == (100.0, ["moved", "exact", "remainder"])


def test_floors_never_shrink():
    assert refined(measured(100.0), Asked(moved=0.5, exact=0.1)).floor == Size(1.0, 1.0)


def test_what_cannot_be_measured_is_not_asked_about():
    asked = Asked(remainder=Remainder.GONE)
    infinite = Measure(1, 1, "output", "0", "0", "forward", None, Size(math.inf, math.inf), NOTHING, "shape")
    assert refined(infinite, asked) == infinite
    assert asked.asked == []


def test_the_call_itself_answers_for_its_own_error_and_the_one_around_for_its_input():
    asked = Asked()
    refined(measured(side="output"), asked)
    refined(measured(side="input"), asked)
    refined(measured(side="input", direction="backward"), asked)
    refined(measured(side="output", direction="backward"), asked)
    assert [calls for question, calls, *_ in asked.asked if question == "moved"] == [[1], [0], [1], [0]]


def test_what_is_not_led_along_cannot_answer_and_the_next_around_does():
    """A wrapper that only the port has, or a call that lacks one of the reference's inputs."""
    inner = Does("block.wrap.fc", "Linear", ["x"], ["y"])
    wrapped = trace(
        Does("", "Net", ["x"], ["y"], [
            Does("block", "Block", ["x"], ["y"], [Does("block.wrap", "Wrap", ["x"], ["y"], [inner])]),
        ])
    )  # fmt: skip
    asked = Asked()
    script = own_script(wrapped)
    asked.reference = Repeater(NO_BACKEND, None, wrapped, script)
    for left in ({}, {2: Binding({}, script.ties[2].outputs)}):
        ties = {order: tie for order, tie in script.ties.items() if order != 2} | left
        asked.port = Repeater(NO_BACKEND, None, wrapped, ReplayScript(ties))
        asked.asked.clear()
        refined(measured(call=3, side="output", direction="backward"), asked)
        assert ("remainder", [2], [1]) in asked.asked


def test_inputs_of_the_whole_model_were_made_by_no_call():
    asked = Asked(remainder=Remainder.GONE)
    assert refined(measured(call=0, side="input"), asked).score == 100.0
    assert asked.asked == []


class Doubted(Asked):
    """Also answers what is asked of a floor that is far above rounding."""

    def __init__(self, alone, still=0.0, alike=0.0, **answers):
        super().__init__(**answers)
        self.alone, self.answers["still"], self.answers["alike"] = alone, still, alike

    def port_result(self, calls, place):
        return np.full(8, 1.0 + self.alone)

    def at(self, place):
        return np.ones(8)

    def still(self, calls, place):
        return Size(self.answers["still"], self.answers["still"])

    def moved_alike(self, calls, place, port_calls, port_place):
        return Size(self.answers["alike"], self.answers["alike"])


FLIPS = 1e6  # a floor far above the scale floor of 1


def doubted(asked, direction="backward"):
    side = "input" if direction == "backward" else "output"
    return refined(measured(FLIPS, call=1, side=side, direction=direction), asked)


def test_a_large_floor_is_believed_when_the_call_makes_the_error_alone_and_equals_may_part():
    flipped = doubted(Doubted(FLIPS, moved=FLIPS, alike=FLIPS))
    assert (flipped.score, flipped.outside, flipped.tied) == (1.0, False, False)


def test_an_error_that_the_call_does_not_make_alone_is_made_around_it():
    asked = Doubted(0.0, remainder=Remainder.GONE)
    outside = doubted(asked)
    assert outside.outside
    assert not outside.own
    assert ("remainder", [0], [0]) in asked.asked  # the call around it is asked in its stead


def test_an_error_that_hangs_on_equal_values_is_told_apart():
    tied = doubted(Doubted(FLIPS, moved=FLIPS, alike=0.0))
    assert (tied.score, tied.tied) == (FLIPS, True)
    gone = doubted(Doubted(FLIPS, moved=FLIPS, alike=0.0, remainder=Remainder.GONE))
    assert (gone.score, gone.tied) == (1.0, False)


def test_an_output_that_is_right_by_itself_is_wrong_for_what_the_call_was_given():
    """A convolution of what was padded otherwise: given the same it is right, in float64 and in float32."""
    asked = Doubted(0.0, remainder=Remainder.GONE)
    outside = doubted(asked, "forward")
    assert (outside.outside, outside.own) == (1, False)
    assert ("remainder", [0], [0]) in asked.asked


def test_an_output_that_is_wrong_by_itself_too_and_right_in_float64_is_noise():
    assert doubted(Doubted(FLIPS, remainder=Remainder.GONE), "forward").score <= 1.0


def test_sums_that_are_further_apart_than_any_rounding_need_no_float64():
    """What the questions in float64 would say is not heard: GONE would acquit."""
    asked = Doubted(FLIPS, remainder=Remainder.GONE, kind="Conv2d")
    assert doubted(asked, "forward").score == FLIPS
    assert [question for question, *_ in asked.asked] == ["moved"]


@pytest.mark.parametrize(
    "asked",
    [
        Doubted(FLIPS, remainder=Remainder.GONE, kind="GELU"),  # no sum: it may have lost every digit
        Doubted(FLIPS, moved=FLIPS / 1000, remainder=Remainder.GONE, kind="Conv2d"),  # large terms, small sum
        Doubted(100.0, remainder=Remainder.GONE, kind="Conv2d"),  # by itself it is not so far off
    ],
    ids=["no sum", "cancelled", "right alone"],
)
def test_what_may_be_rounding_is_asked_in_float64(asked):
    assert doubted(asked, "forward").score <= 1.0
    assert "remainder" in [question for question, *_ in asked.asked]


@pytest.mark.parametrize("terms", [10, 1_000, 100_000])
@pytest.mark.parametrize("mean", [0.0, 1.0, 1e4])
def test_rounding_of_the_worst_sum_stays_within_the_bound(terms, mean):
    """One after the other in float32, against float64, in units of the scale and of a unit in each term."""
    rng = np.random.default_rng(terms)
    values = (rng.standard_normal((32, terms)) + mean).astype("float32")
    signs = np.where(rng.random(values.shape) < 0.5, -np.inf, np.inf).astype("float32")
    exact = values.sum(-1, dtype="float64")
    moved = np.nextafter(values, signs).sum(-1, dtype="float64") - exact
    rounded = np.cumsum(values, -1, dtype="float32")[:, -1] - exact
    floor = max(np.linalg.norm(moved), EPS * np.linalg.norm(exact))
    assert np.linalg.norm(rounded) <= BEYOND_ANY_SUM * floor / 8


def test_forward_large_floors_are_not_doubted():
    assert not doubted(Doubted(FLIPS, moved=FLIPS, alike=0.0), "forward").tied


def test_gradients_of_one_tensor_taken_twice_share_the_noise_of_the_larger():
    """What a call adds up cannot be more precise than its largest part."""
    taken_twice = trace(Does("", "Net", ["x", "x"], ["y"], [Does("mix", "Mix", ["x", "x"], ["y"])]))
    node = taken_twice.nodes[1]
    first, second = node.inputs
    assert node.inputs[first].data is node.inputs[second].data
    small = Measure(1, 1, "input", first, first, "backward", None, Size(50 * EPS, 50 * EPS), Size(EPS, EPS))
    large = Measure(1, 1, "input", second, second, "backward", None, Size(EPS, EPS), Size(99 * EPS, 99 * EPS))
    assert with_summed_floors([small, large], taken_twice)[0].score < LIMIT
    assert with_summed_floors([small], taken_twice) == [small]
