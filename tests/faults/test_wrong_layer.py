"""A layer that is called in another's place, against one whose weights are another's."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch

import parfocal as pf
from tests.faults.tools import align, numbers, own, seeded, the_cause

WIDTH = 6


class Reference(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.value, self.gate = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.before, self.after = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)

    def forward(self, x: Any) -> Any:
        x = self.before(x)
        y = self.value(x) * torch.sigmoid(self.gate(x))
        return self.after(x + y)


class Port(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.value, self.gate = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.before, self.after = paddle.nn.LayerNorm(WIDTH), paddle.nn.LayerNorm(WIDTH)

    def forward(self, x: Any) -> Any:
        x = self.before(x)
        y = self.value(x) * paddle.nn.functional.sigmoid(self.gate(x))
        return self.after(x + y)


class SameGate(Port):
    def forward(self, x: Any) -> Any:
        x = self.before(x)
        gate = paddle.nn.functional.sigmoid(self.value(x))
        return self.after(x + self.value(x) * gate)


class SameNorm(Port):
    def forward(self, x: Any) -> Any:
        x = self.before(x)
        y = self.value(x) * paddle.nn.functional.sigmoid(self.gate(x))
        return self.before(x + y)


@pytest.mark.parametrize(
    ("port", "called", "wanted", "fix"),
    [
        (SameGate, "value", "gate", "gate = paddle.nn.functional.sigmoid(self.gate(x))"),
        (SameNorm, "before", "after", "return self.after(x + y)"),
    ],
)
def test_the_layer_that_should_be_called_is_named(port: Any, called: str, wanted: str, fix: str) -> None:
    cause = the_cause(align(seeded(Reference), port(), numbers(3, 5, WIDTH)))
    assert cause.code == "op.order"
    assert f"{called} is called in the port" in cause.message
    assert f"where the reference calls {wanted}, which is {wanted} in the port" in cause.message
    assert fix in cause.fix


def test_weights_that_are_exchanged_are_no_matter_of_calls() -> None:
    reference, port = seeded(Reference), Port()
    pf.transfer(reference, port, numbers(3, 5, WIDTH))
    value, gate = port.value.state_dict(), port.gate.state_dict()
    copies = {name: tensor.clone() for name, tensor in value.items()}
    port.value.set_state_dict({name: tensor.clone() for name, tensor in gate.items()})
    port.gate.set_state_dict(copies)
    report = align(reference, port, numbers(3, 5, WIDTH), transfer=False)
    assert not report.ok
    assert all("is called in the port" not in d.cause.message for d in own(report) if d.cause is not None)


def test_what_is_right_is_left_alone() -> None:
    assert align(seeded(Reference), Port(), numbers(3, 5, WIDTH)).ok
