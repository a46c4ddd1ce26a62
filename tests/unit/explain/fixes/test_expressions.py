"""Ops of one framework in the other's words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parfocal.explain.fixes.expressions import ExpressionOp, expressed, grouped, moved

ROWS = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ONE = np.ones((2, 3), dtype=np.float32)


def spell(dotted: str) -> str:
    return dotted.replace("paddle.nn.functional", "F").replace("torch.nn.functional", "F")


def told(name: str, operands: list[str], taken: list[Any], given: Any, **arguments: Any) -> ExpressionOp:
    return ExpressionOp(name, operands, taken, arguments, given)


CASES = {
    "sum": (told("add", ["x", "y"], [ONE, ONE], ONE), "x + y", "x + y"),
    "product in a sum": (told("sub", ["x", "2 * y"], [ONE, ONE], ONE), "x - 2 * y", "x - 2 * y"),
    "sum in a product": (told("mul", ["x + y", "z"], [ONE, ONE], ONE), "(x + y) * z", "(x + y) * z"),
    "sum on the right": (told("sub", ["x", "y + z"], [ONE, ONE], ONE), "x - (y + z)", "x - (y + z)"),
    "number": (told("mul", ["x"], [ONE], ONE, scalar=0.5), "x * 0.5", "x * 0.5"),
    "number first": (told("rsub", ["x"], [ONE], ONE, scalar=1.0), "1.0 - x", "1.0 - x"),
    "function": (told("relu", ["x"], [ONE], ONE), "F.relu(x)", "F.relu(x)"),
    "axis": (told("mean", ["x"], [ONE], ONE[0], axis=1), "torch.mean(x, dim=1)", "paddle.mean(x, axis=1)"),
    "axes": (
        *(told("transpose", ["x"], [ROWS], ROWS.transpose(0, 2, 1)),),
        *("x.permute(0, 2, 1)", "x.transpose([0, 2, 1])"),
    ),
    "shape": (
        told("reshape", ["x"], [ROWS], ROWS.reshape(2, 12)),
        "x.reshape(-1, 12)",
        "x.reshape([-1, 12])",
    ),
    "one more axis": (told("unsqueeze", ["x"], [ONE], ONE[:, None]), "x.unsqueeze(1)", "x.unsqueeze(1)"),
    "part": (told("getitem", ["x"], [ROWS], ROWS[:, 0], index=(slice(None), 0)), "x[:, 0]", "x[:, 0]"),
    "joined": (
        *(told("concat", ["x", "y"], [ONE, ONE], ONE, axis=1),),
        *("torch.cat([x, y], dim=1)", "paddle.concat([x, y], axis=1)"),
    ),
    "linear": (
        *(told("linear", ["x", "w"], [ONE, np.ones((5, 3))], np.ones((2, 5))),),
        *("torch.matmul(x, w.T)", "paddle.matmul(x, w, transpose_y=True)"),
    ),
    "filled": (
        *(told("masked_fill", ["x", "mask"], [ONE, ONE > 0], ONE, value=-1e4),),
        *("x.masked_fill(mask, -10000.0)", "x.masked_fill(mask, -10000.0)"),
    ),
    "repeated": (
        *(told("repeat_interleave", ["x"], [ROWS], ROWS.repeat(2, 1)),),
        *("x.repeat_interleave(2, dim=1)", "x.repeat_interleave(2, axis=1)"),
    ),
    "whole several times": (
        *(told("tile", ["x"], [ROWS], np.tile(ROWS, (1, 2, 1))),),
        *("x.tile((1, 2, 1))", "x.tile([1, 2, 1])"),
    ),
    "opposite": (told("logical_not", ["x == y"], [ONE > 0], ONE > 0), "~(x == y)", "~(x == y)"),
    "numbers in a row": (
        *(told("arange", [], [], np.arange(2, 5)),),
        *("torch.arange(2, 5)", "paddle.arange(2, 5)"),
    ),
    "triangle": (
        *(told("triu", ["x"], [ONE], ONE, diagonal=1),),
        *("torch.triu(x, diagonal=1)", "paddle.triu(x, diagonal=1)"),
    ),
    "border of a sequence": (
        *(told("pad", ["x"], [ROWS], ROWS, **{"pad by axis": ((0, 0), (0, 0), (1, 0))}),),
        *("F.pad(x, [1, 0])", 'F.pad(x, [1, 0], data_format="NCL")'),
    ),
    "border of every axis": (
        *(told("pad", ["x"], [ROWS], ROWS, **{"pad by axis": ((1, 0), (0, 0), (0, 2))}),),
        *("F.pad(x, [0, 2, 0, 0, 1, 0])", "F.pad(x, [1, 0, 0, 0, 0, 2])"),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_an_op_in_each_framework_s_words(case: tuple[ExpressionOp, str, str]) -> None:
    step, torch, paddle = case
    assert expressed(step, "torch", spell) == torch
    assert expressed(step, "paddle", spell) == paddle


UNKNOWN = {
    "a random one": told("randn", [], [], ONE),
    "another order of values": told("reshape", ["x"], [ROWS], ROWS[::-1].reshape(2, 12)),
    "no axes that give it": told("transpose", ["x"], [ROWS], ROWS[::-1].transpose(0, 2, 1)),
    "a tensor as index": told("getitem", ["x"], [ROWS], ROWS[:1], index=ONE),
    "a slope that is not known": told("leaky_relu", ["x"], [ONE], ONE),
    "a number that is not known": told("mul", ["x"], [ONE], ONE),
    "a layer's own weight": told("linear", ["x"], [ONE], ONE),
    "values that are not made by a rule": told("tensor", [], [], np.array([1, 5, 7])),
}


@pytest.mark.parametrize("step", UNKNOWN.values(), ids=list(UNKNOWN))
def test_what_is_not_known_is_not_written(step: ExpressionOp) -> None:
    assert expressed(step, "paddle", spell) is None


def test_what_is_not_imported_is_not_written() -> None:
    assert expressed(told("relu", ["x"], [ONE], ONE), "paddle", lambda dotted: None) is None


def test_the_same_value_is_written_as_it_is() -> None:
    assert moved("x", ROWS, ROWS, "paddle") == "x"
    assert moved("x", ROWS, ROWS[:1], "paddle") is None


@pytest.mark.parametrize(
    ("text", "expected"), [("x", "x"), ("f(x)", "f(x)"), ("x + y", "(x + y)"), ("-1", "(-1)")]
)
def test_parentheses_where_they_are_needed(text: str, expected: str) -> None:
    assert grouped(text) == expected
