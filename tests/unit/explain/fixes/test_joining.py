"""Several lines as one fix, loops that carry on what they had, and where a value comes from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from parfocal.explain.fixes.finding import find_op
from parfocal.explain.fixes.frames import UserFrame
from parfocal.explain.fixes.joining import joined
from parfocal.explain.fixes.operands import FunctionArgument
from parfocal.explain.fixes.origins import lines
from parfocal.explain.fixes.patching import accumulating, exchanging_targets, inverting, telling
from parfocal.explain.fixes.sources import SourceSpot, Span
from parfocal.explain.fixes.splicing import Patch
from tests.unit.explain.fixes.test_patching import FIRST, op, written


def scaled(file: str, fragment: str, old: float, new: float) -> Patch:
    spot = find_op(op(file, fragment, "mul", "Tensor.__mul__"))
    assert spot is not None
    patch = telling(spot, FunctionArgument(None, 1, old, new))
    assert patch is not None
    return patch


def test_changes_of_one_statement_are_made_in_one_line(tmp_path: Path) -> None:
    file = written(tmp_path, "a, b = x * 0.5, y * 0.7")
    fix = joined([scaled(file, "x * 0.5", 0.5, 0.7), scaled(file, "y * 0.7", 0.7, 0.5)])
    assert fix is not None
    assert fix.text == f"a, b = x * 0.7, y * 0.5  # model.py:{FIRST}"
    assert fix.also == ()


def test_changes_of_several_statements_are_several_lines(tmp_path: Path) -> None:
    file = written(tmp_path, "a = x * 0.5\nb = y * 0.7")
    fix = joined([scaled(file, "x * 0.5", 0.5, 0.7), scaled(file, "y * 0.7", 0.7, 0.5)])
    assert fix is not None
    assert fix.text == f"a = x * 0.7  # model.py:{FIRST}\nb = y * 0.5  # model.py:{FIRST + 1}"


def test_a_line_that_all_offer_is_taken_rather_than_one_that_says_two_things(tmp_path: Path) -> None:
    file = written(tmp_path, "a = x * 0.5")
    named = Patch(file, FIRST, "a = x * 0.5", "a = x * scale")
    fixes = [replace(scaled(file, "x * 0.5", 0.5, new), others=(named,)) for new in (0.7, 0.9)]
    fix = joined(fixes)
    assert fix is not None
    assert fix.text == f"a = x * scale  # model.py:{FIRST}"


def test_what_excludes_each_other_or_is_no_line_is_not_joined(tmp_path: Path) -> None:
    file = written(tmp_path, "a = x * 0.5")
    one, other = (scaled(file, "x * 0.5", 0.5, new) for new in (0.7, 0.9))
    assert joined([one, other]) is None
    assert joined([one, "exchange the two"]) is None


LOOP = "total = 0\nfor part in parts:\n    {}\nreturn act(total)"


@pytest.mark.parametrize(
    ("statement", "new"),
    [
        ("total = part", "total = total + part"),
        ("total = part if part else y", "total = total + (part if part else y)"),
    ],
)
def test_a_loop_carries_on_what_it_had(tmp_path: Path, statement: str, new: str) -> None:
    file = written(tmp_path, LOOP.format(statement))
    spot = find_op(op(file, "act(total)", "relu", "paddle.nn.functional.relu"))
    assert spot is not None
    patch = accumulating(spot, "0", "+")
    assert patch is not None
    assert (patch.new, patch.line) == (new, FIRST + 2)


@pytest.mark.parametrize("statement", ["other = part", "total = part\n    total = 2 * total"])
def test_other_loops_do_not(tmp_path: Path, statement: str) -> None:
    file = written(tmp_path, LOOP.format(statement))
    spot = find_op(op(file, "act(total)", "relu", "paddle.nn.functional.relu"))
    assert spot is not None
    assert accumulating(spot, "0", "+") is None


def test_a_mask_that_is_inverted_already_is_not_inverted_twice(tmp_path: Path) -> None:
    file = written(tmp_path, "kept = (~mask).sum()")
    spot = find_op(op(file, "~mask", "logical_not", "Tensor.__invert__"))
    assert spot is not None
    patch = inverting(spot, "0")
    assert patch is not None
    assert patch.new == "kept = mask.sum()"


@pytest.mark.parametrize(
    ("statement", "new"),
    [
        ("b, a = y.chunk(2, -1)", "a, b = y.chunk(2, -1)"),
        ("self.b, a[0] = y.chunk(2, -1)", "a[0], self.b = y.chunk(2, -1)"),
        ("*b, a = y.chunk(2, -1)", None),
        ("b, a = y.chunk(2, -1) * 2", None),
        ("parts = y.chunk(2, -1)", None),
    ],
)
def test_parts_take_each_others_names(tmp_path: Path, statement: str, new: str | None) -> None:
    file = written(tmp_path, statement)
    spot = find_op(op(file, "y.chunk(2, -1)", "split", "Tensor.chunk"))
    assert spot is not None
    patch = exchanging_targets(spot, 0, 1)
    assert (None if patch is None else patch.new) == new


HELPER = """import paddle


class Block(paddle.nn.Layer):
    def level(self, x, scale, power=1.0):
        return (x * {} + power) ** power

    def forward(self, x, y, mask):
"""


def called(tmp_path: Path, factor: str, call: str) -> tuple[SourceSpot, Span]:
    file = written(tmp_path, f"return {call}", HELPER.format(factor))
    spot = find_op(op(file, f"x * {factor}", "mul", "Tensor.__mul__"))
    span = op(file, call, "level", "level").span
    assert spot is not None
    assert span is not None
    return spot, span


def told(tmp_path: Path, factor: str, call: str, new: float = 3.0) -> list[str]:
    spot, span = called(tmp_path, factor, call)
    inner = UserFrame(spot.source.file, None, {"scale": 3.0, "power": 1.0})
    outer = UserFrame(spot.source.file, span, {"size": 9})
    patches = lines(spot, FunctionArgument(None, 1, 2.0, new), [inner, outer])
    return [patch.new for patch in patches]


def test_what_the_caller_hands_in_is_changed_where_it_does(tmp_path: Path) -> None:
    found = told(tmp_path, "scale", "self.level(x, 2.0)")
    assert found[0] == "return self.level(x, 3.0)"
    assert "return self.level(x, size ** 0.5)" in found
    assert "return (x * 3.0 + power) ** power" in found


def test_a_parameter_that_is_not_used_is_the_likeliest_word_for_its_value(tmp_path: Path) -> None:
    assert told(tmp_path, "2.0", "self.level(x, 3.0)")[0] == "return (x * scale + power) ** power"


def test_a_number_that_is_right_in_one_place_comes_before_names_that_have_it(tmp_path: Path) -> None:
    found = told(tmp_path, "2.0", "self.level(x, scale=1.0)", 1.0)
    assert found[:2] == ["return (x * 1.0 + power) ** power", "return (x * power + power) ** power"]


def test_what_the_caller_does_not_say_is_said_last(tmp_path: Path) -> None:
    spot, span = called(tmp_path, "power", "self.level(x, 2.0)")
    frames = [UserFrame(spot.source.file, None, {}), UserFrame(spot.source.file, span, {})]
    patches = lines(spot, FunctionArgument(None, 1, 1.0, 4.0), frames)
    assert [patch.new for patch in patches] == [
        "return (x * 4.0 + power) ** power",
        "return self.level(x, 2.0, power=4.0)",
    ]


@pytest.mark.parametrize(("old", "new"), [("[2, 3]", "[2, {}]"), ("2, 3", "2, {}")])
def test_a_name_can_stand_for_one_number_of_a_list(tmp_path: Path, old: str, new: str) -> None:
    call = f"x.reshape({old})"
    file = written(tmp_path, f"y = {call}")
    spot = find_op(op(file, call, "reshape", "Tensor.reshape"))
    assert spot is not None
    names = [UserFrame(file, None, {"n": 4})]
    patches = lines(spot, FunctionArgument("shape", 1, (2, 3), (2, 4)), names)
    assert [patch.new for patch in patches[:2]] == [f"y = x.reshape({new.format(n)})" for n in ("4", "n")]
