"""Masks that the two sides say in different words, each beside one that says something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from tests.faults.tools import numbers, own, seeded

KEPT = np.array([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]])
INF = float("inf")

Saying = tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]  # how it is made of what is kept, and used

TORCH: dict[str, Saying] = {
    "ones keep": (lambda keep: keep, lambda scores, mask: scores.masked_fill(mask[:, None] == 0, -INF)),
    "true drops": (lambda keep: keep == 0, lambda scores, mask: scores.masked_fill(mask[:, None], -INF)),
    "added": (lambda keep: (1.0 - keep) * -1e4, lambda scores, mask: scores + mask[:, None]),
}
PADDLE: dict[str, Saying] = {
    "true keeps": (
        lambda keep: keep.astype("bool"),
        lambda scores, mask: paddle.where(mask.unsqueeze(1), scores, paddle.full_like(scores, -INF)),
    ),
    "true drops": (
        lambda keep: keep == 0,
        lambda scores, mask: paddle.where(mask.unsqueeze(1), paddle.full_like(scores, -INF), scores),
    ),
    "floats keep": (
        lambda keep: keep.astype("float32"),
        lambda scores, mask: scores + (1.0 - mask.unsqueeze(1)) * -1e9,
    ),
    "added": (
        lambda keep: ((1.0 - keep.astype("float32")) * -1e9).unsqueeze(1),
        lambda scores, mask: scores + mask,
    ),
    "infinities added": (
        lambda keep: paddle.where(keep == 0, paddle.full([], -INF), paddle.zeros([])),
        lambda scores, mask: scores + mask.unsqueeze(1),
    ),
}


class TorchAttention(nn.Module):
    def __init__(self, use: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.keys, self.values, self.use = nn.Linear(8, 8), nn.Linear(8, 8), use

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.use(x @ self.keys(x).transpose(1, 2), mask)
        return torch.softmax(scores, -1) @ self.values(x)


class TorchEncoder(nn.Module):
    def __init__(self, use: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(TorchAttention(use) for _ in range(2))

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x, mask)
        return x


class TorchPadded(nn.Module):
    def __init__(self, saying: Saying) -> None:
        super().__init__()
        self.say, use = saying
        self.encoder, self.head = TorchEncoder(use), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return self.head(self.encoder(x, self.say(keep)))


class Attention(pnn.Layer):
    def __init__(self, use: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.keys, self.values, self.use = pnn.Linear(8, 8), pnn.Linear(8, 8), use

    def forward(self, x: Any, mask: Any) -> Any:
        scores = self.use(x @ self.keys(x).transpose([0, 2, 1]), mask)
        return pnn.functional.softmax(scores, -1) @ self.values(x)


class Encoder(pnn.Layer):
    def __init__(self, use: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.layers = pnn.LayerList([Attention(use) for _ in range(2)])

    def forward(self, x: Any, mask: Any) -> Any:
        for layer in self.layers:
            x = x + layer(x, mask)
        return x


class Padded(pnn.Layer):
    def __init__(self, saying: Saying, mistake: Callable[[Any], Any] = lambda keep: keep) -> None:
        super().__init__()
        (self.say, use), self.mistake = saying, mistake
        self.encoder, self.head = Encoder(use), pnn.Linear(8, 4)

    def forward(self, x: Any, keep: Any) -> Any:
        return self.head(self.encoder(x, self.say(self.mistake(keep))))


@pytest.mark.parametrize("port", PADDLE)
@pytest.mark.parametrize("reference", TORCH)
def test_the_same_mask_in_other_words_is_no_difference(reference: str, port: str) -> None:
    inputs = {"x": numbers(3, 6, 8), "keep": KEPT}
    report = parfocal.align(seeded(lambda: TorchPadded(TORCH[reference])), Padded(PADDLE[port]), inputs)
    assert report.ok, str(report)


def test_a_mask_in_other_words_has_another_gradient() -> None:
    reference: Saying = (lambda keep: keep, lambda scores, mask: scores + (1.0 - mask[:, None]) * -1e4)
    port: Saying = (lambda keep: (1.0 - keep) * -1e4, lambda scores, mask: scores + mask.unsqueeze(1))
    inputs = {"x": numbers(3, 6, 8), "keep": KEPT.astype("float32")}
    report = parfocal.align(seeded(lambda: TorchPadded(reference)), Padded(port), inputs)
    assert report.ok, str(report)


MISTAKES: dict[str, Callable[[Any], Any]] = {
    "inverted": lambda keep: 1 - keep,
    "shifted": lambda keep: paddle.roll(keep, 1, 1),
}


INVERTED = {
    "true keeps": ("op.mask", "opposite"),
    "floats keep": ("op.extra", "rsub"),
    "added": ("op.extra", "rsub"),
    "infinities added": ("op.mask", "opposite"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("port", PADDLE)
def test_a_mask_that_says_something_else_is_a_mistake(port: str, mistake: str) -> None:
    inputs = {"x": numbers(3, 6, 8), "keep": KEPT}
    model = Padded(PADDLE[port], MISTAKES[mistake])
    first = own(parfocal.align(seeded(lambda: TorchPadded(TORCH["ones keep"])), model, inputs))[0]
    assert first.phase == "forward"
    if mistake == "shifted":
        # told as another mask, or as the op that makes it one
        assert first.cause is not None
        assert first.cause.code in ("op.mask", "op.extra")
        assert "opposite" not in first.cause.message
        assert "roll" in first.cause.message or "differs at 4 of 18 places" in first.cause.message
    elif port == "true drops":  # found, and not explained
        assert first.cause is None
    else:  # told as the opposite mask, or as the op that makes it one
        assert first.cause is not None
        code, words = INVERTED[port]
        assert first.cause.code == code
        assert words in first.cause.message


class TorchReader(nn.Module):
    """Embeds and makes the mask inside of its encoder."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.encoder = nn.Embedding(12, 8), TorchEncoder(TORCH["ones keep"][1])

    def forward(self, ids: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embed(ids), keep)


class TorchReading(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reader, self.head = TorchReader(), nn.Linear(8, 4)

    def forward(self, ids: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        return self.head(self.reader(ids, keep))


class Reading(pnn.Layer):
    """Embeds and makes the mask outside."""

    def __init__(self, mistake: Callable[[Any], Any] = lambda keep: keep) -> None:
        super().__init__()
        self.say, use = PADDLE["added"]
        self.embed, self.mistake = pnn.Embedding(12, 8), mistake
        self.encoder, self.head = Encoder(use), pnn.Linear(8, 4)

    def forward(self, ids: Any, keep: Any) -> Any:
        return self.head(self.encoder(self.embed(ids), self.say(self.mistake(keep))))


IDS = {"ids": np.random.default_rng(0).integers(0, 12, (3, 6)), "keep": KEPT}


def test_a_mask_that_is_made_outside_instead_of_inside_is_no_difference() -> None:
    report = parfocal.align(seeded(TorchReading), Reading(), IDS, layers={"reader": "encoder"})
    assert report.ok, str(report)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mask_that_is_made_wrongly_outside_is_blamed_on_who_makes_it(mistake: str) -> None:
    report = parfocal.align(
        seeded(TorchReading), Reading(MISTAKES[mistake]), IDS, layers={"reader": "encoder"}
    )
    first = own(report)[0]
    assert first.port is not None
    assert (first.port.path, first.what) == ("", "input 1 of encoder, made by the model's own code")
    if mistake == "shifted":
        assert first.cause is None or "opposite" not in first.cause.message
    else:
        assert first.cause is not None
        assert first.cause.message.startswith("the port applies rsub in test_masks.py")


class TorchBiased(nn.Module):
    """Hands on a bias; the attention adds the mask."""

    def __init__(self) -> None:
        super().__init__()
        self.places, self.first, self.second = nn.Embedding(11, 1), *(TorchAttention(self._add) for _ in "12")
        self.head = nn.Linear(8, 4)

    @staticmethod
    def _add(scores: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return scores + bias + torch.triu(torch.full((6, 6), -INF), 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        apart = torch.arange(6)[:, None] - torch.arange(6)[None] + 5
        bias = self.places(apart).squeeze(-1)
        return self.head(self.second(self.first(x, bias), bias))


class Biased(pnn.Layer):
    """Adds the mask to the bias before it hands it on."""

    def __init__(self, diagonal: int, factor: float) -> None:
        super().__init__()
        self.places, self.first, self.second = pnn.Embedding(11, 1), *(Attention(self._add) for _ in "12")
        self.head, self.diagonal, self.factor = pnn.Linear(8, 4), diagonal, factor

    @staticmethod
    def _add(scores: Any, bias: Any) -> Any:
        return scores + bias

    def forward(self, x: Any) -> Any:
        apart = paddle.arange(6).unsqueeze(1) - paddle.arange(6).unsqueeze(0) + 5
        bias = self.places(apart).squeeze(-1) * self.factor
        bias = bias + paddle.triu(paddle.full([6, 6], -1e9), self.diagonal)
        return self.head(self.second(self.first(x, bias), bias))


def test_a_mask_that_is_added_outside_instead_of_inside_is_no_difference() -> None:
    report = parfocal.align(seeded(TorchBiased), Biased(1, 1.0), numbers(2, 6, 8))
    assert report.ok, str(report)


@pytest.mark.parametrize(("diagonal", "factor"), [(2, 1.0), (0, 1.0), (1, 1.01)])
def test_another_mask_or_bias_that_is_added_outside_is_a_mistake(diagonal: int, factor: float) -> None:
    report = parfocal.align(seeded(TorchBiased), Biased(diagonal, factor), numbers(2, 6, 8))
    first = own(report)[0]
    assert first.port is not None
    assert (first.port.path, first.phase) == ("", "forward")
