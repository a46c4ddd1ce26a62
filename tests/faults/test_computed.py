"""Buffers that a model computes in its constructor: a mistake there is named at the buffer itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal as pf
from tests.faults.tools import align, numbers, own, seeded, the_cause

Table = Callable[[np.ndarray], np.ndarray]


class Biased(nn.Module):
    """Scores of six places with a bias by how far they are apart, and a mask."""

    def __init__(self, *, flat: bool = False) -> None:
        super().__init__()
        self.proj = nn.Linear(6, 6)
        self.bias = nn.Parameter(torch.randn(11))
        index = torch.arange(6)[:, None] - torch.arange(6)[None, :] + 5
        self.register_buffer("index", index.flatten() if flat else index, persistent=False)
        self.register_buffer("mask", torch.triu(torch.full((6, 6), -1e9), 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.proj(x) + self.bias[self.index].view(6, 6) + self.mask, -1)


class PortBiased(pnn.Layer):  # type: ignore[misc]
    def __init__(self, table: Table, low: float) -> None:
        super().__init__()
        self.proj = pnn.Linear(6, 6)
        self.bias = self.create_parameter([11])
        index = table(np.arange(6)[:, None] - np.arange(6)[None, :] + 5)
        self.register_buffer("index", paddle.to_tensor(index), persistable=False)
        mask = paddle.to_tensor(np.triu(np.full((6, 6), low, "float32"), 1))
        self.register_buffer("mask", mask, persistable=False)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        bias = paddle.gather(self.bias, self.index.reshape([-1])).reshape([6, 6])
        return pnn.functional.softmax(self.proj(x) + bias + self.mask, axis=-1)


def pair(
    table: Table = lambda index: index, low: float = -1e9, *, flat: bool = False
) -> tuple[nn.Module, pnn.Layer]:
    reference = seeded(lambda: nn.Sequential(nn.Linear(6, 6), Biased(flat=flat), nn.Linear(6, 3)))
    return reference, pnn.Sequential(pnn.Linear(6, 6), PortBiased(table, low), pnn.Linear(6, 3))


@pytest.mark.parametrize("flat", [False, True])
def test_a_table_that_is_the_other_way_round(flat: bool) -> None:
    reference, port = pair(np.transpose, flat=flat)
    report = align(reference, port, numbers(6, 6))
    cause = the_cause(report)
    (divergence,) = own(report)
    assert (cause.code, divergence.port and divergence.port.path) == ("weight.transposed", "1.index")
    assert "the port computes it itself" in cause.message
    assert divergence.port is not None
    assert divergence.port.line is not None
    exec(cause.fix, {"port": port})
    assert pf.align(reference, port, numbers(6, 6)).ok


def test_other_numbers() -> None:
    cause = the_cause(align(*pair(lambda index: np.clip(index + 1, 0, 10)), numbers(6, 6)))
    assert cause.code == "weight.mismatched"
    assert cause.fix.startswith("compute port[1].index (test_computed.py:")


@pytest.mark.parametrize("flat", [False, True])
def test_the_same_table_is_no_difference(flat: bool) -> None:
    report = align(*pair(flat=flat), numbers(6, 6))
    assert report.ok
    assert not [each for each in report.findings if each.code == "weight.computed"]


def test_other_values_that_change_nothing_are_only_worth_knowing() -> None:
    report = align(*pair(low=-1e4), numbers(6, 6))
    assert report.ok
    (finding,) = [each for each in report.findings if each.code == "weight.computed"]
    assert "1.mask is 1e-05 times the reference's" in finding.message
    assert "makes no difference on these inputs" in finding.message
