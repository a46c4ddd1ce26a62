"""Projections that are fused on both sides, with their rows in another order."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

X = np.random.default_rng(0).standard_normal((2, 5, 16)).astype("float32")


class TorchBlock(torch.nn.Module):
    """Query, key and value of one head after another."""

    def __init__(self, conv: bool) -> None:
        super().__init__()
        self.before = torch.nn.Linear(16, 16)
        self.qkv = torch.nn.Conv1d(16, 48, 1) if conv else torch.nn.Linear(16, 48)
        self.out, self.conv = torch.nn.Linear(16, 16), conv

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.tanh(self.before(x))
        fused = self.qkv(x.transpose(1, 2)).transpose(1, 2) if self.conv else self.qkv(x)
        q, k, v = fused.reshape(2, 5, 2, 24).permute(0, 2, 1, 3).split(8, dim=-1)
        y = torch.softmax(q @ k.transpose(-1, -2) * 8**-0.5, -1) @ v
        return x + self.out(y.transpose(1, 2).reshape(2, 5, 16))


class PaddleBlock(paddle.nn.Layer):
    """All queries, then all keys, then all values."""

    def __init__(self, conv: bool, scale: float) -> None:
        super().__init__()
        self.before = paddle.nn.Linear(16, 16)
        self.qkv = paddle.nn.Conv1D(16, 48, 1) if conv else paddle.nn.Linear(16, 48)
        self.out, self.conv, self.scale = paddle.nn.Linear(16, 16), conv, scale

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = paddle.tanh(self.before(x))
        fused = self.qkv(x.transpose([0, 2, 1])).transpose([0, 2, 1]) if self.conv else self.qkv(x)
        q, k, v = (
            each.reshape([2, 5, 2, 8]).transpose([0, 2, 1, 3]) for each in paddle.split(fused, 3, axis=-1)
        )
        scores = paddle.matmul(q, k, transpose_y=True) * self.scale
        y = paddle.matmul(paddle.nn.functional.softmax(scores, axis=-1), v)
        return x + self.out(y.transpose([0, 2, 1, 3]).reshape([2, 5, 16]))


class PaddleBlocks(paddle.nn.Layer):
    def __init__(self, conv: bool, scale: float) -> None:
        super().__init__()
        self.one, self.two = PaddleBlock(conv, 8**-0.5), PaddleBlock(conv, scale)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.two(self.one(x))


def blocks(conv: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(TorchBlock(conv), TorchBlock(conv))


@pytest.mark.parametrize("conv", [False, True])
def test_rows_in_another_order_are_the_same_and_are_told(conv):
    report = pf.align(blocks(conv), PaddleBlocks(conv, 8**-0.5), X)
    assert report.ok, str(report)
    told = " ".join(str(report).split())
    assert "the rows of one.qkv, two.qkv lie otherwise in the port: 3 parts in the order 0, 1, 2" in told
    assert "weights copied as they are will not do" in told


@pytest.mark.parametrize("conv", [False, True])
def test_a_mistake_in_what_is_made_of_them_is_found(conv):
    report = pf.align(blocks(conv), PaddleBlocks(conv, 0.25), X)
    assert not report.ok
    first = report.first
    assert first.port.path == "two", str(report)
