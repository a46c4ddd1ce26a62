"""Modules that are right and are handed tensors in another order, or other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from parfocal.judge.verdict import Divergence
from tests.faults.tools import numbers, own


class Gather(nn.Module):
    """Sums up what comes along the edges of a graph."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x).index_add(0, target, self.lin(x)[source])


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Gather(), Gather()

    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x, source, target)), source, target)


class Turned(Graph):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x, source, target)), target, source)


class TwiceWrong(Graph):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        y = self.second(torch.tanh(self.first(x, source, target)), target, source)
        return y.softmax(dim=0)


class Distribution(Graph):
    def forward(self, x: torch.Tensor, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return super().forward(x, source, target).softmax(dim=1)


class OwnOrder(Gather):
    def forward(self, x: torch.Tensor, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return super().forward(x, source, target)


class OwnOrderGraph(Turned):
    def __init__(self) -> None:
        super().__init__()
        self.second = OwnOrder()


class PaddleGather(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.lin = pnn.Linear(6, 6)

    def forward(self, x: Any, source: Any, target: Any) -> Any:
        return paddle.index_add(paddle.zeros_like(x), target, 0, paddle.gather(self.lin(x), source))


class PaddleGraph(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = PaddleGather(), PaddleGather()

    def forward(self, x: Any, source: Any, target: Any) -> Any:
        return self.second(paddle.tanh(self.first(x, source, target)), source, target)


def edges() -> tuple[np.ndarray[Any, Any], ...]:
    random = np.random.default_rng(1)
    return numbers(9, 6), random.integers(0, 9, 20), random.integers(0, 8, 20)


def only(reference: Any, port: Any, inputs: Any) -> Divergence:
    (divergence,) = own(parfocal.align(reference, port, inputs))
    assert divergence.port is not None
    assert divergence.cause is not None
    return divergence


def test_tensors_handed_in_another_order_are_the_callers_mistake() -> None:
    for reference in (Graph(), PaddleGraph()):
        found = only(reference, Turned(), edges())
        assert found.port is not None
        assert found.cause is not None
        assert found.port.path == ""
        assert found.cause.code == "op.order"
        assert found.cause.message == (
            "second is given its tensors in another order: at 2 what the reference gives at 1, "
            "at 1 what the reference gives at 2"
        )
        assert found.cause.fix.startswith(
            "return self.second(torch.tanh(self.first(x, source, target)), source, target)"
            "  # test_argument_order.py:"
        )


def test_their_line_is_told_too_where_the_caller_has_another_mistake_behind_it() -> None:
    first, second = own(parfocal.align(Distribution(), TwiceWrong(), edges()))
    assert first.cause is not None
    assert second.cause is not None
    assert [first.cause.code, second.cause.code] == ["op.order", "op.axis"]
    assert first.cause.fix.startswith(
        "y = self.second(torch.tanh(self.first(x, source, target)), source, target)"
        "  # test_argument_order.py:"
    )


def test_a_module_that_takes_its_tensors_in_an_order_of_its_own_is_right() -> None:
    assert parfocal.align(Graph(), OwnOrderGraph(), edges()).ok
    assert parfocal.align(PaddleGraph(), OwnOrderGraph(), edges()).ok


class Confused(Gather):
    """Takes them in an order of its own, as it is called, and mistakes them itself."""

    def forward(self, x: torch.Tensor, target: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x).index_add(0, source, self.lin(x)[target])


class ConfusedGraph(Turned):
    def __init__(self) -> None:
        super().__init__()
        self.second = Confused()


def test_a_module_that_mistakes_its_own_parameters_is_to_blame_itself() -> None:
    (divergence,) = own(parfocal.align(Graph(), ConfusedGraph(), edges()))
    assert divergence.port is not None
    assert divergence.port.path == "second"


class Field(nn.Module):
    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.lin, self.factor = nn.Linear(7, 6), factor

    def forward(self, y: torch.Tensor, t: float, scale: float = 1.0) -> torch.Tensor:
        time = torch.full_like(y[:, :1], t * self.factor)
        return torch.tanh(self.lin(torch.cat([y, time], dim=1))) * scale


class Flow(nn.Module):
    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.field = Field(factor)

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        for i in range(3):
            y = y + 0.5 * self.field(y, 0.5 * i + 0.25)
        return y


class EarlyFlow(Flow):
    def forward(self, y: torch.Tensor) -> torch.Tensor:
        for i in range(3):
            y = y + 0.5 * self.field(y, 0.5 * i)
        return y


class ScaledFlow(Flow):
    def forward(self, y: torch.Tensor) -> torch.Tensor:
        for i in range(3):
            y = y + 0.5 * self.field(y, t=0.5 * i + 0.25, scale=0.9)
        return y


def test_another_number_is_the_callers_mistake_and_its_line_is_the_references() -> None:
    found = only(Flow(), EarlyFlow(), numbers(4, 6))
    assert found.port is not None
    assert found.cause is not None
    assert found.port.path == ""
    assert found.cause.code == "config.other"
    assert found.cause.message == "field is given other values: t is 0.25 in the reference, 0 in the port"
    assert found.cause.fix.startswith(
        "y = y + 0.5 * self.field(y, 0.5 * i + 0.25)  # test_argument_order.py:"
    )


def test_a_number_that_the_reference_leaves_to_its_default_is_said_too() -> None:
    found = only(Flow(), ScaledFlow(), numbers(4, 6))
    assert found.port is not None
    assert found.cause is not None
    assert found.port.path == ""
    assert found.cause.message == "field is given other values: scale is 1 in the reference, 0.9 in the port"
    assert "scale=1.0" in found.cause.fix


class LateFlow(Flow):
    """Halves the factor in the module, and passes twice the number."""

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        for i in range(3):
            y = y + 0.5 * self.field(y, 2 * (0.5 * i + 0.25))
        return y


def test_other_numbers_that_a_module_makes_up_for_are_right() -> None:
    assert parfocal.align(Flow(), LateFlow(0.5), numbers(4, 6)).ok


def test_a_module_with_another_number_inside_is_not_the_callers_mistake() -> None:
    (divergence, *_) = own(parfocal.align(Flow(), Flow(0.9), numbers(4, 6)))
    assert divergence.port is not None
    assert divergence.port.path == "field"
