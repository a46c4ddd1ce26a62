"""Routed layers whose experts are one stacked tensor on one side and lists of layers on the other."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

WIDTH, HIDDEN, EXPERTS, TOP, WORDS = 16, 24, 4, 2, 50
IDS = np.random.default_rng(0).integers(0, WORDS, (2, 7))


class TorchDense(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.up_proj = torch.nn.Linear(WIDTH, HIDDEN, bias=False)
        self.down_proj = torch.nn.Linear(HIDDEN, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))


class TorchStack(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_up_proj = torch.nn.Parameter(torch.randn(EXPERTS, WIDTH, 2 * HIDDEN) * 0.2)
        self.down_proj = torch.nn.Parameter(torch.randn(EXPERTS, HIDDEN, WIDTH) * 0.2)


class TorchRouted(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = torch.nn.Linear(WIDTH, EXPERTS, bias=False)
        self.experts = TorchStack()

    def forward(self, x):
        shape, x = x.shape, x.reshape(-1, WIDTH)
        weights, chosen = self.gate(x).softmax(-1).topk(TOP, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for number in range(EXPERTS):
            share = ((chosen == number).float() * weights).sum(-1, keepdim=True)
            gate, up = (x @ self.experts.gate_up_proj[number]).chunk(2, -1)
            out = out + share * ((torch.nn.functional.silu(gate) * up) @ self.experts.down_proj[number])
        return out.reshape(shape)


class TorchLayer(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.norm, self.mix = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.after, self.mlp = torch.nn.LayerNorm(WIDTH), TorchDense() if dense else TorchRouted()

    def forward(self, x):
        x = x + self.mix(self.norm(x))
        return x + self.mlp(self.after(x))


class TorchModel(torch.nn.Module):
    def __init__(self, dense):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, WIDTH)
        self.layers = torch.nn.ModuleList(TorchLayer(place == dense) for place in range(3))
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def linear(inputs, outputs):
    return paddle.nn.Linear(inputs, outputs, bias_attr=False)


class PaddleDense(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w1, self.w3, self.w2 = linear(WIDTH, HIDDEN), linear(WIDTH, HIDDEN), linear(HIDDEN, WIDTH)

    def forward(self, x):
        return self.w2(paddle.nn.functional.silu(self.w1(x)) * self.w3(x))


class PaddleRouted(paddle.nn.Layer):
    """A list of experts, or a list of each kind of their layers; what no sample chose is not run."""

    def __init__(self, lists):
        super().__init__()
        self.router, self.lists = linear(WIDTH, EXPERTS), lists
        if lists:
            self.gates = paddle.nn.LayerList([linear(WIDTH, HIDDEN) for _ in range(EXPERTS)])
            self.ups = paddle.nn.LayerList([linear(WIDTH, HIDDEN) for _ in range(EXPERTS)])
            self.downs = paddle.nn.LayerList([linear(HIDDEN, WIDTH) for _ in range(EXPERTS)])
        else:
            self.experts = paddle.nn.LayerList([PaddleDense() for _ in range(EXPERTS)])

    def expert(self, number, x):
        if not self.lists:
            return self.experts[number](x)
        gate = paddle.nn.functional.silu(self.gates[number](x))
        return self.downs[number](gate * self.ups[number](x))

    def forward(self, x):
        shape, x = x.shape, x.reshape([-1, WIDTH])
        weights, chosen = paddle.topk(paddle.nn.functional.softmax(self.router(x), -1), TOP, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = paddle.zeros_like(x)
        for number in range(EXPERTS):
            share = ((chosen == number).astype("float32") * weights).sum(-1, keepdim=True)
            if float(share.sum()) > 0:
                out = out + share * self.expert(number, x)
        return out.reshape(shape)


class PaddleLayer(paddle.nn.Layer):
    def __init__(self, dense, lists):
        super().__init__()
        self.norm, self.mix = paddle.nn.LayerNorm(WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.after, self.mlp = paddle.nn.LayerNorm(WIDTH), PaddleDense() if dense else PaddleRouted(lists)

    def forward(self, x):
        x = x + self.mix(self.norm(x))
        return x + self.mlp(self.after(x))


class PaddleModel(paddle.nn.Layer):
    def __init__(self, dense, lists):
        super().__init__()
        self.embed = paddle.nn.Embedding(WORDS, WIDTH)
        self.layers = paddle.nn.LayerList([PaddleLayer(place == dense, lists) for place in range(3)])
        self.norm, self.head = paddle.nn.LayerNorm(WIDTH), linear(WIDTH, WORDS)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


@pytest.mark.parametrize("dense", [0, 1, None])
@pytest.mark.parametrize("lists", [True, False], ids=["lists of layers", "a list of experts"])
def test_experts_go_where_they_belong(lists, dense):
    torch.manual_seed(0)
    report = pf.align(TorchModel(dense), PaddleModel(dense, lists), IDS)
    assert report.ok, report


def test_an_expert_that_no_sample_chose_has_no_gradient_on_either_side():
    torch.manual_seed(0)
    report = pf.align(TorchModel(0), PaddleModel(0, lists=False), IDS[:, :1])
    assert report.ok, report
