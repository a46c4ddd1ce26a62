"""Weights between two models of one framework: what has the same name lies the same way."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal as pf


class Chain(nn.Module):
    """Scores of paths through a table of transitions, which is square."""

    def __init__(self, *, best: bool = False, turned: bool = False) -> None:
        super().__init__()
        self.head, self.transitions = nn.Linear(6, 4), nn.Parameter(torch.randn(4, 4))
        self.best, self.turned = best, turned

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        steps = self.head(x)
        table = self.transitions.t() if self.turned else self.transitions
        alpha = steps[:, 0]
        for t in range(1, steps.shape[1]):
            scores = alpha.unsqueeze(2) + table + steps[:, t].unsqueeze(1)
            alpha = scores.amax(dim=1) if self.best else torch.logsumexp(scores, dim=1)
        return alpha


class PaddleChain(pnn.Layer):
    def __init__(self, *, best: bool = False) -> None:
        super().__init__()
        self.head = pnn.Linear(6, 4)
        self.transitions = self.create_parameter([4, 4], default_initializer=pnn.initializer.Normal())
        self.best = best

    def forward(self, x: Any) -> Any:
        steps = self.head(x)
        alpha = steps[:, 0]
        for t in range(1, steps.shape[1]):
            scores = alpha.unsqueeze(2) + self.transitions + steps[:, t].unsqueeze(1)
            alpha = scores.amax(axis=1) if self.best else paddle.logsumexp(scores, axis=1)
        return alpha


def steps() -> Any:
    return np.random.default_rng(5).standard_normal((3, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("kind", [Chain, PaddleChain])
def test_a_square_weight_behind_a_mistake_is_not_doubted(kind: Any) -> None:
    report = pf.align(kind(), kind(best=True), steps())
    assert report.first is not None
    assert report.first.phase == "forward"
    assert not [each for each in report.divergences if each.phase == "weights"]


def test_without_inputs_a_weight_of_the_same_name_is_copied_as_it_is() -> None:
    reference, port = Chain(), Chain()
    assert pf.transfer(reference, port).complete
    assert torch.equal(reference.transitions, port.transitions)


def test_values_say_that_a_weight_lies_the_other_way() -> None:
    reference, port = Chain(), Chain(turned=True)
    assert pf.transfer(reference, port, steps()).complete
    assert torch.equal(reference.transitions.t(), port.transitions)


def test_between_frameworks_a_name_does_not_say_how_a_weight_lies() -> None:
    report = pf.align(Chain(), PaddleChain(best=True), steps())
    assert report.first is not None
    assert report.first.phase == "forward"  # the usual way is taken, and the mistake in the code found
    assert any("transitions: taken for as it is, the usual way" in each.message for each in report.findings)
