"""Attention that the two sides cut into other modules: projections in one, the norm inside or outside."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, numbers, own, seeded

WIDTH, HEADS = 12, 3


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], HEADS, -1)
        q, k, v = (each(x).view(shape).transpose(1, 2) for each in (self.query, self.key, self.value))
        given = nn.functional.scaled_dot_product_attention(q, k, v)
        return given.transpose(1, 2).contiguous().reshape(x.shape).contiguous()


class Output(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.norm(self.dense(x) + residual)


class Attention(nn.Module):
    """The norm is inside of it, the projection behind the attention in a module of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.output = SelfAttention(), Output()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.output(self.inner(x), x)


class Reference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class Fused(pnn.Layer):
    """One projection for all three."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale, self.qkv, self.proj = scale, pnn.Linear(WIDTH, 3 * WIDTH), pnn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        shape = [batch, length, 3, HEADS, width // HEADS]
        qkv = self.qkv(x).reshape(shape).transpose([2, 0, 3, 1, 4])
        scores = paddle.matmul(qkv[0], qkv[1], transpose_y=True) * self.scale
        given = paddle.matmul(pnn.functional.softmax(scores), qkv[2])
        return self.proj(given.transpose([0, 2, 1, 3]).reshape([batch, length, width]))


class Block(pnn.Layer):
    """The norm is outside of the attention."""

    def __init__(self, attention: pnn.Layer) -> None:
        super().__init__()
        self.attention, self.norm = attention, pnn.LayerNorm(WIDTH)

    def forward(self, x: Any) -> Any:
        return self.norm(x + self.attention(x))


def fused(scale: float = 0.5) -> pnn.Layer:
    return pnn.Sequential(*(Block(Fused(scale)) for _ in range(2)))


def library(heads: int = HEADS) -> pnn.Layer:
    return pnn.Sequential(*(Block(pnn.MultiHeadAttention(WIDTH, heads)) for _ in range(2)))


@pytest.mark.parametrize("port", [fused, library])
def test_another_cut_is_no_difference(port: Any) -> None:
    report = align(seeded(Reference), port(), numbers(2, 5, WIDTH))
    assert report.ok, str(report)


def test_a_mistake_behind_fused_projections_is_named() -> None:
    report = align(seeded(Reference), fused(scale=1.0), numbers(2, 5, WIDTH))
    forward = [each for each in own(report) if each.phase == "forward"]
    assert [each.cause and each.cause.code for each in forward] == ["op.scale"] * 2, str(report)
    notes = [each.message for each in report.findings if "as names say" in each.message]
    assert len(notes) == 1  # of both blocks
    assert " of 0.attention, 1.attention: taken for " in notes[0]


def test_the_heads_of_a_library_s_attention_against_one_written_by_hand() -> None:
    report = align(seeded(Reference), library(heads=2), numbers(2, 5, WIDTH))
    first = own(report)[0]
    assert first.cause is not None, str(report)
    assert first.cause.code == "config.heads"
    assert "num_heads = 3; it is 2 in the port" in first.cause.message
