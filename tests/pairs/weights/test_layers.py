"""Every layer of the frameworks that has weights, torch to paddle and back, without a map."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle.nn.utils import spectral_norm as paddle_spectral
from paddle.nn.utils import weight_norm as paddle_weight
from torch.nn.utils import parametrizations

from parfocal.weights.transfer import transfer
from tests.pairs.weights.tools import gap, randomise, run

T, P = torch.nn, paddle.nn
PROJECTED = pytest.mark.filterwarnings(
    "ignore:LSTM with projections is not supported with oneDNN:UserWarning"
)
PACKED = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")


IMAGE, SEQUENCE, ROWS = (2, 4, 9, 9), (3, 5, 6), (5, 6)
CASES: dict[str, tuple[Any, Any, tuple[tuple[int, ...], ...]]] = {
    "linear": (lambda: T.Linear(6, 6), lambda: P.Linear(6, 6), (ROWS,)),
    "linear without bias": (
        lambda: T.Linear(6, 4, bias=False),
        lambda: P.Linear(6, 4, bias_attr=False),
        (ROWS,),
    ),
    "compat linear": (lambda: T.Linear(6, 6), lambda: paddle.compat.nn.Linear(6, 6), (ROWS,)),
    "conv1d": (lambda: T.Conv1d(5, 7, 3), lambda: P.Conv1D(5, 7, 3), (SEQUENCE,)),
    "conv2d grouped": (lambda: T.Conv2d(4, 6, 3, groups=2), lambda: P.Conv2D(4, 6, 3, groups=2), (IMAGE,)),
    "conv3d": (lambda: T.Conv3d(2, 3, 2), lambda: P.Conv3D(2, 3, 2), ((1, 2, 4, 4, 4),)),
    "transposed 1d": (lambda: T.ConvTranspose1d(5, 5, 3), lambda: P.Conv1DTranspose(5, 5, 3), (SEQUENCE,)),
    "transposed 2d": (
        lambda: T.ConvTranspose2d(4, 6, 3, groups=2),
        lambda: P.Conv2DTranspose(4, 6, 3, groups=2),
        (IMAGE,),
    ),
    "transposed 3d": (
        lambda: T.ConvTranspose3d(2, 2, 2),
        lambda: P.Conv3DTranspose(2, 2, 2),
        ((1, 2, 4, 4, 4),),
    ),
    "batch norm": (lambda: T.BatchNorm2d(4), lambda: P.BatchNorm2D(4), (IMAGE,)),
    "batch norm 1d": (lambda: T.BatchNorm1d(6), lambda: P.BatchNorm1D(6), (ROWS,)),
    "old batch norm": (lambda: T.BatchNorm2d(4), lambda: P.BatchNorm(4), (IMAGE,)),
    "batch norm without affine": (
        lambda: T.BatchNorm2d(4, affine=False),
        lambda: P.BatchNorm2D(4, weight_attr=False, bias_attr=False),
        (IMAGE,),
    ),
    "instance norm": (lambda: T.InstanceNorm2d(4, affine=True), lambda: P.InstanceNorm2D(4), (IMAGE,)),
    "group norm": (lambda: T.GroupNorm(2, 4), lambda: P.GroupNorm(2, 4), (IMAGE,)),
    "layer norm": (lambda: T.LayerNorm(6), lambda: P.LayerNorm(6), (ROWS,)),
    "layer norm over two axes": (lambda: T.LayerNorm((5, 6)), lambda: P.LayerNorm((5, 6)), (SEQUENCE,)),
    "prelu": (lambda: T.PReLU(4), lambda: P.PReLU(4), (IMAGE,)),
    "bilinear": (lambda: T.Bilinear(6, 6, 4), lambda: P.Bilinear(6, 6, 4), (ROWS, ROWS)),
    "lstm": (lambda: T.LSTM(6, 4, batch_first=True), lambda: P.LSTM(6, 4), (SEQUENCE,)),
    "lstm of three layers, both ways": (
        lambda: T.LSTM(6, 4, 3, batch_first=True, bidirectional=True),
        lambda: P.LSTM(6, 4, 3, direction="bidirect"),
        (SEQUENCE,),
    ),
    "lstm with projection": (
        lambda: T.LSTM(6, 4, proj_size=3, batch_first=True),
        lambda: P.LSTM(6, 4, proj_size=3),
        (SEQUENCE,),
    ),
    "gru of two layers": (lambda: T.GRU(6, 4, 2, batch_first=True), lambda: P.GRU(6, 4, 2), (SEQUENCE,)),
    "gru both ways": (
        lambda: T.GRU(6, 4, 1, batch_first=True, bidirectional=True),
        lambda: P.GRU(6, 4, 1, direction="bidirect"),
        (SEQUENCE,),
    ),
    "rnn of two layers, both ways": (
        lambda: T.RNN(6, 4, 2, batch_first=True, bidirectional=True),
        lambda: P.SimpleRNN(6, 4, 2, direction="bidirect"),
        (SEQUENCE,),
    ),
    "lstm against a wrapped cell": (
        lambda: T.LSTM(6, 4, batch_first=True),
        lambda: P.RNN(P.LSTMCell(6, 4)),
        (SEQUENCE,),
    ),
    "gru against two wrapped cells": (
        lambda: T.GRU(6, 4, batch_first=True, bidirectional=True),
        lambda: P.BiRNN(P.GRUCell(6, 4), P.GRUCell(6, 4)),
        (SEQUENCE,),
    ),
    "lstm cell": (lambda: T.LSTMCell(6, 4), lambda: P.LSTMCell(6, 4), (ROWS,)),
    "gru cell": (lambda: T.GRUCell(6, 4), lambda: P.GRUCell(6, 4), (ROWS,)),
    "rnn cell": (lambda: T.RNNCell(6, 4), lambda: P.SimpleRNNCell(6, 4), (ROWS,)),
    "attention": (
        lambda: T.MultiheadAttention(6, 2, batch_first=True),
        lambda: P.MultiHeadAttention(6, 2),
        (SEQUENCE,) * 3,
    ),
    "attention without bias": (
        lambda: T.MultiheadAttention(6, 2, bias=False, batch_first=True),
        lambda: P.MultiHeadAttention(6, 2, bias_attr=False),
        (SEQUENCE,) * 3,
    ),
    "attention with other widths": (
        lambda: T.MultiheadAttention(6, 2, kdim=4, vdim=8, batch_first=True),
        lambda: P.MultiHeadAttention(6, 2, kdim=4, vdim=8),
        (SEQUENCE, (3, 7, 4), (3, 7, 8)),
    ),
    "compat attention": (
        lambda: T.MultiheadAttention(6, 2, batch_first=True),
        lambda: paddle.compat.nn.MultiheadAttention(6, 2, batch_first=True),
        (SEQUENCE,) * 3,
    ),
    "encoder": (
        lambda: T.TransformerEncoder(
            T.TransformerEncoderLayer(6, 2, 12, batch_first=True), 2, T.LayerNorm(6)
        ),
        lambda: P.TransformerEncoder(P.TransformerEncoderLayer(6, 2, 12), 2, P.LayerNorm(6)),
        (SEQUENCE,),
    ),
    "decoder": (
        lambda: T.TransformerDecoder(T.TransformerDecoderLayer(6, 2, 12, batch_first=True), 2),
        lambda: P.TransformerDecoder(P.TransformerDecoderLayer(6, 2, 12), 2),
        (SEQUENCE, (3, 7, 6)),
    ),
    "transformer": (
        lambda: T.Transformer(6, 2, 1, 2, 12, batch_first=True),
        lambda: P.Transformer(6, 2, 1, 2, 12),
        ((3, 7, 6), SEQUENCE),
    ),
    "weight norm": (
        lambda: parametrizations.weight_norm(T.Conv2d(4, 6, 3)),
        lambda: paddle_weight(P.Conv2D(4, 6, 3)),
        (IMAGE,),
    ),
    "weight norm of a linear": (
        lambda: parametrizations.weight_norm(T.Linear(6, 4)),
        lambda: paddle_weight(P.Linear(6, 4), dim=1),
        (ROWS,),
    ),
    "weight norm of a transposed convolution": (
        lambda: parametrizations.weight_norm(T.ConvTranspose1d(5, 4, 3), dim=1),
        lambda: paddle_weight(P.Conv1DTranspose(5, 4, 3), dim=1),
        (SEQUENCE,),
    ),
    "weight norm as a whole": (
        lambda: parametrizations.weight_norm(T.Conv1d(5, 4, 3), dim=None),
        lambda: paddle_weight(P.Conv1D(5, 4, 3), dim=None),
        (SEQUENCE,),
    ),
    "spectral norm": (
        lambda: parametrizations.spectral_norm(T.Conv2d(4, 6, 3)),
        lambda: paddle_spectral(P.Conv2D(4, 6, 3)),
        (IMAGE,),
    ),
    "spectral norm of a linear": (
        lambda: parametrizations.spectral_norm(T.Linear(6, 4)),
        lambda: paddle_spectral(P.Linear(6, 4)),
        (ROWS,),
    ),
    "older spectral norm": (
        lambda: torch.nn.utils.spectral_norm(T.ConvTranspose2d(4, 6, 3)),
        lambda: paddle_spectral(P.Conv2DTranspose(4, 6, 3)),
        (IMAGE,),
    ),
    "1x1 convolution against a linear": (
        lambda: T.Conv1d(5, 4, 1),
        lambda: Turned(P.Linear(5, 4)),
        (SEQUENCE,),
    ),
    "convolutions of other rank": (
        lambda: T.Conv1d(5, 4, 3),
        lambda: Flat(P.Conv2D(5, 4, (1, 3))),
        (SEQUENCE,),
    ),
}


class Turned(P.Layer):
    """A linear layer over the channels of [batch, channels, length]."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x.transpose([0, 2, 1])).transpose([0, 2, 1])


class Flat(P.Layer):
    """A 2-D layer over sequences."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return self.inner(x.unsqueeze(2)).squeeze(2)


def arrays(shapes: tuple[tuple[int, ...], ...]) -> tuple[np.ndarray, ...]:
    generator = np.random.default_rng(1)
    return tuple(generator.standard_normal(shape).astype("float32") for shape in shapes)


@PACKED
@PROJECTED
@pytest.mark.parametrize("name", CASES)
def test_layer_both_ways(name: str) -> None:
    make_torch, make_paddle, shapes = CASES[name]
    inputs = arrays(shapes)
    reference, port = randomise(make_torch(), 1), randomise(make_paddle(), 2)
    plan = transfer(reference, port)
    assert plan.complete
    assert gap(run(reference, *inputs), run(port, *inputs)) < 1e-5
    back = randomise(make_torch(), 3)
    assert transfer(port, back, inputs).verified is True
    for name, value in reference.state_dict().items():
        if "num_batches" not in name:
            assert torch.equal(value, back.state_dict()[name]), name
