"""One mistake in several places is told once; two are told as two. A place may be a number like any other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
import pytest
import torch

import parfocal as pf
from tests.faults.tools import numbers, own, seeded

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")  # paddle
WIDTH = 8


def _report(
    reference: Callable[[], list[Any]], port: Callable[[], list[Any]], mode: Any = "eval"
) -> pf.Report:
    model = seeded(lambda: torch.nn.Sequential(*reference()))
    return pf.align(model, paddle.nn.Sequential(*port()), numbers(6, WIDTH), mode=mode)


def _norms(epsilons: tuple[float, float]) -> Callable[[], list[Any]]:
    def build() -> list[Any]:
        return [
            paddle.nn.Linear(WIDTH, WIDTH),
            paddle.nn.LayerNorm(WIDTH, epsilon=epsilons[0]),
            paddle.nn.Linear(WIDTH, WIDTH),
            paddle.nn.LayerNorm(WIDTH, epsilon=epsilons[1]),
        ]

    return build


def _torch_norms() -> list[Any]:
    linear, norm = torch.nn.Linear, torch.nn.LayerNorm
    return [linear(WIDTH, WIDTH), norm(WIDTH), linear(WIDTH, WIDTH), norm(WIDTH)]


def _slopes(library: Any, first: float, second: float) -> Callable[[], list[Any]]:
    def build() -> list[Any]:
        return [
            library.Linear(WIDTH, WIDTH),
            library.LeakyReLU(first),
            library.Linear(WIDTH, WIDTH),
            library.LeakyReLU(second),
            library.Linear(WIDTH, 3),
        ]

    return build


def _momenta(first: float, second: float) -> Callable[[], list[Any]]:
    def build() -> list[Any]:
        return [
            paddle.nn.Linear(WIDTH, WIDTH),
            paddle.nn.BatchNorm1D(WIDTH, momentum=first),
            paddle.nn.Linear(WIDTH, WIDTH),
            paddle.nn.BatchNorm1D(WIDTH, momentum=second),
        ]

    return build


def _torch_batches() -> list[Any]:
    linear, norm = torch.nn.Linear, torch.nn.BatchNorm1d
    return [linear(WIDTH, WIDTH), norm(WIDTH), linear(WIDTH, WIDTH), norm(WIDTH)]


SAME = {
    "epsilon": lambda: _report(_torch_norms, _norms((1e-3, 1e-3))),
    "slope": lambda: _report(_slopes(torch.nn, 0.31, 0.31), _slopes(paddle.nn, 0.13, 0.13)),
    "momentum": lambda: _report(_torch_batches, _momenta(0.7, 0.7), mode="train"),
    "kind": lambda: _report(
        lambda: [torch.nn.Linear(WIDTH, WIDTH), torch.nn.SiLU(), torch.nn.Linear(WIDTH, 4), torch.nn.SiLU()],
        lambda: [
            paddle.nn.Linear(WIDTH, WIDTH),
            paddle.nn.GELU(),
            paddle.nn.Linear(WIDTH, 4),
            paddle.nn.GELU(),
        ],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_same_in_two_places_is_one_mistake(name: str) -> None:
    report = SAME[name]()
    found = [each for each in own(report) if each.cause is not None]
    assert {each.port.path for each in found if each.port is not None} == {"1", "3"}
    assert len({each.mistake for each in found}) == 1
    assert all(each.cause.facts for each in found if each.cause is not None)
    text = str(report)
    assert "also: the same in 3" in text
    assert text.count("  cause ") == 1


OTHER = {
    "epsilon": lambda: _report(_torch_norms, _norms((1e-3, 5e-4))),
    "slope": lambda: _report(_slopes(torch.nn, 0.31, 0.3), _slopes(paddle.nn, 0.13, 0.1)),
    "momentum": lambda: _report(_torch_batches, _momenta(0.71, 0.7), mode="train"),
}


@pytest.mark.parametrize("name", OTHER)
def test_other_values_are_another_mistake(name: str) -> None:
    """Without the numbers that are places as well (1 and 3) some of these would read alike."""
    report = OTHER[name]()
    found = [each for each in own(report) if each.cause is not None]
    assert len({each.mistake for each in found}) == 2
    assert str(report).count("  cause ") == 2


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return x + torch.relu(self.layer(self.norm(x)))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.layer = paddle.nn.LayerNorm(WIDTH), paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return x + self.norm(paddle.nn.functional.relu(self.layer(x)))


def test_a_line_that_is_wrong_in_every_block_is_one_mistake() -> None:
    """The layers that the message is about have other paths in each of them."""
    report = _report(lambda: [TorchBlock() for _ in range(3)], lambda: [PaddleBlock() for _ in range(3)])
    found = [each for each in own(report) if each.cause is not None]
    assert {each.port.path for each in found if each.port is not None} == {"0", "1", "2"}
    assert len({each.mistake for each in found}) == 1
