"""What sequence models hand from layer to layer: a bias that all share, rotations as complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal as pf


class Handing(nn.Module):
    """Adds a bias, and hands it on; the first of them makes it."""

    def __init__(self, *, first: bool) -> None:
        super().__init__()
        self.lin = nn.Linear(6, 6)
        if first:
            self.table = nn.Embedding(4, 6)

    def forward(self, x: torch.Tensor, bias: torch.Tensor | None) -> tuple[torch.Tensor, torch.Tensor]:
        if bias is None:
            bias = self.table(torch.arange(4))
        return torch.softmax(self.lin(x) + bias, dim=-1), bias


class HandedOn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Handing(first=index == 0) for index in range(3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bias = None
        for layer in self.layers:
            y, bias = layer(x, bias)
            x = x + y
        return x


class Taking(pnn.Layer):
    factor = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.lin = pnn.Linear(6, 6)

    def forward(self, x: Any, bias: Any) -> Any:
        kept = bias.detach() * (1.0 - self.factor)
        return paddle.nn.functional.softmax(self.lin(x) + bias * self.factor + kept, axis=-1)


class MadeOnce(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.table = pnn.Embedding(4, 6)
        self.layers = pnn.LayerList([Taking() for _ in range(3)])

    def forward(self, x: Any) -> Any:
        bias = self.table(paddle.arange(4))
        for layer in self.layers:
            x = x + layer(x, bias)
        return x


def rows(*shape: int) -> Any:
    return np.random.default_rng(2).standard_normal(shape).astype("float32")


def test_a_tensor_that_the_reference_hands_on_has_the_gradient_of_all_who_use_it() -> None:
    torch.manual_seed(1)
    assert pf.align(HandedOn(), MadeOnce(), rows(2, 4, 6)).ok


def test_a_share_of_that_gradient_that_is_wrong_is_seen() -> None:
    torch.manual_seed(1)
    port = MadeOnce()
    port.layers[1].factor = 0.5
    report = pf.align(HandedOn(), port, rows(2, 4, 6))
    assert report.first is not None
    assert report.first.phase in ("backward", "gradient")


class Turning(nn.Module):
    """Turns pairs of numbers by angles that it is given as complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return self.lin(torch.view_as_real(pairs * turns).flatten(-2))


class Turned(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.turn = Turning()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        angles = torch.outer(torch.arange(x.shape[1]).float(), torch.tensor([1.0, 0.1, 0.01, 0.001]))
        return self.turn(x, torch.polar(torch.ones_like(angles), angles))


class TurningByHand(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.lin = pnn.Linear(8, 8)

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        even, odd = x[..., ::2], x[..., 1::2]
        return self.lin(paddle.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1).flatten(-2))


class TurnedByHand(pnn.Layer):
    def __init__(self, sign: float = 1.0) -> None:
        super().__init__()
        self.turn = TurningByHand()
        self.sign = sign

    def forward(self, x: Any) -> Any:
        steps = paddle.arange(x.shape[1]).astype("float32")
        angles = paddle.outer(steps, paddle.to_tensor([1.0, 0.1, 0.01, 0.001]))
        return self.turn(x, paddle.cos(angles), self.sign * paddle.sin(angles))


def test_complex_numbers_that_a_layer_is_given_keep_their_imaginary_part_when_noise_is_measured() -> None:
    torch.manual_seed(1)
    assert pf.align(Turned(), TurnedByHand(), rows(2, 5, 8)).ok


@pytest.mark.parametrize("sign", [-1.0, 1.001])
def test_a_wrong_rotation_is_seen_where_it_is_made(sign: float) -> None:
    torch.manual_seed(1)
    report = pf.align(Turned(), TurnedByHand(sign), rows(2, 5, 8))
    assert report.first is not None
    assert report.first.port is not None
    assert report.first.port.path == ""  # the angles are made there
    assert "input 0 of turn.lin" in report.first.what
