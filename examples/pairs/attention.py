"""Transformers: the frameworks' own encoder and decoder, and one attention in two spellings."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch
from torch import nn

from examples.pairs.pair import Pair, features, pair

WIDTH, HEADS, INNER, LAYERS = 48, 4, 96, 3


class TorchEncoder(nn.Module):
    def __init__(self, norm_first: bool = False, activation: str = "relu") -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, INNER, dropout=0.1, activation=activation, batch_first=True, norm_first=norm_first
        )
        self.encoder = nn.TransformerEncoder(
            layer, LAYERS, norm=nn.LayerNorm(WIDTH) if norm_first else None, enable_nested_tensor=False
        )
        self.head = nn.Linear(WIDTH, 7)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x).mean(1))


class PaddleEncoder(paddle.nn.Layer):
    def __init__(self, norm_first: bool = False, activation: str = "relu") -> None:
        super().__init__()
        layer = paddle.nn.TransformerEncoderLayer(
            WIDTH, HEADS, INNER, dropout=0.1, activation=activation, normalize_before=norm_first
        )
        norm = paddle.nn.LayerNorm(WIDTH) if norm_first else None
        self.transformer = paddle.nn.TransformerEncoder(layer, LAYERS, norm)
        self.classifier = paddle.nn.Linear(WIDTH, 7)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.classifier(self.transformer(x).mean(1))


class TorchDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, dropout=0.1, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)

    def forward(self, target: torch.Tensor, memory: torch.Tensor) -> torch.Tensor:
        length = target.shape[1]
        mask = torch.triu(torch.full((length, length), float("-inf"), dtype=target.dtype), 1)
        return self.decoder(target, memory, tgt_mask=mask)


class PaddleDecoder(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        layer = paddle.nn.TransformerDecoderLayer(WIDTH, HEADS, INNER, dropout=0.1)
        self.decoder = paddle.nn.TransformerDecoder(layer, 2)

    def forward(self, target: paddle.Tensor, memory: paddle.Tensor) -> paddle.Tensor:
        length = target.shape[1]
        mask = paddle.triu(paddle.full([length, length], float("-inf"), dtype=target.dtype), 1)
        return self.decoder(target, memory, tgt_mask=mask)


def _target_and_memory(generator: np.random.Generator) -> Any:
    shapes = {"target": (2, 9, WIDTH), "memory": (2, 12, WIDTH)}
    return {name: generator.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


class TorchFused(nn.Module):
    """One projection gives queries, keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        qkv = self.qkv(self.norm(x)).reshape(count, length, 3, HEADS, width // HEADS).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        weights = (query @ key.transpose(-2, -1) * (width // HEADS) ** -0.5).softmax(-1)
        return x + self.proj((weights @ value).transpose(1, 2).reshape(count, length, width))


class PaddleSplit(paddle.nn.Layer):
    """Three projections, one each."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = paddle.nn.LayerNorm(WIDTH)
        self.q = paddle.nn.Linear(WIDTH, WIDTH)
        self.k = paddle.nn.Linear(WIDTH, WIDTH)
        self.v = paddle.nn.Linear(WIDTH, WIDTH)
        self.out = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        count, length, width = x.shape
        normal = self.norm(x)
        query, key, value = (
            layer(normal).reshape([count, length, HEADS, width // HEADS]).transpose([0, 2, 1, 3])
            for layer in (self.q, self.k, self.v)
        )
        scores = paddle.matmul(query, key, transpose_y=True) * (width // HEADS) ** -0.5
        mixed = paddle.matmul(paddle.nn.functional.softmax(scores, -1), value)
        return x + self.out(mixed.transpose([0, 2, 1, 3]).reshape([count, length, width]))


PAIRS: tuple[Pair, ...] = (
    pair(
        "transformer_encoder", TorchEncoder, PaddleEncoder, features(2, 10, WIDTH), "transformer", "library"
    ),
    pair(
        "transformer_encoder_prenorm",
        lambda: TorchEncoder(True, "gelu"),
        lambda: PaddleEncoder(True, "gelu"),
        features(2, 10, WIDTH),
        "transformer",
        "library",
    ),
    pair("transformer_decoder", TorchDecoder, PaddleDecoder, _target_and_memory, "transformer", "library"),
    pair(
        "fused_qkv",
        lambda: nn.Sequential(TorchFused(), TorchFused()),
        lambda: paddle.nn.Sequential(PaddleSplit(), PaddleSplit()),
        features(2, 10, WIDTH),
        "transformer",
        "fused",
    ),
)
