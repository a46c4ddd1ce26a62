"""A cache of keys and values that is handed from layer to layer and grows on the way."""

from __future__ import annotations

from typing import Any

import paddle
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, numbers, seeded


class Cache:
    """Every layer adds what it made, and takes all of its own that is there."""

    def __init__(self) -> None:
        self.kept: dict[int, list[torch.Tensor]] = {}

    def update(self, number: int, keys: torch.Tensor) -> torch.Tensor:
        self.kept.setdefault(number, []).append(keys)
        return torch.cat(self.kept[number], 1)


class TorchLayer(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number, self.query, self.key = number, nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, cache: Cache) -> torch.Tensor:
        keys = cache.update(self.number, self.key(x))
        scores = self.query(x) @ keys.transpose(1, 2) * 6**-0.5
        return x + scores.softmax(-1) @ keys


class TorchDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([TorchLayer(number) for number in range(2)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        cache = Cache()
        for layer in self.layers:
            x = layer(x, cache)
        return x


class PaddleLayer(pnn.Layer):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale, self.query, self.key = scale, pnn.Linear(6, 6), pnn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        keys = self.key(x)
        scores = paddle.matmul(self.query(x), keys, transpose_y=True) * self.scale
        return x + paddle.matmul(pnn.functional.softmax(scores), keys)


class PaddleDecoder(pnn.Layer):
    def __init__(self, scale: float = 6**-0.5) -> None:
        super().__init__()
        self.layers = pnn.LayerList([PaddleLayer(scale) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


def test_a_mistake_beside_a_cache_is_named() -> None:
    report = align(seeded(TorchDecoder), PaddleDecoder(scale=0.5), numbers(2, 4, 6))
    causes = [each.cause for each in report.divergences if not each.inherited]
    assert {cause.code for cause in causes if cause is not None} == {"op.scale"}, str(report)
    assert not any(each.code == "floor.imprecise" for each in report.findings), str(report)


def test_a_cache_is_no_difference() -> None:
    report = align(seeded(TorchDecoder), PaddleDecoder(), numbers(2, 4, 6))
    assert report.ok, str(report)
    assert not any(each.code == "floor.imprecise" for each in report.findings)
