"""A value on a kink goes one way in the reference and another in the port: that is no mistake, others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.judge.floors import EPSILON
from parfocal.workflow.training.judging import moved

UNIT = EPSILON["float32"]
INPUTS = np.array([[1, 1, 0], [0.3, -0.7, 1.1], [0.9, 0.2, -0.4], [-0.6, 0.8, 0.5]], "float32")
LABELS = np.array([[1.0], [-2.0], [0.5], [3.0]], "float32")


class Reference(torch.nn.Module):
    """What the first unit makes of the first sample is ``gap``, the rest of two numbers near one."""

    def __init__(self, gap: float) -> None:
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(3, 4, bias=False), torch.nn.Linear(4, 1)
        generator = np.random.default_rng(0)
        weight = generator.standard_normal((4, 3)).astype("float32")
        weight[0] = 1.0 + gap, -1.0, 0.5
        self.inner.weight.data = torch.from_numpy(weight)

    def forward(self, x: Any) -> Any:
        return self.outer(torch.relu(self.inner(x)))


class Port(paddle.nn.Layer):
    """There the port is off by ``shift``."""

    def __init__(self, shift: float) -> None:
        super().__init__()
        self.inner, self.outer = paddle.nn.Linear(3, 4, bias_attr=False), paddle.nn.Linear(4, 1)
        self.shift = np.zeros((4, 4), "float32")
        self.shift[0, 0] = shift

    def forward(self, x: Any) -> Any:
        return self.outer(paddle.nn.functional.relu(self.inner(x) + paddle.to_tensor(self.shift)))


def compared(gap: float, shift: float) -> pf.Report:
    torch.manual_seed(0)
    return pf.compare_training(
        Reference(gap),
        Port(shift),
        [(INPUTS, LABELS)] * 2,
        loss=(torch.nn.functional.mse_loss, paddle.nn.functional.mse_loss),
        optimizers=(
            lambda model: torch.optim.SGD(model.parameters(), 0.1),
            lambda model: paddle.optimizer.SGD(0.1, parameters=model.parameters()),
        ),
        progress=False,
    )


def test_a_value_on_a_kink_may_go_another_way() -> None:
    report = compared(UNIT, -2 * UNIT)
    assert report.ok, str(report)
    (note,) = [each.message for each in report.findings if each.code == "training.kinks"]
    assert note.startswith(
        "at step 0 gradients or outputs differ by more than rounding alone, and the reference"
    )
    assert "calls" not in str(report)  # nothing had to be aligned for it


def test_without_a_kink_nothing_is_noted() -> None:
    report = compared(0.25, 0.0)
    assert report.ok
    assert not [each for each in report.findings if each.code == "training.kinks"]


def test_a_value_far_from_the_kink_is_no_excuse() -> None:
    report = compared(64 * UNIT, -128 * UNIT)
    assert not report.ok
    assert not [each for each in report.findings if each.code == "training.kinks"]


@pytest.mark.parametrize("units", [1.0, 4.0])
def test_numbers_are_moved_both_ways_by_so_many_units(units: float) -> None:
    array = np.random.default_rng(1).standard_normal((7, 9)).astype("float32")
    found = moved(array, np.random.default_rng(2), units)
    ways = [(array * np.float64(1 + sign * units * UNIT)).astype("float32") for sign in (-1, 1)]
    assert found.dtype == array.dtype
    assert np.all((found == ways[0]) | (found == ways[1]))
    assert 0.2 < np.mean(found == ways[0]) < 0.8
    whole = np.arange(3)
    assert moved(whole, np.random.default_rng(2)) is whole
