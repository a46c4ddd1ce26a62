"""Functions with a backward of their own: a wrong one is found, whether or not the reference has its like."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal as pf
from parfocal.judge.verdict import Divergence


class Reversing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.factor = factor
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return -ctx.factor * gradients[0], None


class Reversed(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.factor = factor
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return -ctx.factor * gradient


class NotReversed(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        ctx.factor = factor
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return ctx.factor * gradient


class Bent(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensor()
        return 2.0 * x.abs() * gradient


class Reference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.label, self.domain = nn.Linear(6, 8), nn.Linear(8, 3), nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.tanh(self.first(x))
        return self.label(x * x), self.domain(Reversing.apply(x, 0.5))


class Port(pnn.Layer):
    """``sent``: what the domain's gradient goes through; ``square``: how x * x is made."""

    def __init__(self, sent: Any, square: Any = None) -> None:
        super().__init__()
        self.first, self.label, self.domain = pnn.Linear(6, 8), pnn.Linear(8, 3), pnn.Linear(8, 2)
        self.sent, self.square = sent, square or (lambda x: x * x)

    def forward(self, x: Any) -> Any:
        x = paddle.tanh(self.first(x))
        return self.label(self.square(x)), self.domain(self.sent(x))


def first(port: pnn.Layer) -> Divergence | None:
    torch.manual_seed(3)
    x = np.random.default_rng(1).standard_normal((5, 6)).astype("float32")
    return pf.align(Reference(), port, x).first


def line_of(function: type) -> int:
    code = function.__dict__["backward"].__func__.__code__
    return max(line for *_, line in code.co_lines() if line)


def right(x: Any) -> Any:
    return Reversed.apply(x, 0.5)


def test_a_function_that_sends_back_the_same_is_right() -> None:
    assert first(Port(right)) is None


@pytest.mark.parametrize(
    ("sent", "function", "factor"),
    [
        (lambda x: NotReversed.apply(x, 0.5), NotReversed, "-1 times"),
        (lambda x: Reversed.apply(x, 0.25), Reversed, "0.5 times"),
    ],
)
def test_what_a_function_sends_back_is_compared_with_its_counterpart(
    sent: Any, function: type, factor: str
) -> None:
    found = first(Port(sent))
    assert found is not None
    assert found.cause is not None
    assert found.port is not None
    assert (found.cause.code, found.port.line) == ("grad.scale", line_of(function))
    assert factor in found.cause.message
    assert "Reversing (test_own_backward.py:" in found.cause.message


def test_a_backward_that_is_no_derivative_is_named_where_the_reference_has_no_such_function() -> None:
    found = first(Port(right, Bent.apply))
    assert found is not None
    assert found.cause is not None
    assert found.port is not None
    assert (found.cause.code, found.port.line) == ("grad.function", line_of(Bent))
    assert "is not the derivative of its forward" in found.cause.message


def test_a_function_of_the_reference_that_the_port_does_without_is_named() -> None:
    found = first(Port(lambda x: x * 1.0))
    assert found is not None
    assert found.cause is not None
    assert found.cause.code == "grad.function"
    assert "the reference's Reversing" in found.cause.message


def test_another_mistake_is_not_put_down_to_a_function_that_is_right() -> None:
    found = first(Port(right, lambda x: x * x.detach()))
    assert found is not None
    assert found.cause is not None
    assert found.cause.code == "grad.detached"


def test_functions_are_left_as_they_were() -> None:
    before = [dict(each.__dict__) for each in (Reversing, NotReversed)]
    first(Port(lambda x: NotReversed.apply(x, 0.5)))
    assert [dict(each.__dict__) for each in (Reversing, NotReversed)] == before
