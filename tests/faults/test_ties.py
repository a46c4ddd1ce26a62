"""Maxima of equal values: a difference when the values are equal by construction, none when by chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from parfocal.attribution.broken_ties import _lasting
from tests.faults.tools import numbers, own, seeded


class TorchHighest(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc, self.head = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.fc(x).amax(1))


class Highest(pnn.Layer):
    """Ties share the gradient, as in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.head = pnn.Linear(4, 8), pnn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.highest(self.fc(x)))

    def highest(self, y: Any) -> Any:
        return y.amax(1)


class First(Highest):
    """The first of them gets all."""

    def highest(self, y: Any) -> Any:
        index = y.argmax(1, keepdim=True)
        return paddle.take_along_axis(y, index, 1).squeeze(1)


def points() -> Any:
    x = numbers(3, 6, 4)
    x[:, 3] = x[:, 2] = 2.0 * x[:, 2]
    return x


def test_equal_points_get_the_gradient_another_way() -> None:
    (divergence,) = own(parfocal.align(seeded(TorchHighest), First(), points()))
    assert divergence.port is not None
    assert (divergence.port.path, divergence.port.op) == ("", "take_along_axis")
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.tie"
    assert "all where the tensor has the same value more than once" in divergence.cause.message


def test_the_same_way_to_share_is_right() -> None:
    assert parfocal.align(seeded(TorchHighest), Highest(), points()).ok


def test_without_equal_points_both_ways_are_right() -> None:
    assert parfocal.align(seeded(TorchHighest), First(), numbers(3, 6, 4)).ok


def test_points_that_only_round_to_the_same_number_are_chance() -> None:
    reference = seeded(TorchHighest)
    with torch.no_grad():
        reference.fc.bias.fill_(2.0**13)  # one unit in the last place is 0.001 there
        reference.head.weight.mul_(1e-3)
    x = 1e-3 * numbers(3, 6, 4)
    values = reference.fc(torch.from_numpy(x)).detach().numpy()
    top = np.sort(values, 1)[:, -2:]
    assert (top[:, 0] == top[:, 1]).any()
    assert parfocal.align(reference, First(), x).ok


def test_which_equals_last() -> None:
    recorded = np.array([1.0, 1.0, 2.0, 3.0, 3.0, 0.0, 5.0], "float32")
    exact = np.array([1.0, 1.0 + 1e-13, 2.0, 3.0, 3.0 + 1e-9, 0.0, 5.0])
    assert _lasting(recorded, exact).tolist() == [True, True, False, False, False, True, False]


class Pooled(nn.Module):
    """Words without those that fill up, which are zero already."""

    def __init__(self, *, masked: bool = True) -> None:
        super().__init__()
        self.words, self.head, self.masked = nn.Embedding(9, 6, padding_idx=0), nn.Linear(6, 4), masked

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        mask = (ids != 0).float().unsqueeze(-1)
        x = self.words(ids)
        return self.head((x * mask if self.masked else x).sum(1) / mask.sum(1))


def test_a_gradient_that_differs_at_equal_values_is_no_tie_where_nothing_chooses() -> None:
    ids = np.array([[3, 5, 0, 0], [8, 2, 4, 0], [1, 7, 6, 5]])
    found = own(parfocal.align(Pooled(), Pooled(masked=False), ids))
    assert [each.cause for each in found] == [None]
