"""Weights that have no counterpart: a layer of another size, or weights that are not there."""

from __future__ import annotations

import paddle
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


def encoder(size: int) -> pnn.Layer:
    return pnn.Sequential(pnn.Linear(8, 8), pnn.TransformerEncoderLayer(8, 2, size, 0.0))


def test_the_size_of_a_container_of_the_framework() -> None:
    reference = seeded(
        lambda: nn.Sequential(nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True))
    )
    port = encoder(10)
    cause = the_cause(align(reference, port, numbers(3, 5, 8)))
    assert cause.code == "config.other"
    assert cause.message == (
        "feedforward_size is 12 in the reference, 10 in the port (TransformerEncoderLayer 1)"
    )
    mend(port, cause.fix)
    assert align(reference, port, numbers(3, 5, 8)).ok
    assert align(reference, encoder(12), numbers(3, 5, 8)).ok


class TorchScaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.scale = nn.Linear(8, 8), nn.Parameter(torch.ones(3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) * self.scale[0]


class Plain(pnn.Layer):
    """Right as it is, but for a weight that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.first = pnn.Linear(8, 8)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.first(x) * 1.0


def test_a_weight_that_is_not_there() -> None:
    first = own(align(seeded(TorchScaled), Plain(), numbers(4, 8), backward=False))[0]
    assert first.cause is not None
    assert first.cause.code == "weight.missing"
    assert "scale [3, 8] has no counterpart in the port" in first.cause.message


def test_nothing_is_said_without_explaining() -> None:
    report = align(seeded(TorchScaled), Plain(), numbers(4, 8), backward=False, explain=False)
    assert all(divergence.cause is None for divergence in report.divergences)
