"""Who is to blame, in which order, and what merely follows: on measures made by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from parfocal.attribution.divergences import Questions, divergences
from parfocal.attribution.divisions import Division
from parfocal.attribution.measures import END_LIMIT, LIMIT, Measure, Remark
from parfocal.attribution.observation import limits_of
from parfocal.attribution.whole_model import WholeModelResult
from parfocal.judge.floors import NOTHING, Size
from parfocal.judge.verdict import Cause, InheritanceReason, Proof, ProvenBy
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.table import PairReason
from tests.unit.matching.traces import Does, trace

# root(0) > block(1) > fc(2), act(3); then head(4)
NET = Does("", "Net", ["x"], ["z"], [
    Does("block", "Block", ["x"], ["y^"], [
        Does("block.fc", "Linear", ["x"], ["y"]),
        Does("block.act", "ReLU", ["y"], ["y^"]),
    ]),
    Does("head", "Linear", ["y^"], ["z"]),
])  # fmt: skip
ROOT, BLOCK, FC, ACT, HEAD = range(5)


PROOF = Proof(ProvenBy.REPLAYED, 100.0, 1.0)


def measure(call, side, direction, score=100.0, **changes):
    return Measure(call, call, side, "0", "0", direction, None, Size(score, score), Size(1.0, 1.0), **changes)


def end(phase, path, score=100.0):
    return WholeModelResult(phase, path, path, measure(-1, "output", "forward", score))


def judge(
    *measures,
    parameters=(),
    ends=(),
    unfed=(),
    guilty=(),
    pairs=range(5),
    explain=None,
    fixed=False,
    excused=None,
    divided=(),
):
    reference, port = trace(NET), trace(NET)
    pairing = Pairing(tuple(CallPair(n, n, n, True, PairReason.WEIGHTS) for n in pairs), (), ())
    observation = SimpleNamespace(
        pairing=pairing,
        measures=list(measures),
        parameters=list(parameters),
        ends=list(ends),
        unfed=set(unfed),
        divided=divided,
    )
    questions = Questions(explain=explain, excused=excused)
    limits = (LIMIT, END_LIMIT)
    found = divergences(observation, (reference, port), limits, set(guilty), questions, fixed=fixed)
    assert all(each.inherited is (each.reason is not None) for each in found)
    return found


def told(found):
    return [(each.phase, each.port.path, each.what, each.inherited) for each in found]


def test_nothing_above_the_limit_is_nothing():
    assert judge(measure(FC, "output", "forward", LIMIT), ends=[end("forward", "0", END_LIMIT)]) == []
    assert len(judge(measure(FC, "output", "forward", math.nextafter(LIMIT, 9)))) == 1


def test_a_call_is_blamed_for_what_it_gives():
    assert told(judge(measure(FC, "output", "forward"))) == [("forward", "block.fc", "output 0", False)]


def test_the_code_around_is_blamed_for_what_a_call_takes():
    (found,) = judge(measure(HEAD, "input", "forward"))
    assert (found.port.path, found.reference.path) == ("", "")
    assert found.what == "input 0 of head, made by the model's own code"
    (found,) = judge(measure(ACT, "input", "forward"))
    assert (found.port.path, found.reference.path) == ("block", "block")


def test_going_backward_it_is_the_other_way_round():
    assert told(judge(measure(FC, "input", "backward"))) == [
        ("backward", "block.fc", "gradient of input 0", False)
    ]
    (found,) = judge(measure(FC, "output", "backward"))
    assert found.port.path == "block"
    assert found.what == "gradient of output 0 of block.fc, made by the code of block"


def test_going_backward_a_module_and_the_code_it_leaves_work_to_are_one_piece():
    wrong = measure(HEAD, "input", "forward"), measure(FC, "output", "backward")
    assert [(each.port.path, each.inherited) for each in judge(*wrong)] == [("", False), ("block", False)]
    divided = [Division(((BLOCK, "output", "0"),), (BLOCK,), around=ROOT)]
    found = judge(*wrong, divided=divided)
    assert [(each.port.path, each.inherited) for each in found] == [("", False), ("block", True)]


def test_one_line_that_shows_at_several_places_is_told_once():
    def blame(line):
        def explain(divergence, _):
            site = replace(divergence.port, path="", file="model.py", line=line(divergence.port.path))
            return replace(divergence, port=site, cause=Cause("op.axis", "", f"fix {site.line}", PROOF))

        return explain

    wrong = measure(FC, "output", "forward"), measure(HEAD, "output", "forward")
    same, others = (judge(*wrong, explain=blame(line)) for line in (lambda path: 7, len))
    assert [each.inherited for each in same] == [False, True]
    assert [each.inherited for each in others] == [False, False]


def test_forward_comes_before_backward_and_in_order_of_execution():
    found = judge(
        measure(HEAD, "input", "backward"),
        measure(HEAD, "output", "forward"),
        measure(FC, "output", "forward"),
    )
    assert [(each.phase, each.port.path) for each in found] == [
        ("forward", "block.fc"), ("forward", "head"), ("backward", "head"),
    ]  # fmt: skip
    assert [each.inherited for each in found] == [False, False, True]  # of a call that is guilty already


def test_what_is_inside_comes_before_what_is_around_it():
    found = judge(measure(BLOCK, "output", "forward"), measure(ACT, "output", "forward"))
    assert [each.port.path for each in found] == ["block.act", "block"]


def test_own_ones_come_before_inherited_ones():
    found = judge(
        measure(FC, "output", "forward"), measure(FC, "input", "backward"), measure(HEAD, "input", "backward")
    )
    assert [(each.port.path, each.inherited) for each in found] == [
        ("block.fc", False), ("head", False), ("block.fc", True),
    ]  # fmt: skip


def test_a_call_that_was_not_given_all_inputs_is_doubtful_after_a_mistake():
    fc, head = measure(FC, "output", "forward"), measure(HEAD, "output", "forward")
    assert [each.inherited for each in judge(fc, head, unfed=[HEAD])] == [False, True]
    assert [each.inherited for each in judge(head, unfed=[HEAD])] == [False]


def test_weights_that_differ_explain_what_their_layer_gives():
    found = judge(measure(FC, "output", "forward"), measure(HEAD, "output", "forward"), guilty=["block.fc"])
    assert [(each.port.path, each.inherited) for each in found] == [("head", False), ("block.fc", True)]


def test_gradients_of_parameters_belong_to_their_layer():
    wrong = end("gradient", "head.weight")
    assert told(judge(parameters=[wrong])) == [
        ("gradient", "head", "gradient of the parameter head.weight", False)
    ]
    found = judge(measure(HEAD, "output", "forward"), parameters=[wrong])
    assert [each.inherited for each in found] == [False, True]


def test_the_gradient_of_a_layer_without_a_partner_follows_from_any_mistake():
    wrong = end("gradient", "head.weight")
    found = judge(measure(FC, "output", "forward"), parameters=[wrong], pairs=range(4))
    assert [(each.port.path, each.inherited) for each in found] == [("block.fc", False), ("head", True)]


def test_whole_models_count_for_themselves_only_when_nothing_explains_them():
    whole = [end("forward", "0"), end("loss", "loss"), end("gradient", "head.weight")]
    found = judge(measure(FC, "output", "forward"), ends=whole)
    assert [each.inherited for each in found] == [False, True, True, True]
    found = judge(ends=whole)
    assert [(each.phase, each.inherited) for each in found] == [
        ("forward", False), ("loss", True), ("gradient", True),
    ]  # fmt: skip
    assert found[0].message == "no paired call explains it: look at what was not paired"


def test_of_one_phase_none_follows_from_another():
    found = judge(ends=[end("gradient", "block.fc.weight"), end("gradient", "head.weight")])
    assert [each.inherited for each in found] == [False, False]


def test_a_loss_alone():
    (found,) = judge(ends=[end("loss", "loss")])
    assert (found.phase, found.what) == ("loss", "the loss")
    assert found.message == "the outputs agree and the losses do not: the two loss functions differ"


def test_different_inputs_are_named_as_such():
    (found,) = judge(measure(ROOT, "input", "forward"))
    assert found.what == "input 0 of the whole model"
    assert found.message == "the two sides were given different inputs"


def test_only_what_is_own_is_explained():
    asked = []

    def explain(divergence, measured):
        asked.append((divergence.port.path, measured.direction))
        return divergence

    judge(
        measure(ROOT, "input", "forward"),
        measure(FC, "output", "forward"),
        measure(FC, "input", "backward"),
        explain=explain,
    )
    assert asked == [("block.fc", "forward")]


def test_with_a_fixed_tolerance_only_the_first_is_sure():
    found = judge(measure(FC, "output", "forward"), measure(HEAD, "output", "forward"), fixed=True)
    assert [each.inherited for each in found] == [False, True]


def test_limits():
    assert limits_of(fixed=False) == (LIMIT, END_LIMIT)
    assert limits_of(fixed=True) == (1.0, 1.0)


@pytest.mark.parametrize("floor", [NOTHING, Size(1.0, 1.0)])
def test_measures_without_a_number_are_infinite(floor):
    assert (
        Measure(0, 0, "output", "0", "0", "forward", None, Size(math.inf, math.inf), floor).score == math.inf
    )


def absent(call, side):
    return replace(measure(call, side, "backward", math.inf), remark=Remark.NO_GRADIENT_IN_PORT)


def test_who_cuts_a_gradient_off_is_blamed_and_not_those_who_get_none():
    cut = absent(ACT, "output"), absent(ACT, "input"), absent(FC, "output"), absent(FC, "input")
    found = judge(*cut, parameters=[end("gradient", "block.fc.weight")])
    assert told(found)[0] == (
        "backward", "block", "gradient of output 0 of block.act, made by the code of block", False,
    )  # fmt: skip
    assert [each.inherited for each in found] == [False, *[True] * 4]


def test_a_call_that_gets_a_gradient_and_sends_none_on_cuts_it_off_itself():
    found = judge(measure(ACT, "output", "backward", 0.0), absent(ACT, "input"), absent(FC, "output"))
    assert told(found)[0] == ("backward", "block.act", "gradient of input 0", False)


def test_what_weights_excuse_is_inherited():
    found = judge(measure(BLOCK, "output", "forward"), excused=lambda each: each.port == BLOCK)
    assert [each.inherited for each in found] == [True]
    found = judge(measure(HEAD, "output", "forward"), excused=lambda each: each.port == BLOCK)
    assert [each.inherited for each in found] == [False]


def test_an_error_from_outside_a_call_blames_the_code_around_it():
    (found,) = judge(measure(ACT, "input", "backward", outside=True))
    assert (found.port.path, found.what) == (
        "block", "gradient of input 0 of block.act, made by the code of block",
    )  # fmt: skip


def test_a_block_in_which_a_layer_sends_nothing_back_lacks_that_part():
    found = judge(measure(BLOCK, "input", "backward"), absent(FC, "output"), absent(FC, "input"))
    assert told(found)[0] == (
        "backward", "block", "gradient of output 0 of block.fc, made by the code of block", False,
    )  # fmt: skip
    assert [each.inherited for each in found] == [False, True, True]
    (found,) = judge(measure(BLOCK, "input", "backward"))
    assert not found.inherited


def test_what_a_block_as_a_whole_does_not_get_its_layers_do_not_get_either():
    cut = [absent(call, side) for call in (FC, ACT, BLOCK) for side in ("output", "input")]
    found = judge(*cut)
    assert told(found)[0] == (
        "backward", "", "gradient of output 0 of block, made by the model's own code", False,
    )  # fmt: skip
    assert [each.inherited for each in found] == [False, *[True] * 5]


GUILTY = measure(FC, "output", "forward")
REASONS = {
    InheritanceReason.GUILTY_CALL: ([GUILTY, measure(FC, "input", "backward")], {}),
    InheritanceReason.NOT_FED: ([GUILTY, measure(HEAD, "output", "forward")], {"unfed": [HEAD]}),
    InheritanceReason.CUT_OFF: ([absent(ACT, "output"), absent(ACT, "input")], {}),
    InheritanceReason.USED_BY_GUILTY: (
        [measure(HEAD, "output", "forward"), measure(ACT, "output", "backward")],
        {},
    ),
    InheritanceReason.ONE_PIECE: (
        [measure(HEAD, "input", "forward"), measure(FC, "output", "backward")],
        {"divided": [Division(((BLOCK, "output", "0"),), (BLOCK,), around=ROOT)]},
    ),
    InheritanceReason.WEIGHTS: (
        [GUILTY, measure(HEAD, "output", "forward")],
        {"excused": lambda each: each.port == HEAD},
    ),
    InheritanceReason.LOSS: ([measure(ROOT, "output", "backward")], {"ends": [end("loss", "loss")]}),
    InheritanceReason.UNPAIRED: (
        [GUILTY],
        {"parameters": [end("gradient", "head.weight")], "pairs": range(4)},
    ),
    InheritanceReason.SAME_PARAMETER: (
        [],
        {
            "parameters": [
                end("gradient", "head.weight"),
                replace(end("gradient", "block.fc.weight"), reference="head.weight"),
            ]
        },
    ),
    InheritanceReason.CALLS: ([GUILTY], {"ends": [end("forward", "0")]}),
    InheritanceReason.EARLIER_PHASE: ([], {"ends": [end("forward", "0"), end("loss", "loss")]}),
    InheritanceReason.NATURAL_RUN: ([GUILTY, measure(HEAD, "output", "forward")], {"fixed": True}),
}


@pytest.mark.parametrize("reason", REASONS, ids=lambda reason: reason.name)
def test_why_a_difference_is_inherited_is_stored_on_it(reason):
    measures, rest = REASONS[reason]
    own, inherited = judge(*measures, **rest)
    assert (own.reason, inherited.reason) == (None, reason)


def test_the_same_line_told_twice_is_inherited_for_that_reason():
    def explain(divergence, _):
        site = replace(divergence.port, path="", file="model.py", line=7)
        return replace(divergence, port=site, cause=Cause("op.axis", "", "fix", PROOF))

    wrong = GUILTY, measure(HEAD, "output", "forward")
    assert [each.reason for each in judge(*wrong, explain=explain)] == [None, InheritanceReason.SAME_LINE]


class CountedCalls(list):
    """Counts how often all calls are gone through."""

    walks = 0

    def __iter__(self):
        CountedCalls.walks += 1
        return super().__iter__()

    def __reversed__(self):
        CountedCalls.walks += 1
        return super().__reversed__()


def test_calls_are_gone_through_as_often_however_many_results_differ(monkeypatch):
    made = trace

    def counted(*calls):
        found = made(*calls)
        found.nodes = CountedCalls(found.nodes)
        return found

    walks = []
    for count in (10, 200):
        CountedCalls.walks = 0
        with monkeypatch.context() as patch:
            patch.setitem(judge.__globals__, "trace", counted)
            found = judge(ends=[end("gradient", f"head.w{number}") for number in range(count)])
        assert [each.reference.path for each in found] == ["head"] * count
        walks.append(CountedCalls.walks)
    assert walks[0] == walks[1]
