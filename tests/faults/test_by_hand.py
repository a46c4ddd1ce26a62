"""Activations that are a layer with a name on one side and written by hand on the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


class ByHand(pnn.Layer):
    def __init__(self, function: Callable[..., Any], **kept: float) -> None:
        super().__init__()
        self.function = function
        for name, value in kept.items():
            setattr(self, name, value)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.function(self, x)


class TorchByHand(nn.Module):
    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


def _slope(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.maximum(x, layer.slope * x)


def _written_slope(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.where(x > 0, x, 0.07 * x)


def _exponential(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.where(x > 0, x, layer.alpha * (paddle.exp(x) - 1.0))


def _soft(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.log1p(paddle.exp(layer.beta * x)) / layer.beta


def _cut(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.minimum(paddle.maximum(x, paddle.full([1], -1.0)), paddle.full([1], 0.8))


def _shrunk(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return x * (x.abs() > layer.bound).astype("float32")


def _replaced(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.where(x > 0.4, x, paddle.full_like(x, 0.1))


def _by_tanh(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return 0.5 * x * (1.0 + paddle.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def _along_one(layer: Any, x: paddle.Tensor) -> paddle.Tensor:
    return paddle.exp(x) / paddle.exp(x).sum(0, keepdim=True)


WRONG = [
    (nn.LeakyReLU(0.1), ByHand(_slope, slope=0.3), "config.slope", ("slope is 0.1", "slope = 0.3")),
    (nn.LeakyReLU(0.2), ByHand(_written_slope), "config.slope", ("slope is 0.2", "slope = 0.07")),
    (nn.ELU(0.7), ByHand(_exponential, alpha=1.0), "config.other", ("alpha is 0.7", "alpha = 1")),
    (nn.Softplus(2.0), ByHand(_soft, beta=1.0), "config.other", ("beta is 2", "beta = 1")),
    (nn.Hardtanh(), ByHand(_cut), "config.other", ("maximum is 1", "maximum = 0.8")),
    (nn.Hardshrink(), ByHand(_shrunk, bound=0.3), "config.other", ("threshold is 0.5", "threshold = 0.3")),
    (nn.Threshold(0.2, 0.1), ByHand(_replaced), "config.other", ("threshold is 0.2", "threshold = 0.4")),
    (nn.GELU(), ByHand(_by_tanh), "op.approximation", ("'none'", "'tanh'")),
    (nn.Softmax(-1), ByHand(_along_one), "op.axis", ("axis is -1", "axis = 0")),
]
RIGHT = [
    (nn.LeakyReLU(0.3), ByHand(_slope, slope=0.3)),
    (nn.ELU(0.7), ByHand(_exponential, alpha=0.7)),
    (nn.Hardtanh(-1.0, 0.8), ByHand(_cut)),
    (nn.Threshold(0.4, 0.1), ByHand(_replaced)),
    (nn.Softmax(0), ByHand(_along_one)),
]


def models(reference: nn.Module, port: pnn.Layer) -> tuple[nn.Module, pnn.Layer]:
    return (
        seeded(lambda: nn.Sequential(nn.Linear(12, 12), reference, nn.Linear(12, 5))),
        pnn.Sequential(pnn.Linear(12, 12), port, pnn.Linear(12, 5)),
    )


@pytest.mark.parametrize(("reference", "port", "code", "says"), WRONG)
def test_the_setting_is_solved_for(
    reference: nn.Module, port: pnn.Layer, code: str, says: tuple[str, ...]
) -> None:
    model, frame = models(reference, port)
    cause = the_cause(align(model, frame, numbers(8, 12)))
    assert cause.code == code, cause
    assert all(part in cause.message for part in says), cause.message
    mend(frame, cause.fix)
    assert align(model, frame, numbers(8, 12)).ok


@pytest.mark.parametrize(("reference", "port"), RIGHT)
def test_right_by_hand_is_left_alone(reference: nn.Module, port: pnn.Layer) -> None:
    assert align(*models(reference, port), numbers(8, 12)).ok


def test_the_reference_by_hand() -> None:
    reference = TorchByHand(lambda x: x * (x.abs() > 0.3))
    model, frame = models(reference, pnn.Hardshrink(0.5))
    cause = the_cause(align(model, frame, numbers(8, 12)))
    assert cause.code == "config.other"
    assert "the reference behaves as with threshold = 0.3; it is 0.5 in the port" in cause.message
    mend(frame, cause.fix)
    assert align(model, frame, numbers(8, 12)).ok


def test_another_function_is_not_said_to_be_a_setting() -> None:
    model, frame = models(nn.LeakyReLU(0.1), ByHand(lambda layer, x: x * x))
    (divergence,) = own(align(model, frame, numbers(8, 12)))
    assert divergence.cause is None or divergence.cause.code != "config.slope"
