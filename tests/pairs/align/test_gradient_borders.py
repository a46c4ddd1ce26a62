"""An activation that changes no value still stops gradients: inside a norm or after it, that is the same.

All values before the norm are positive or 0, as behind a ReLU or a pooling of one, so that a norm with fresh
statistics gives none that is negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as paddle_functional
import pytest
import torch
from paddle import nn as pn
from torch import nn
from torch.nn import functional

import parfocal as pf

FIXED = pf.Tolerance(rtol=1e-4, atol=1e-5)


class NormAndReLU(nn.BatchNorm2d):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(super().forward(x))


class PortNormAndClip(pn.BatchNorm2D):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.clip(super().forward(x), min=0.0)


class PortNormAndReLU(pn.BatchNorm2D):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.relu(super().forward(x))


class PortNormOfItsOwn(pn.BatchNorm2D):
    """Not the framework's own layer, and still nothing but a norm."""

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return super().forward(x) + 0.0


class Reference(nn.Module):
    def __init__(self, norm: Callable[[int], nn.Module], activate: Callable[..., Any] | None) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Conv2d(3, 8, 3), norm(8), nn.Conv2d(8, 8, 3)
        self.activate = activate

    def forward(self, x: torch.Tensor) -> Any:
        x = self.norm(functional.relu(self.first(x)))
        return self.last(x if self.activate is None else self.activate(x))


class Port(pn.Layer):
    def __init__(self, norm: Callable[[int], pn.Layer], activate: Callable[..., Any] | None) -> None:
        super().__init__()
        self.first, self.norm, self.last = pn.Conv2D(3, 8, 3), norm(8), pn.Conv2D(8, 8, 3)
        self.activate = activate

    def forward(self, x: paddle.Tensor) -> Any:
        x = self.norm(paddle_functional.relu(self.first(x)))
        return self.last(x if self.activate is None else self.activate(x))


def fused(width: int) -> pn.Layer:
    return pn.BatchNorm(width, act="relu")


def half_detached(x: paddle.Tensor) -> paddle.Tensor:
    return x.detach() * 0.5 + x * 0.5


Sides = tuple[Callable[[], nn.Module], Callable[[], pn.Layer]]
RIGHT: dict[str, Sides] = {
    "the port's norm says so, a layer": (
        lambda: Reference(nn.BatchNorm2d, nn.ReLU()),
        lambda: Port(fused, None),
    ),
    "the port's norm says so, a function": (
        lambda: Reference(nn.BatchNorm2d, functional.relu),
        lambda: Port(fused, None),
    ),
    "the port's norm does it by itself": (
        lambda: Reference(nn.BatchNorm2d, nn.ReLU()),
        lambda: Port(PortNormAndReLU, None),
    ),
    "the reference's norm, a layer": (
        lambda: Reference(NormAndReLU, None),
        lambda: Port(pn.BatchNorm2D, pn.ReLU()),
    ),
    "the reference's norm, a function": (
        lambda: Reference(NormAndReLU, None),
        lambda: Port(pn.BatchNorm2D, paddle_functional.relu),
    ),
}
WRONG: dict[str, Sides] = {
    "half of the gradient is lost in the code": (
        lambda: Reference(nn.BatchNorm2d, nn.ReLU()),
        lambda: Port(fused, half_detached),
    ),
    "no activation anywhere": (
        lambda: Reference(nn.BatchNorm2d, nn.ReLU()),
        lambda: Port(PortNormOfItsOwn, None),
    ),
    "no activation, where the reference's norm has it": (
        lambda: Reference(NormAndReLU, None),
        lambda: Port(PortNormOfItsOwn, None),
    ),
    "a bound that lets gradients pass at 0": (
        lambda: Reference(nn.BatchNorm2d, nn.ReLU()),
        lambda: Port(PortNormAndClip, None),
    ),
}


def aligned(sides: Sides, tolerance: pf.Tolerance | None) -> pf.Report:
    torch.manual_seed(0)
    images = np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype(np.float32)
    return pf.align(sides[0](), sides[1](), images, tolerance=tolerance)


@pytest.mark.parametrize("tolerance", [None, FIXED], ids=["noise", "fixed"])
@pytest.mark.parametrize("name", RIGHT)
def test_it_is_the_same(name: str, tolerance: pf.Tolerance | None) -> None:
    report = aligned(RIGHT[name], tolerance)
    assert report.ok, str(report)


@pytest.mark.parametrize("tolerance", [None, FIXED], ids=["noise", "fixed"])
@pytest.mark.parametrize("name", WRONG)
def test_another_gradient_is_told(name: str, tolerance: pf.Tolerance | None) -> None:
    report = aligned(WRONG[name], tolerance)
    assert not report.ok
    assert report.first is not None
    assert report.first.phase in ("backward", "gradient")
