"""How much of a floor is asked for before a rough check accuses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check
from parfocal.judge.floors import NOTHING, Size

PLACE = (0, "output", "0", "forward")
CALLS = [SimpleNamespace(order=order, finished=finished) for order, finished in enumerate((4, 3, 3, 4))]


class Floors:
    """Gives a floor for every question, and notes what was asked."""

    def __init__(self, exact=0.0, once=0.0, several=0.0):
        self.sizes = {"exact": exact, "once": once, "several": several}
        self.asked = []
        self.port = SimpleNamespace(trace=SimpleNamespace(nodes=CALLS))

    def exact(self, calls, place):
        return self._answer("exact")

    def moved(self, calls, place, *, once=False):
        return self._answer("once" if once else "several")

    def _answer(self, question):
        self.asked.append(question)
        return Size(self.sizes[question], self.sizes[question])


def case(floors, **facts):
    return Case(None, floors, 0, 0, (Check(PLACE, PLACE, NOTHING, rough=True),), 4.0, **facts)


@pytest.mark.parametrize(
    ("error", "floors", "asked", "right"),
    [
        (0.0, {}, [], True),
        (1e-3, {"exact": 1e-3}, ["exact"], True),
        (1e-3, {"once": 1e-3}, ["exact", "once"], True),
        (1e-3, {"several": 1e-3}, ["exact", "once"], False),  # beyond any rounding
        (1e-4, {"several": 1e-4}, ["exact", "once", "several"], True),
        (1e-4, {}, ["exact", "once", "several"], False),
    ],
)
def test_no_more_is_asked_than_it_takes(error, floors, asked, right):
    known = Floors(**floors)
    expected = np.ones(8, "float32")
    found = case(known).judge(expected + np.float32(error), expected, case(known).checks[0])
    assert (known.asked, found <= 4.0) == (asked, right)


@pytest.mark.parametrize(("besides", "inside"), [(set(), False), ({0}, False), ({2}, True), ({9}, False)])
def test_another_mistake_inside_is_known(besides, inside):
    tried = case(Floors(), besides=frozenset(besides))
    tried.precise.port.script = SimpleNamespace(ties={0: SimpleNamespace(inputs={})})
    for node in CALLS:
        node.parent, node.inputs = None, {}
    assert tried.has_others_inside == inside


def test_a_run_without_a_change_is_the_baseline():
    tried, seen = case(Floors()), SimpleNamespace(places={})
    tried.seen_as_it_is(seen)
    tried.seen_as_it_is(SimpleNamespace(places={}))
    assert tried.baseline() is seen
