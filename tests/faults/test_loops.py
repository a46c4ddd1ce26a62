"""Mistakes in code that runs round after round: told once for every line, in a time that ends."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import parfocal
from parfocal.explain.ops.writing import Writer
from tests.faults.tools import numbers, own, seeded

MOST = 3000  # values that are written; without a memory for them it was millions


class Field(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 9), nn.Linear(9, 6)

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(y)))


class Flow(nn.Module):
    """Runge and Kutta's way through a field."""

    def __init__(self, step: float = 0.25) -> None:
        super().__init__()
        self.field, self.step = Field(), step

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        dt = self.step
        for _ in range(3):
            k1 = self.field(y)
            k2 = self.field(y + dt / 2 * k1)
            k3 = self.field(y + dt / 2 * k2)
            k4 = self.field(y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y


class TwiceWrong(Flow):
    def forward(self, y: torch.Tensor) -> torch.Tensor:
        dt = self.step
        for _ in range(3):
            k1 = self.field(y)
            k2 = self.field(y + dt / 2 * k1)
            k3 = self.field(y + dt / 4 * k2)
            k4 = self.field(y + dt * k3)
            y = y + dt / 6 * (k1 + 2 * k2 + k3 + k4)
        return y


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    count: list[int] = []
    write = Writer._write

    def counted(self: Writer, *arguments: Any) -> str | None:
        count.append(1)
        return write(self, *arguments)

    monkeypatch.setattr(Writer, "_write", counted)
    return count


def test_a_wrong_step_is_said_for_every_line_that_uses_it_and_once(written: list[int]) -> None:
    found = own(parfocal.align(seeded(Flow), Flow(0.2), numbers(4, 6)))
    lines = [each.port.line for each in found if each.port is not None]
    assert [each.cause.code for each in found if each.cause is not None] == ["op.scale"] * len(found)
    assert len(lines) == len(set(lines))
    assert 0 < len(written) < MOST


def test_two_mistakes_of_one_loop_are_both_said() -> None:
    found = own(parfocal.align(seeded(Flow), TwiceWrong(), numbers(4, 6)))
    messages = [each.cause.message for each in found if each.cause is not None]
    assert len(messages) == len(found) == 2
    assert any("0.125 in the reference" in each for each in messages)
    assert any("the reference applies mul with 2" in each for each in messages)
