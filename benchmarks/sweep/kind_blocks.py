"""The blocks of the small pairs in ``kinds``, each in both frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
import torch
from paddle import nn as pn
from paddle.nn import functional as pf
from torch import nn as tn
from torch.nn import functional as tf

Function = Callable[..., Any]


class TorchCode(tn.Module):
    """A model whose forward does one thing to what its layer gives."""

    def __init__(self, function: Function, layer: tn.Module | None = None) -> None:
        super().__init__()
        self.function = function
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x if self.layer is None else self.layer(x))


class PaddleCode(pn.Layer):
    def __init__(self, function: Function, layer: pn.Layer | None = None) -> None:
        super().__init__()
        self.function = function
        self.layer = layer

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.function(x if self.layer is None else self.layer(x))


class Wrapped(pn.Layer):
    """A convolution with its activation in one layer, as PaddleClas writes it."""

    def __init__(self, first: int, second: int, act: Function) -> None:
        super().__init__()
        self.conv = pn.Conv2D(first, second, 1)
        self.act = act

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.act(self.conv(x))


class TorchSqueeze(tn.Module):
    def __init__(self, width: int, inner: int, act: tn.Module, gate: tn.Module) -> None:
        super().__init__()
        self.reduce, self.act = tn.Conv2d(width, inner, 1), act
        self.expand, self.gate = tn.Conv2d(inner, width, 1), gate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.gate(self.expand(self.act(self.reduce(x.mean((2, 3), keepdim=True)))))


class PaddleSqueeze(pn.Layer):
    def __init__(self, width: int, inner: int, act: Function, gate: Function) -> None:
        super().__init__()
        self.pool = pn.AdaptiveAvgPool2D(1)
        self.first, self.second = Wrapped(width, inner, act), Wrapped(inner, width, gate)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x * self.second(self.first(self.pool(x)))


class LinearSqueeze(pn.Layer):
    """The same with Linears for the convolutions."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = pn.Linear(width, inner), pn.Linear(inner, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        gate = pf.sigmoid(self.fc2(pf.relu(self.fc1(x.mean([2, 3])))))
        return x * gate.unsqueeze(-1).unsqueeze(-1)


class TorchRms(tn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = tn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class PaddleRms(pn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = self.create_parameter([width])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x / paddle.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class TorchHeads(tn.Module):
    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v = (tn.Linear(width, width) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            each(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (self.q, self.k, self.v)
        )
        mixed = tf.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return mixed.transpose(1, 2).flatten(2)


class PaddleHeads(pn.Layer):
    """Attention by einsum."""

    def __init__(self, width: int, heads: int, *, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v = (pn.Linear(width, width) for _ in range(3))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        count, length, width = x.shape
        query, key, value = (
            each(x).reshape([count, length, self.heads, -1]) for each in (self.q, self.k, self.v)
        )
        scores = paddle.einsum("bqhd,bkhd->bhqk", query, key) / (width // self.heads) ** 0.5
        if self.causal:
            scores = scores + paddle.triu(paddle.full([length, length], -1e9, x.dtype), 1)
        mixed = paddle.einsum("bhqk,bkhd->bqhd", pf.softmax(scores, -1), value)
        return mixed.reshape([count, length, width])


class TorchRecurrent(tn.Module):
    def __init__(self, kind: str, **settings: Any) -> None:
        super().__init__()
        self.rnn = getattr(tn, kind)(24, 32, batch_first=True, **settings)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.rnn(x)[0]


class PaddleRecurrent(pn.Layer):
    def __init__(self, kind: str, **settings: Any) -> None:
        super().__init__()
        self.rnn = getattr(pn, kind)(24, 32, **settings)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.rnn(x)[0]


class TorchBag(tn.Module):
    """Every token of a small vocabulary is used many times: its gradient is a long sum."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = tn.Embedding(8, 16), tn.Linear(16, 6)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.table(ids).sum(1))


class PaddleBag(pn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = pn.Embedding(8, 16), pn.Linear(16, 6)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.head(self.table(ids).sum(1))
