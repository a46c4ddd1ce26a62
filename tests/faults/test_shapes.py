"""Values of another shape than the port's own: its code may not stand to be led along them."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

# paddle says so once for every BatchNorm in train mode
pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")

X = np.random.default_rng(0).normal(size=(2, 6, 5, 5)).astype(np.float32)


class Reference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Conv2d(6, 8, 1)
        self.bn = torch.nn.BatchNorm2d(8)
        self.norm = torch.nn.LayerNorm(8)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, x):
        x = self.bn(self.mix(x)).permute(0, 2, 3, 1)
        return self.head(self.norm(x.mean((1, 2))))


class Port(paddle.nn.Layer):
    def __init__(self, early: bool):
        super().__init__()
        self.early = early
        self.mix = paddle.nn.Conv2D(6, 8, 1)
        self.bn = paddle.nn.BatchNorm2D(8)
        self.norm = paddle.nn.LayerNorm(8)
        self.head = paddle.nn.Linear(8, 3)

    def forward(self, x):
        x = self.bn(self.mix(x)).transpose([0, 2, 3, 1])
        if self.early:  # a layer that gets four axes here, and two in the reference
            return self.head(paddle.mean(self.norm(x), axis=[1, 2]))
        return self.head(self.norm(paddle.mean(x, axis=[1, 2])))


def test_a_layer_called_on_another_shape_is_a_verdict_and_not_an_error():
    for mode in ("eval", "train"):
        port = Port(early=True)
        port.train()
        before = {name: value.numpy().copy() for name, value in port.bn.state_dict().items()}
        report = pf.align(Reference(), port, X, mode=mode)
        assert not report.ok
        first = report.divergences[0]
        assert (first.phase, first.port.path) == ("forward", "")
        assert first.cause is not None
        assert first.cause.code == "op.order"
        for name in ("_mean", "_variance"):
            assert np.array_equal(port.bn.state_dict()[name].numpy(), before[name])


def test_the_same_code_in_the_right_order_is_the_same():
    assert pf.align(Reference(), Port(early=False), X, mode="train").ok
