"""Square tensors: a transposed one is another layout where the calls that use it are right with it."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, numbers, own, seeded

SIZE = 6


class Mixing(nn.Module):
    """Each row of x becomes a weighted sum of rows, as a mask says."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 5)

    def forward(self, x: Any, mask: Any) -> Any:
        return torch.matmul(mask, self.linear(x))


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mixing = Mixing()

    def forward(self, x: Any) -> Any:
        return self.mixing(x, torch.tril(torch.ones(SIZE, SIZE)) / SIZE)


class PaddleMixing(pnn.Layer):
    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.linear, self.turned = pnn.Linear(5, 5), turned

    def forward(self, x: Any, mask: Any) -> Any:
        return paddle.matmul(mask.t() if self.turned else mask, self.linear(x))


class PaddleMasked(pnn.Layer):
    """``turned``: the mask goes in transposed; ``aware``: and is used as such."""

    def __init__(self, *, turned: bool, aware: bool) -> None:
        super().__init__()
        self.mixing, self.turned = PaddleMixing(turned=aware), turned

    def forward(self, x: Any) -> Any:
        mask = paddle.tril(paddle.ones([SIZE, SIZE])) / SIZE
        return self.mixing(x, mask.t() if self.turned else mask)


def test_a_transposed_mask_is_the_fault_of_the_code_that_made_it() -> None:
    report = align(seeded(Masked), PaddleMasked(turned=True, aware=False), numbers(SIZE, 5))
    (divergence,) = own(report)
    assert divergence.port is not None
    assert divergence.port.path == ""
    assert "input 1 of mixing" in divergence.what


@pytest.mark.parametrize("turned", [False, True])
def test_a_mask_in_another_layout_is_none(turned: bool) -> None:
    report = align(seeded(Masked), PaddleMasked(turned=turned, aware=turned), numbers(SIZE, 5))
    assert report.ok, str(report)


class Likeness(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(5, 4), nn.Linear(5, 4)

    def forward(self, x: Any) -> Any:
        return torch.matmul(self.left(x), self.right(x).T)


class PaddleLikeness(pnn.Layer):
    def __init__(self, *, turned: bool) -> None:
        super().__init__()
        self.left, self.right, self.turned = pnn.Linear(5, 4), pnn.Linear(5, 4), turned

    def forward(self, x: Any) -> Any:
        likeness = paddle.matmul(self.left(x), self.right(x).t())
        return likeness.t() if self.turned else likeness


def test_a_transposed_result_is_another_result() -> None:
    assert align(seeded(Likeness), PaddleLikeness(turned=False), numbers(SIZE, 5)).ok
    report = align(seeded(Likeness), PaddleLikeness(turned=True), numbers(SIZE, 5))
    assert not report.ok
