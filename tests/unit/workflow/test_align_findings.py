"""What an alignment says besides its divergences: on measures made by hand."""

from __future__ import annotations

from types import SimpleNamespace

from parfocal.attribution.ignoring import IgnoredCalls
from parfocal.attribution.measures import Measure
from parfocal.judge.floors import Size
from parfocal.judge.verdict import SettingDifference
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.table import PairReason
from parfocal.weights.plan import Plan, PlanNote
from parfocal.workflow.align_findings import findings, leaves, pair_results
from tests.unit.matching.traces import Does, trace

EPSILON = SettingDifference("epsilon", "1", "2")
# root(0) > block(1) > fc(2), act(3); then head(4)
NET = Does("", "Net", ["x"], ["z"], [
    Does("block", "Block", ["x"], ["y^"], [
        Does("block.fc", "Linear", ["x"], ["y"]),
        Does("block.act", "ReLU", ["y"], ["y^"]),
    ]),
    Does("head", "Linear", ["y^"], ["z"]),
])  # fmt: skip
ROOT, BLOCK, FC, ACT, HEAD = range(5)


def measure(call, side, direction, score=100.0, **changes):
    return Measure(call, call, side, "0", "0", direction, None, Size(score, score), Size(1.0, 1.0), **changes)


def watched(measures=(), unpaired=(), outputs=(1, 1), notes=(), problems=(), patterns=()):
    both = [
        SimpleNamespace(trace=trace(NET), natural=SimpleNamespace(outputs=dict.fromkeys(range(count))))
        for count in outputs
    ]
    pairs = tuple(CallPair(n, n, n, True, PairReason.WEIGHTS) for n in range(5) if n not in unpaired)
    observation = SimpleNamespace(
        pairing=Pairing(pairs, (), tuple(unpaired)),
        measures=list(measures),
        parameters=[],
        precise=SimpleNamespace(problems=list(problems)),
        overlooked=[],
        divided=[],
    )
    return SimpleNamespace(
        reference=both[0],
        port=both[1],
        plan=Plan(noted=tuple(map(PlanNote, notes))),
        backward=True,
        tolerance=None,
        mode="eval",
        ignored=lambda: IgnoredCalls(patterns, both[0].trace, both[1].trace),
    ), observation


def test_pairs_have_the_larger_score_of_each_direction():
    measures = [
        measure(FC, "output", "forward", 2.0),
        measure(FC, "input", "forward", 3.0),
        measure(FC, "input", "backward", 1.0),
    ]
    results = {pair.port.path: pair for pair in pair_results(*watched(measures))}
    assert (results["block.fc"].forward, results["block.fc"].backward) == (3.0, 1.0)
    assert (results["head"].forward, results["head"].backward) == (None, None)


def test_what_was_compared_counts_innermost_calls():
    assert leaves(*watched(unpaired=[HEAD, BLOCK])) == (3, 1)  # in all, and without a partner


def test_findings():
    codes = [finding.code for finding in findings(*watched())]
    assert codes == []
    found = {
        finding.code: finding.message
        for finding in findings(
            *watched(
                unpaired=[HEAD],
                outputs=(1, 3),
                notes=("a note",),
                problems=("norm: no kernel",),
                patterns=("block.*", "tail"),
            )
        )
    }
    assert found["transfer"] == "a note"
    assert found["output.extra"] == "2 more outputs in the port than in the reference; not compared"
    assert found["floor.imprecise"] == "no float64 floor for norm: no kernel; the other floors were used"
    assert "pairing.low" in found
    assert found["ignored.nothing"] == "ignore='tail' matches the path of no call on either side"


def test_a_note_says_which_setting_it_is_of_and_the_first_difference_is_none():
    alignment, observation = watched()
    alignment.plan = Plan(
        noted=(
            PlanNote("0 LayerNorm epsilon: 1 and 2", EPSILON),
            PlanNote("first difference: 0", is_first_difference=True),
            PlanNote("another"),
        )
    )
    found = [(each.message, each.setting) for each in findings(alignment, observation)]
    assert found == [("0 LayerNorm epsilon: 1 and 2", EPSILON), ("another", None)]
