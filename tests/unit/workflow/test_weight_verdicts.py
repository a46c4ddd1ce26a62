"""Weights without a counterpart, as divergences."""

from __future__ import annotations

import math

from parfocal.weights.plan import Ambiguity, Leftover, Plan
from parfocal.workflow.weight_verdicts import weight_divergences


def test_weights_without_a_counterpart_are_named_one_by_one():
    plan = Plan(
        unmatched_reference=(Leftover("a.weight", (3, 4), "nothing fits"),),
        unmatched_port=(Leftover("b.bias", (3,), "nothing is left"),),
        ambiguous=(Ambiguity(("c.w", "d.w"), ("x.w", "y.w"), "all alike"),),
    )
    found = weight_divergences(plan)
    assert [(each.phase, each.what, each.message) for each in found] == [
        ("weights", "a.weight [3, 4] has no counterpart in the port", "nothing fits"),
        ("weights", "b.bias [3] has no counterpart in the reference", "nothing is left"),
        ("weights", "c.w, d.w could be any of x.w, y.w", "all alike"),
    ]
    assert [(bool(each.reference), bool(each.port)) for each in found] == [
        (True, False),
        (False, True),
        (False, True),
    ]
    assert all(each.score == math.inf and not each.inherited for each in found)
    assert weight_divergences(Plan()) == []
