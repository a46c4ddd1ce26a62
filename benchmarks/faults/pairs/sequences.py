"""An LSTM tagger, the frameworks' own transformer encoder, and a network on sets of points."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch
from examples.pairs.pair import Pair, features, pair, token_ids
from paddle.nn import functional as paddle_functional
from torch import nn
from torch.nn import functional as torch_functional

VOCABULARY, EMBEDDED, HIDDEN, TAGS = 40, 16, 20, 7
A_TOKEN = int(np.random.default_rng(0).integers(0, VOCABULARY, (6, 6))[2, 2])  # one of the first sentences
WIDTH = 32


class TorchTagger(nn.Module):
    """Every token is seen together with the mean of its sentence."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, EMBEDDED)
        self.lstm = nn.LSTM(EMBEDDED, HIDDEN, 1, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * HIDDEN)
        self.fc = nn.Linear(2 * HIDDEN, TAGS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.lstm(self.embed(x))[0]
        return torch.log_softmax(self.fc(self.norm(y + y.mean(1, keepdim=True))), -1)


class PaddleTagger(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed = paddle.nn.Embedding(VOCABULARY, EMBEDDED)
        self.lstm = paddle.nn.LSTM(EMBEDDED, HIDDEN, 1, direction="bidirect")
        self.norm = paddle.nn.LayerNorm(2 * HIDDEN)
        self.fc = paddle.nn.Linear(2 * HIDDEN, TAGS)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.run(self.embed(x))
        return self.tagged(self.fc(self.norm(self.pooled(y))))

    def run(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.lstm(x)[0]

    def pooled(self, y: paddle.Tensor) -> paddle.Tensor:
        return y + y.mean(1, keepdim=True)

    def tagged(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.log_softmax(x, -1)


class TorchEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.fc = nn.Linear(WIDTH, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.encoder(x).mean(1))


class PaddleEncoder(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        layer = paddle.nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.1)
        self.encoder = paddle.nn.TransformerEncoder(layer, 2)
        self.fc = paddle.nn.Linear(WIDTH, 5)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(self.encoder(x).mean(1))


class TorchPoints(nn.Module):
    """Padding points are all zero, and points may occur twice: gradients meet ties and zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(6, 24, bias=False)
        self.fc2 = nn.Linear(24, 24)
        self.weigh = nn.Linear(24, 1)
        self.fc3 = nn.Linear(48, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc2(torch_functional.leaky_relu(self.fc1(x), 0.1))
        empty = (x.abs().sum(-1, keepdim=True) == 0).to(y.dtype)
        share = torch.softmax(self.weigh(y) - 1e4 * empty, 1)
        return self.fc3(torch.cat([y.amax(1), (share * y).sum(1)], -1))


class PaddlePoints(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = paddle.nn.Linear(6, 24, bias_attr=False)
        self.fc2 = paddle.nn.Linear(24, 24)
        self.weigh = paddle.nn.Linear(24, 1)
        self.fc3 = paddle.nn.Linear(48, 5)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.fc2(self.bent(self.fc1(x)))
        empty = (x.abs().sum(-1, keepdim=True) == 0).astype(y.dtype)
        share = self.shared(self.weigh(y), empty)
        return self.fc3(paddle.concat([self.highest(y), (share * y).sum(1)], -1))

    def bent(self, x: paddle.Tensor) -> paddle.Tensor:
        """As torch has it, also for the gradient at zero."""
        return paddle.where(x > 0, x, 0.1 * x)

    def shared(self, scores: paddle.Tensor, empty: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.softmax(scores - 1e4 * empty, 1)

    def highest(self, y: paddle.Tensor) -> paddle.Tensor:
        return y.amax(1)


def _points(generator: np.random.Generator) -> Any:
    """Three sets of eight points: the last two are empty, the third and fourth are the same."""
    points = generator.standard_normal((3, 8, 6)).astype(np.float32)
    points[:, 3] = points[:, 2] = 1.5 * points[:, 2]
    points[:, 6:] = 0.0
    return points


# As many sentences as tokens: batch and time can be mistaken for one another.
PAIRS: tuple[Pair, ...] = (
    pair("lstm", TorchTagger, PaddleTagger, token_ids(6, 6, VOCABULARY)),
    pair("encoder", TorchEncoder, PaddleEncoder, features(2, 7, WIDTH)),
    pair("points", TorchPoints, PaddlePoints, _points),
)
