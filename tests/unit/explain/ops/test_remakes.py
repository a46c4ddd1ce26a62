"""Changes to ops put together, and numbers solved for, without any framework."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from parfocal.backends.protocol import OpCall
from parfocal.explain.ops.remakes import Feeding, merged, reshaping
from parfocal.explain.ops.solving import SOLVES, shown, solved
from parfocal.explain.ops.values import close

X = np.linspace(-2.0, 2.0, 24)


def _call(*tensors: Any, output: Any = None) -> OpCall:
    return OpCall(0, "", None, "op", "op", tensors, {}, output, lambda *given: given)


def test_tensors_for_different_slots_of_one_op_go_together() -> None:
    both = merged([{3: Feeding({"0": lambda: "a"})}, {3: Feeding({"1": lambda: "b"})}])
    assert both[3](_call("x", "y")) == ("a", "b")


def test_of_two_changes_to_one_op_the_first_is_made() -> None:
    assert merged([{3: lambda call: 1}, {3: lambda call: 2}])[3](_call()) == 1
    assert merged([{3: Feeding({"0": lambda: "a"})}, {3: Feeding({"0": lambda: "b"})}])[3](_call("x")) == (
        "a",
    )


def test_another_shape_keeps_the_axes_that_are_the_same() -> None:
    remake = reshaping((2, 7, 4, 3), (2, 7, 3, 4))
    assert remake(_call(output=np.zeros((2, 5, 4, 3)))).shape == (2, 5, 3, 4)


@pytest.mark.parametrize(
    ("op", "argument", "made", "wanted"),
    [
        ("add", "scalar", X + 0.25, 0.25),
        ("rsub", "scalar", 3.0 - X, 3.0),
        ("mul", "scalar", X * 1.7, 1.7),
        ("pow", "scalar", np.abs(X) ** 3, 3.0),
        ("leaky_relu", "negative_slope", np.where(X < 0, 0.2 * X, X), 0.2),
        ("elu", "alpha", np.where(X < 0, 0.7 * np.expm1(X), X), 0.7),
        ("clamp", "minimum", np.clip(X, -0.5, None), -0.5),
        ("hardtanh", "maximum", np.clip(X, -1.0, 0.75), 0.75),
    ],
)
def test_a_number_is_solved_for(op: str, argument: str, made: Any, wanted: float) -> None:
    taken = np.abs(X) if op == "pow" else X
    assert solved(SOLVES[op, argument], taken, made) == wanted


@pytest.mark.parametrize(
    "made", [np.tanh(X), np.roll(X, 5) * 2, np.full(24, np.nan)], ids=("curved", "moved", "nan")
)
def test_what_is_no_number_is_not_solved_for(made: Any) -> None:
    assert solved(SOLVES["mul", "scalar"], X, np.ascontiguousarray(made)) is None


def test_what_is_hidden_by_very_low_values_counts_by_itself() -> None:
    hidden = np.where(np.arange(24) % 3 == 0, -1e9, X)
    assert close(hidden, hidden.copy(), 1e-6)
    assert not close(np.where(hidden < -1e3, hidden, 1.5 * hidden), hidden, 1e-6)
    assert not close(hidden * 1.01, hidden, 1e-6)


def test_a_long_constant_is_told_by_its_ends() -> None:
    assert shown(np.arange(8)) == "0, 1, 2, ..., 7 [8]"
    assert shown(np.ones((2, 2))) == "1, 1, 1, 1 [2, 2]"
