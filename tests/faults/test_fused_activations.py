"""A layer that normalises and activates in one, against a port that does so in two: whose half is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.timm_ports.pairs import timm
from paddle import nn as pn
from torch import nn

from parfocal.report.report import Report
from parfocal.workflow.align import align


class NormAndSwish(nn.GroupNorm):
    """The activation is a function, which no call shows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.silu(super().forward(x))


def batch_norm_act() -> Any:
    timm()
    from timm.layers.norm_act import BatchNormAct2d

    return BatchNormAct2d(8, act_layer=nn.ReLU6)


def reference(fused: Any) -> nn.Module:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), fused, nn.Conv2d(8, 4, 1))
    with torch.no_grad():
        model[0].weight.mul_(4.0)
        fused.weight.uniform_(0.6, 1.4)
        fused.bias.normal_(0.0, 0.3)
    return model


def aligned(fused: Any, *layers: pn.Layer) -> Report:
    port = pn.Sequential(pn.Conv2D(3, 8, 3, padding=1), *layers, pn.Conv2D(8, 4, 1))
    given = np.random.default_rng(0).standard_normal((2, 3, 12, 12)).astype("float32") * 3.0
    return align(reference(fused), port, given)


@pytest.mark.parametrize(
    ("fused", "norm", "act"),
    [
        (batch_norm_act, lambda: pn.BatchNorm2D(8), pn.ReLU),
        (lambda: NormAndSwish(2, 8), lambda: pn.GroupNorm(2, 8), pn.ReLU),
    ],
    ids=["a layer for the activation", "a function for the activation"],
)
def test_the_wrong_activation_is_blamed_and_not_the_norm(fused: Any, norm: Any, act: Any) -> None:
    first = aligned(fused(), norm(), act()).first
    assert first is not None
    assert first.port is not None
    assert first.port.path == "2"
    assert first.cause is not None
    assert first.cause.code == "op.activation"


def test_a_wrong_norm_is_blamed_and_not_the_activation() -> None:
    first = aligned(batch_norm_act(), pn.BatchNorm2D(8, epsilon=1e-2), pn.ReLU6()).first
    assert first is not None
    assert first.port is not None
    assert first.cause is not None
    assert (first.port.path, first.cause.code) == ("1", "config.epsilon")


def test_a_correct_port_in_two_layers_is_the_same() -> None:
    assert aligned(batch_norm_act(), pn.BatchNorm2D(8), pn.ReLU6()).ok
    assert aligned(NormAndSwish(2, 8), pn.GroupNorm(2, 8), pn.Silu()).ok
