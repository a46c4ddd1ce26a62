"""A line that comes to the same as one that was tried is not led along once more."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from parfocal.explain.causes import OpLine, ProvenChange, line
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.ops import rewriting
from parfocal.explain.ops.rewriting import BETTER, WORSE, verdict
from parfocal.phrases import phrase

PLACE, OTHER = (0, "output", "0", "forward"), (2, "input", "0", "forward")
RIGHT = np.zeros(3, "float32")


class Tried:
    """A case whose call gives an array that stands for the line; wrong as a whole, whatever the line."""

    limit = 4.0

    def __init__(self):
        trace = SimpleNamespace(subtree=lambda order: [])
        self.precise = SimpleNamespace(port=SimpleNamespace(modules={}, trace=trace))
        self.checks = [SimpleNamespace(port=PLACE)]
        self.start = 0
        self.given = RIGHT
        self.led = 0

    def at_outputs(self):
        return self

    def with_drift(self):
        return self

    def score(self, repeated):
        return 100.0

    def run(self, *, inside=True, listener=None):
        self.led += inside
        return SimpleNamespace(places={PLACE: self.given, OTHER: self.given})

    def expected(self, check, observed):
        return RIGHT

    def judge(self, observed, expected, check):
        return float(np.abs(observed - expected).max())


@pytest.fixture
def tried(monkeypatch):
    monkeypatch.setattr(rewriting, "patched", lambda modules, patch: nullcontext([patch]))
    case = Tried()
    scene = SimpleNamespace(case=case, check=SimpleNamespace(port=PLACE), outcomes={})

    def judge(given, place=PLACE):
        case.given = np.asarray(given, "float32")
        scene.check = SimpleNamespace(port=place)
        return verdict(scene, None)

    return case, judge


def test_another_spelling_of_the_same_is_judged_as_the_first(tried):
    case, judge = tried
    assert [judge([0, 0, 1]), judge([0, 0, 1]), judge([0, 0, 1])] == [BETTER] * 3
    assert case.led == 1


def test_what_comes_to_something_else_is_led_along(tried):
    case, judge = tried
    assert [judge([0, 0, 1]), judge([0, 0, 90]), judge([0, 1, 0])] == [BETTER, WORSE, BETTER]
    assert case.led == 3


def test_the_same_line_seen_from_another_place_is_led_along(tried):
    case, judge = tried
    assert [judge([0, 0, 1]), judge([0, 0, 1], OTHER)] == [BETTER, BETTER]
    assert case.led == 2


def test_a_line_of_which_nothing_comes_is_led_along_each_time(tried):
    case, judge = tried
    case.checks = []
    assert [judge([0, 0, 1]), judge([0, 0, 1])] == [BETTER, BETTER]
    assert case.led == 2


@pytest.mark.parametrize(
    ("others", "found", "asked"), [(True, rewriting.RIGHT, 0), (False, rewriting.MENDED, 1)]
)
def test_a_right_line_is_all_there_is_where_another_mistake_is_inside(tried, others, found, asked):
    case, judge = tried
    drifts = []
    case.has_others_inside = others
    case.score = lambda repeated: 100.0 if repeated.free and not drifts else 0.0
    case.run = lambda *, inside=True, listener=None: SimpleNamespace(
        places={PLACE: case.given}, free=not inside
    )
    case.with_drift = lambda: drifts.append(1) or case
    assert judge([0, 0, 1]) == found
    assert len(drifts) == asked


def test_a_message_follows_to_the_line_that_mends():
    """The reference's line is told as it was, also where both files have one name."""
    here, there = OpLine("relu", "/port/model.py", 3), OpLine("relu", "/reference/model.py", 3)
    message = phrase("missing in {line}, not in {there}", line=line(here), there=line(there))
    proof = ProvenChange("op.missing", message, "words", 0.0, here, there)
    placed = rewriting._placed(proof, Patch("/port/model.py", 9, "a", "b"))
    assert placed.message == "missing in model.py:9, not in model.py:3"
    assert placed.port is not None
    assert placed.port.line == 9
