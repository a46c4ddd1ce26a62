"""Code that asks wrongly whether it is in training, and code that should run without gradients."""

from __future__ import annotations

import paddle
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, numbers, own, seeded, the_cause


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.linspace(-1.0, 1.0, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - (x.mean(0) if self.training else self.mean)


class PortNorm(pnn.Layer):  # type: ignore[misc]
    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.turned = turned
        self.register_buffer("mean", paddle.linspace(-1.0, 1.0, 6))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x - (x.mean(0) if self.training != self.turned else self.mean)


def pair(*, turned: bool) -> tuple[nn.Module, pnn.Layer]:
    reference = seeded(lambda: nn.Sequential(nn.Linear(5, 6), Norm(), nn.Linear(6, 2)))
    return reference, pnn.Sequential(pnn.Linear(5, 6), PortNorm(turned=turned), pnn.Linear(6, 2))


def test_the_flag_is_asked_wrongly() -> None:
    cause = the_cause(align(*pair(turned=True), numbers(7, 5)))
    assert cause.code == "mode.training"
    assert "1 does in eval mode what the reference does in train mode" in cause.message


def test_the_flag_is_asked_as_it_should_be() -> None:
    assert align(*pair(turned=False), numbers(7, 5)).ok


class Keys(nn.Module):
    """Compares what two encoders make of two inputs; the second is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = (nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4)) for _ in range(2))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            key = self.key(y)
        return self.query(x) * key


class PortKeys(pnn.Layer):  # type: ignore[misc]
    def __init__(self, *, frozen: bool) -> None:
        super().__init__()
        self.frozen = frozen
        self.query, self.key = (
            pnn.Sequential(pnn.Linear(5, 6), pnn.Tanh(), pnn.Linear(6, 4)) for _ in range(2)
        )

    def forward(self, x: paddle.Tensor, y: paddle.Tensor) -> paddle.Tensor:
        with paddle.set_grad_enabled(not self.frozen):
            key = self.key(y)
        return self.query(x) * key


def test_who_lets_gradients_through_is_blamed_and_not_the_layers_inside() -> None:
    report = align(seeded(Keys), PortKeys(frozen=False), (numbers(3, 5), numbers(3, 5) + 1.0))
    first = own(report)[0]
    assert first.port is not None
    assert first.port.path == ""
    assert first.cause is not None
    assert first.cause.code == "grad.detached"


def test_what_is_frozen_on_both_sides_is_no_difference() -> None:
    assert align(seeded(Keys), PortKeys(frozen=True), (numbers(3, 5), numbers(3, 5) + 1.0)).ok
