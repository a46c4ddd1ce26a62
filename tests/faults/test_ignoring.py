"""A layer that is to be ignored is led along anyway: what is around it is judged as if it were right."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import parfocal
from parfocal.errors import EmptyComparisonError
from tests.faults.tools import numbers, own, seeded


class Net(nn.Module):
    def __init__(self, slope: float = 0.1, factor: float = 1.0) -> None:
        super().__init__()
        self.first, self.act, self.second = nn.Linear(8, 8), nn.LeakyReLU(slope), nn.Linear(8, 4)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.factor * self.act(self.first(x)))


def align(port: nn.Module, ignore: tuple[str, ...]) -> parfocal.Report:
    return parfocal.align(seeded(Net), port.eval(), numbers(6, 8), ignore=ignore)


def test_an_ignored_layer_is_not_blamed_and_nobody_is_in_its_stead() -> None:
    report = align(Net(slope=0.5), ("act",))
    assert report.ok
    assert "act" not in {pair.port.path for pair in report.pairs}
    assert [finding.message for finding in report.findings if finding.code == "ignored"] == [
        "act differs and is ignored: what the whole model gives is not judged"
    ]


def test_it_is_blamed_when_it_is_not_ignored() -> None:
    (divergence,) = own(align(Net(slope=0.5), ("third*",)))
    assert divergence.port is not None
    assert divergence.port.path == "act"


def test_the_code_around_an_ignored_layer_is_still_judged() -> None:
    (divergence,) = own(align(Net(slope=0.5, factor=3.0), ("act",)))
    assert divergence.port is not None
    assert (divergence.port.path, divergence.what) == (
        "", "input 0 of second, made by the model's own code",
    )  # fmt: skip


def test_an_ignored_layer_that_is_right_leaves_no_note() -> None:
    report = align(Net(), ("act",))
    assert report.ok
    assert not [finding for finding in report.findings if finding.code == "ignored"]


def test_ignoring_everything_is_an_error() -> None:
    with pytest.raises(EmptyComparisonError, match="everything is ignored"):
        align(Net(), ("*",))
