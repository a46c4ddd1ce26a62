"""Kinds of layers and of code that the bundled models have too little of: one small pair each.

A row gives the torch modules, the paddle layers and the shape of the input. Where a framework has
no layer for it, ``Code`` stands for a line of a model's own forward.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import paddle
import torch
from examples.pairs.pair import Pair, features, images, pair, token_ids
from paddle import nn as pn
from paddle.nn import functional as pf
from torch import nn as tn
from torch.nn import functional as tf

from benchmarks.sweep.kind_blocks import (
    Function,
    LinearSqueeze,
    PaddleBag,
    PaddleCode,
    PaddleHeads,
    PaddleRecurrent,
    PaddleRms,
    PaddleSqueeze,
    TorchBag,
    TorchCode,
    TorchHeads,
    TorchRecurrent,
    TorchRms,
    TorchSqueeze,
)

Make = Callable[[], Sequence[Any]]


CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "pointwise": {"kernel_size": 1},
    "depthwise": {"kernel_size": 7, "padding": 3, "groups": 48},
    "grouped": {"kernel_size": 3, "padding": 1, "groups": 6, "stride": 2},
    "dilated": {"kernel_size": 3, "padding": 4, "dilation": 4},
    "wide": {"kernel_size": 11, "padding": 5},
}
ACTIVATIONS = (
    ("SiLU", "Silu"), ("Sigmoid", "Sigmoid"), ("Hardswish", "Hardswish"), ("Hardsigmoid", "Hardsigmoid"),
    ("GELU", "GELU"), ("Tanh", "Tanh"), ("Softplus", "Softplus"), ("Mish", "Mish"), ("ELU", "ELU"),
    ("SELU", "SELU"), ("Softsign", "Softsign"), ("LogSigmoid", "LogSigmoid"), ("LeakyReLU", "LeakyReLU"),
    ("ReLU6", "ReLU6"), ("Tanhshrink", "Tanhshrink"),
)  # fmt: skip
ENLARGEMENTS = (("bilinear", False), ("bilinear", True), ("bicubic", False), ("nearest", None))


def _sequence(kind: Any, make: Make) -> Callable[[], Any]:
    return lambda: kind.Sequential(*make())


def _row(name: str, ours: Make, theirs: Make, draw: Any, *, gain: float = 1.0) -> Pair:
    return pair(f"kind_{name}", _sequence(tn, ours), _sequence(pn, theirs), draw, "kind", gain=gain)


def _twice(kind: Any, settings: dict[str, Any]) -> list[Any]:
    return [kind(48, 48, **settings), kind(48, 48, **settings)]


def _convolutions() -> Sequence[Pair]:
    rows = []
    for name, settings in CONVOLUTIONS.items():
        ours, theirs = (partial(_twice, kind, settings) for kind in (tn.Conv2d, pn.Conv2D))
        rows.append(_row(f"convolution_{name}", ours, theirs, images(2, 20, 48)))
    return rows


def _chain(layers: Any, linear: Any, index: int) -> list[Any]:
    return [each for names in ACTIVATIONS for each in (linear(40, 40), getattr(layers, names[index])())]


def _enlarged(kind: Any, convolution: Any) -> list[Any]:
    """Each way to enlarge, with a convolution that halves again between them."""
    found: list[Any] = []
    for mode, corners in ENLARGEMENTS:
        extra = {} if corners is None else {"align_corners": corners}
        found += [kind.Upsample(scale_factor=2, mode=mode, **extra), convolution(6, 6, 3, 2, 1)]
    return found


def _codes(one: type, linear: Any, functions: Sequence[Function]) -> list[Any]:
    return [one(function, linear(32, 32)) for function in functions]


TORCH_CODE: Sequence[Function] = (
    lambda x: x.softmax(-1), lambda x: x.log_softmax(-1), lambda x: tf.normalize(x, dim=-1),
    lambda x: x - x.logsumexp(-1, keepdim=True), lambda x: x.cumsum(1) / 8.0,
    lambda x: torch.einsum("btc,bsc->bts", x, x) @ x / 32.0, lambda x: x / (x.std(-1, keepdim=True) + 0.1),
    lambda x: x.sin() + x.cos() * x, lambda x: x.exp() / (1 + x.exp()), lambda x: (x * x + 1e-3).sqrt(),
    lambda x: x.flip(1) * x.roll(3, 1), lambda x: tf.glu(torch.cat([x, x.square()], -1)),
)  # fmt: skip
PADDLE_CODE: Sequence[Function] = (
    lambda x: pf.softmax(x, -1), lambda x: pf.log_softmax(x, -1), lambda x: pf.normalize(x, axis=-1),
    lambda x: x - paddle.logsumexp(x, -1, keepdim=True), lambda x: x.cumsum(1) / 8.0,
    lambda x: paddle.matmul(paddle.matmul(x, x, transpose_y=True), x) / 32.0,
    lambda x: x / (x.std(-1, keepdim=True) + 0.1),
    lambda x: x.sin() + x.cos() * x, lambda x: x.exp() / (1 + x.exp()), lambda x: (x * x + 1e-3).sqrt(),
    lambda x: x.flip(1) * x.roll(3, 1), lambda x: pf.glu(paddle.concat([x, x.square()], -1)),
)  # fmt: skip


def _shifted(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Values around 1: sums do not cancel."""
    return lambda generator: (generator.standard_normal(shape) + 1.0).astype(np.float32)


PAIRS: dict[str, Pair] = {
    each.name: each
    for each in (
        *_convolutions(),
        _row(
            "pointwise_on_pooled_maps",
            lambda: [
                tn.AdaptiveAvgPool2d(1),
                tn.Conv2d(512, 32, 1),
                tn.SiLU(),
                tn.Conv2d(32, 512, 1),
                tn.Sigmoid(),
            ],
            lambda: [
                pn.AdaptiveAvgPool2D(1),
                pn.Conv2D(512, 32, 1),
                pn.Silu(),
                pn.Conv2D(32, 512, 1),
                pn.Sigmoid(),
            ],
            images(2, 14, 512),
        ),
        _row(
            "convolution_1d_and_3d",
            lambda: [
                tn.Conv1d(16, 24, 5, padding=2),
                TorchCode(lambda x: x.unflatten(2, (4, 4, 4))),
                tn.Conv3d(24, 8, 3, padding=1),
            ],
            lambda: [
                pn.Conv1D(16, 24, 5, padding=2),
                PaddleCode(lambda x: x.reshape([*x.shape[:2], 4, 4, 4])),
                pn.Conv3D(24, 8, 3, padding=1),
            ],
            features(2, 16, 64),
        ),
        _row(
            "transposed_convolution",
            lambda: [
                tn.ConvTranspose2d(32, 16, 4, 2, 1),
                tn.ReLU(),
                tn.ConvTranspose2d(16, 8, 3, 1, 1, groups=2),
            ],
            lambda: [
                pn.Conv2DTranspose(32, 16, 4, 2, 1),
                pn.ReLU(),
                pn.Conv2DTranspose(16, 8, 3, 1, 1, groups=2),
            ],
            images(2, 12, 32),
        ),
        _row(
            "activations",
            lambda: _chain(tn, tn.Linear, 0),
            lambda: _chain(pn, pn.Linear, 1),
            features(16, 40),
            gain=2.0,
        ),
        _row(
            "squeeze_swish",
            lambda: [TorchSqueeze(32, 8, tn.SiLU(), tn.Sigmoid())],
            lambda: [PaddleSqueeze(32, 8, pf.swish, pf.sigmoid)],
            _shifted(2, 32, 112, 112),
        ),
        _row(
            "squeeze_hard",
            lambda: [TorchSqueeze(64, 16, tn.ReLU(), tn.Hardsigmoid())],
            lambda: [PaddleSqueeze(64, 16, pf.relu, lambda x: pf.hardsigmoid(x))],
            _shifted(2, 64, 28, 28),
        ),
        _row(
            "squeeze_linear",
            lambda: [TorchSqueeze(48, 12, tn.ReLU(), tn.Sigmoid())],
            lambda: [LinearSqueeze(48, 12)],
            _shifted(2, 48, 56, 56),
        ),
        _row(
            "means_of_large_maps",
            lambda: [TorchCode(lambda x: x.mean((2, 3))), tn.Linear(8, 8), tn.Tanh()],
            lambda: [PaddleCode(lambda x: x.mean([2, 3])), pn.Linear(8, 8), pn.Tanh()],
            _shifted(2, 8, 224, 224),
        ),
        _row(
            "variance_of_large_maps",
            lambda: [TorchCode(lambda x: x.var((2, 3), unbiased=False)), tn.Linear(8, 8)],
            lambda: [PaddleCode(lambda x: x.var([2, 3], unbiased=False)), pn.Linear(8, 8)],
            _shifted(2, 8, 112, 112),
        ),
        _row(
            "pooling",
            lambda: [
                tn.AvgPool2d(7, 1, 3),
                tn.Conv2d(8, 8, 1),
                tn.MaxPool2d(3, 2, 1),
                tn.Conv2d(8, 8, 1),
                tn.AdaptiveAvgPool2d(5),
            ],
            lambda: [
                pn.AvgPool2D(7, 1, 3, exclusive=False),
                pn.Conv2D(8, 8, 1),
                pn.MaxPool2D(3, 2, 1),
                pn.Conv2D(8, 8, 1),
                pn.AdaptiveAvgPool2D(5),
            ],
            images(2, 40, 8),
        ),
        _row(
            "group_norm",
            lambda: [tn.Conv2d(3, 32, 3), tn.GroupNorm(8, 32), tn.Conv2d(32, 32, 3), tn.GroupNorm(1, 32)],
            lambda: [pn.Conv2D(3, 32, 3), pn.GroupNorm(8, 32), pn.Conv2D(32, 32, 3), pn.GroupNorm(1, 32)],
            images(2, 48),
        ),
        _row(
            "instance_norm",
            lambda: [tn.Conv2d(3, 16, 3), tn.InstanceNorm2d(16, affine=True), tn.ReLU(), tn.Conv2d(16, 8, 3)],
            lambda: [pn.Conv2D(3, 16, 3), pn.InstanceNorm2D(16), pn.ReLU(), pn.Conv2D(16, 8, 3)],
            images(2, 48),
        ),
        _row(
            "layer_norm",
            lambda: [tn.LayerNorm(768), tn.Linear(768, 768), tn.LayerNorm(768)],
            lambda: [pn.LayerNorm(768), pn.Linear(768, 768), pn.LayerNorm(768)],
            features(2, 16, 768),
        ),
        _row(
            "batch_norm_of_large_maps",
            lambda: [tn.Conv2d(3, 8, 3), tn.BatchNorm2d(8), tn.SiLU(), tn.Conv2d(8, 8, 3), tn.BatchNorm2d(8)],
            lambda: [pn.Conv2D(3, 8, 3), pn.BatchNorm2D(8), pn.Silu(), pn.Conv2D(8, 8, 3), pn.BatchNorm2D(8)],
            images(2, 112),
        ),
        _row(
            "root_mean_square_norm",
            lambda: [tn.Linear(512, 512), TorchRms(512), tn.Linear(512, 64)],
            lambda: [pn.Linear(512, 512), PaddleRms(512), pn.Linear(512, 64)],
            features(2, 16, 512),
        ),
        _row(
            "attention",
            lambda: [TorchHeads(64, 4, causal=False)],
            lambda: [PaddleHeads(64, 4, causal=False)],
            features(2, 196, 64),
        ),
        _row(
            "causal_attention",
            lambda: [TorchHeads(64, 4, causal=True)],
            lambda: [PaddleHeads(64, 4, causal=True)],
            features(2, 128, 64),
            gain=2.0,
        ),
        _row(
            "enlarging",
            lambda: [tn.Conv2d(3, 6, 1), *_enlarged(tn, tn.Conv2d)],
            lambda: [pn.Conv2D(3, 6, 1), *_enlarged(pn, pn.Conv2D)],
            images(2, 24),
        ),
        _row(
            "recurrent",
            lambda: [
                TorchRecurrent("LSTM"),
                tn.Linear(32, 24),
                TorchRecurrent("GRU"),
                tn.Linear(32, 24),
                TorchRecurrent("RNN"),
            ],
            lambda: [
                PaddleRecurrent("LSTM"),
                pn.Linear(32, 24),
                PaddleRecurrent("GRU"),
                pn.Linear(32, 24),
                PaddleRecurrent("SimpleRNN"),
            ],
            features(2, 40, 24),
        ),
        _row(
            "large_linears",
            lambda: [tn.Linear(2048, 512), tn.GELU(), tn.Linear(512, 2048)],
            lambda: [pn.Linear(2048, 512), pn.GELU(), pn.Linear(512, 2048)],
            features(2, 8, 2048),
        ),
        _row("embedding", lambda: [TorchBag()], lambda: [PaddleBag()], token_ids(2, 600, 8)),
        _row(
            "code",
            lambda: _codes(TorchCode, tn.Linear, TORCH_CODE),
            lambda: _codes(PaddleCode, pn.Linear, PADDLE_CODE),
            features(2, 24, 32),
        ),
    )
}
