"""What differs and is no fault of the call where it shows, each beside the same thing that is a fault."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from tests.faults.tools import numbers, own, seeded

WORDS = "differs from the reference's and makes no difference: what is done with it is the same"


class TorchAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.keys, self.values = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = x @ self.keys(x).transpose(1, 2) / 3.0
        return torch.softmax(scores + mask[None], -1) @ self.values(x)


class TorchDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.head = TorchAttention(), TorchAttention(), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.triu(torch.full((6, 6), -math.inf), 1)
        return self.head(self.second(self.first(x, mask), mask))


class Attention(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.keys, self.values = pnn.Linear(8, 8), pnn.Linear(8, 8)

    def forward(self, x: Any, mask: Any) -> Any:
        scores = x @ self.keys(x).transpose([0, 2, 1]) / 3.0
        return pnn.functional.softmax(scores + mask.unsqueeze(0), -1) @ self.values(x)


class Decoder(pnn.Layer):
    def __init__(self, masked: float, diagonal: int = 1) -> None:
        super().__init__()
        self.first, self.second, self.head = Attention(), Attention(), pnn.Linear(8, 4)
        self.masked, self.diagonal = masked, diagonal

    def forward(self, x: Any) -> Any:
        mask = paddle.triu(paddle.full([6, 6], self.masked), self.diagonal)
        return self.head(self.second(self.first(x, mask), mask))


@pytest.mark.parametrize("masked", [-1e9, -1e4, float(np.finfo(np.float32).min)])
def test_another_spelling_of_masked_is_worth_a_note_only(masked: float) -> None:
    report = parfocal.align(seeded(TorchDecoder), Decoder(masked), numbers(2, 6, 8))
    assert report.ok
    notes = [finding.message for finding in report.findings if finding.code == "input.spelling"]
    assert notes == [f"input 1 of first {WORDS}", f"input 1 of second {WORDS}"]


@pytest.mark.parametrize(("masked", "diagonal"), [(-3.0, 1), (-1e9, 2)])
def test_a_mask_that_lets_through_what_the_references_does_not_is_a_fault(
    masked: float, diagonal: int
) -> None:
    report = parfocal.align(seeded(TorchDecoder), Decoder(masked, diagonal), numbers(2, 6, 8))
    first = own(report)[0]
    assert first.port is not None
    assert (first.port.path, first.what) == ("", "input 1 of first, made by the model's own code")
    assert not [finding for finding in report.findings if finding.code == "input.spelling"]


class TorchEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x, torch.triu(torch.full((6, 6), -math.inf), 1)))


class Encoder(pnn.Layer):
    def __init__(self, masked: Any) -> None:
        super().__init__()
        self.encoder = pnn.TransformerEncoder(pnn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)
        self.head, self.masked = pnn.Linear(8, 3), masked

    def forward(self, x: Any) -> Any:
        return self.head(self.encoder(x, self.masked()))


def test_a_mask_of_booleans_is_another_spelling_too() -> None:
    port = Encoder(lambda: paddle.tril(paddle.ones([6, 6], dtype="bool")))
    assert parfocal.align(seeded(TorchEncoder), port, numbers(4, 6, 8)).ok
    port = Encoder(lambda: paddle.tril(paddle.ones([6, 6], dtype="bool"), 1))
    assert not parfocal.align(seeded(TorchEncoder), port, numbers(4, 6, 8)).ok


class TorchTied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(12, 8), nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.mix(self.embed(ids)) @ self.embed.weight.T


class Tied(pnn.Layer):
    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.embed, self.mix, self.factor = pnn.Embedding(12, 8), pnn.Linear(8, 8), factor

    def forward(self, ids: Any) -> Any:
        return paddle.matmul(self.mix(self.embed(ids)) * self.factor, self.embed.weight, transpose_y=True)


def _with_wrong_rows(factor: float) -> tuple[nn.Module, pnn.Layer]:
    reference, port = seeded(TorchTied), Tied(factor)
    parfocal.transfer(reference, port)
    port.embed.weight.set_value(paddle.to_tensor(np.roll(port.embed.weight.numpy(), 1, 0)))
    return reference, port


IDS = np.random.default_rng(0).integers(0, 12, (3, 5))


def test_code_that_uses_a_weight_that_is_already_named_is_not_named_too() -> None:
    (divergence,) = own(parfocal.align(*_with_wrong_rows(1.0), IDS, transfer=False))
    assert divergence.phase == "weights"
    assert divergence.port is not None
    assert divergence.port.path == "embed.weight"


def test_code_that_is_wrong_with_the_right_weight_too_is_named() -> None:
    weights, code = own(parfocal.align(*_with_wrong_rows(1.5), IDS, transfer=False))
    assert weights.phase == "weights"
    assert code.port is not None
    assert (code.phase, code.port.path) == ("forward", "")
