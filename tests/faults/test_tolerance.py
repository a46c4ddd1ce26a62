"""With a fixed tolerance nothing is run again: what two gradients are to one another, their numbers say."""

from __future__ import annotations

import torch
from torch import nn

import parfocal
from tests.faults.tools import numbers, own, seeded


class Net(nn.Module):
    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 4)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.first(x))
        return self.second(self.factor * y + (1.0 - self.factor) * y.detach())


def test_a_multiple_is_named_as_one() -> None:
    tolerance = parfocal.Tolerance(rtol=1e-4, atol=1e-5)
    report = parfocal.align(seeded(Net), Net(2.5).eval(), numbers(6, 8), tolerance=tolerance)
    assert not report.ok
    gradients = [each for each in report.divergences if each.phase == "gradient"]
    assert any("2.5 times the reference's values" in each.message for each in gradients)
    assert parfocal.align(seeded(Net), Net().eval(), numbers(6, 8), tolerance=tolerance).ok
    assert len(own(report)) == 1
