"""Mistakes in work that the port does elsewhere than the reference: found once, placed and named."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from paddle.nn import functional as pfunctional
from torch import nn
from torch.nn import functional

import parfocal as pf
from tests.faults.tools import align, numbers, own, seeded, the_cause

WIDTH = 8


class Bounded(nn.Module):
    """Bounds what a Sequential gives in its own forward."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.head = nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.clamp(self.body(x), -0.5, 0.5))


class Bounding(pnn.Layer):
    """Stands for the Sequential and bounds itself."""

    def __init__(self, low: float | None) -> None:
        super().__init__()
        self.low = low
        self.first, self.second = pnn.Linear(WIDTH, WIDTH), pnn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        y = self.second(pfunctional.relu(self.first(x)))
        if self.low is None:
            return y
        return paddle.clip(y, self.low, 0.5)


class BoundedInside(pnn.Layer):
    def __init__(self, low: float | None) -> None:
        super().__init__()
        self.body, self.head = Bounding(low), pnn.Linear(WIDTH, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


def test_a_bound_that_was_moved_into_the_layer_is_no_mistake() -> None:
    report = align(seeded(Bounded), BoundedInside(-0.5), numbers(6, WIDTH))
    assert report.ok, str(report)


def test_another_bound_in_the_layer_is_named() -> None:
    report = align(seeded(Bounded), BoundedInside(-0.25), numbers(6, WIDTH))
    cause = the_cause(report)
    assert report.first is not None
    assert report.first.port is not None
    assert report.first.port.path == "body"
    assert cause.code == "config.other"
    assert "-0.5" in cause.message
    assert "-0.25" in cause.message


def test_a_bound_that_is_nowhere_is_missing_in_the_code_that_has_it_in_the_reference() -> None:
    report = align(seeded(Bounded), BoundedInside(None), numbers(6, WIDTH))
    cause = the_cause(report)
    assert cause.code == "op.missing"
    assert "return self.head(paddle.clip(self.body(x), min=-0.5, max=0.5))" in cause.fix
    assert not [each for each in report.findings if each.code == "work.divided"]


class Conditioned(nn.Module):
    """A block that takes an embedding, activated by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.modulation, self.mix = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        scale, shift = self.modulation(functional.silu(c)).chunk(2, dim=-1)
        return x + self.mix(x * (1 + scale) + shift)


class Diffusing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.blocks = nn.ModuleList([Conditioned() for _ in range(3)])
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        c = self.time(c)
        for block in self.blocks:
            x = block(x, c)
        return self.head(x)


class Plain(pnn.Layer):
    """Takes the embedding as it is activated by who calls it."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.modulation, self.mix = pnn.Linear(WIDTH, 2 * WIDTH), pnn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any, c: Any) -> Any:
        scale, shift = self.modulation(c).chunk(2, axis=-1)
        return x + self.mix(x * (self.epsilon + scale) + shift)


class Activated(pnn.Layer):
    def __init__(self, activation: str = "silu", ones: tuple[float, ...] = (1.0, 1.0, 1.0)) -> None:
        super().__init__()
        self.time = pnn.Sequential(pnn.Linear(WIDTH, WIDTH), pnn.Silu(), pnn.Linear(WIDTH, WIDTH))
        self.blocks = pnn.LayerList([Plain(one) for one in ones])
        self.head = pnn.Linear(WIDTH, WIDTH)
        self.activation = activation

    def forward(self, x: Any, c: Any) -> Any:
        c = self.time(c)
        if self.activation == "silu":
            c = pfunctional.silu(c)
        elif self.activation == "relu":
            c = pfunctional.relu(c)
        for block in self.blocks:
            x = block(x, c)
        return self.head(x)


EMBEDDED = numbers(4, 5, WIDTH), numbers(4, 1, WIDTH, seed=4)


def test_an_embedding_that_is_activated_once_is_no_mistake() -> None:
    report = align(seeded(Diffusing), Activated(), EMBEDDED)
    assert report.ok, str(report)


def test_another_activation_of_the_embedding_is_one_mistake_of_the_model() -> None:
    report = align(seeded(Diffusing), Activated("relu"), EMBEDDED)
    cause = the_cause(report)
    assert cause.code == "op.activation"
    assert "c = pfunctional.silu(c)" in cause.fix or "silu instead of relu" in cause.fix
    assert report.first is not None
    assert report.first.port is not None
    assert report.first.port.path == ""


def test_an_activation_that_is_nowhere_is_missing_in_every_block() -> None:
    report = align(seeded(Diffusing), Activated("none"), EMBEDDED)
    forward = [each for each in own(report) if each.phase == "forward"]
    assert [each.cause.code for each in forward if each.cause] == ["op.missing"] * 3, str(report)
    assert [each.port.path for each in forward if each.port] == ["blocks.0", "blocks.1", "blocks.2"]


@pytest.mark.parametrize("wrong", [0, 2])
def test_a_mistake_in_one_of_the_blocks_is_found_in_that_block(wrong: int) -> None:
    ones = tuple(0.5 if index == wrong else 1.0 for index in range(3))
    report = align(seeded(Diffusing), Activated(ones=ones), EMBEDDED)
    assert the_cause(report).code in ("op.scale", "config.other", "op.order"), str(report)
    assert report.first is not None
    assert report.first.port is not None
    assert report.first.port.path == f"blocks.{wrong}"


class Normal(pnn.Layer):
    """Activates inside of each block; the scale of what is mixed is its own."""

    def __init__(self, activation: Any, times: float) -> None:
        super().__init__()
        self.activation, self.times = activation, times
        self.first, self.second = pnn.Linear(WIDTH, WIDTH), pnn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        y = self.second(self.activation(self.first(x)))
        return x + y * self.times


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(functional.gelu(self.first(x)))


class Adding(nn.Module):
    """Adds and scales what its blocks give."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Mixing() for _ in range(2)])
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = x + block(x) * 0.5
        return self.head(x)


class Added(pnn.Layer):
    def __init__(self, activation: Any = pfunctional.gelu, times: float = 0.5) -> None:
        super().__init__()
        self.blocks = pnn.LayerList([Normal(activation, times) for _ in range(2)])
        self.head = pnn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def test_another_scale_of_a_residual_that_was_moved_into_the_blocks_is_named() -> None:
    report = align(seeded(Adding), Added(times=0.25), numbers(4, WIDTH))
    causes = {each.cause.code if each.cause else None for each in own(report)}
    assert causes == {"op.scale"}, str(report)
    assert report.first is not None
    assert report.first.port is not None
    assert report.first.port.line is not None


def test_a_mistake_inside_of_blocks_that_do_more_is_found_there() -> None:
    report = align(seeded(Adding), Added(activation=pfunctional.relu), numbers(4, WIDTH))
    assert [each.port.path for each in own(report) if each.port] == ["blocks.0", "blocks.1"], str(report)
    assert {each.cause.code for each in own(report) if each.cause} == {"op.activation"}


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_correct_port_of_the_residuals_is_the_same(mode: Any) -> None:
    report = pf.align(seeded(Adding), Added(), numbers(4, WIDTH), mode=mode)
    assert report.ok, str(report)
