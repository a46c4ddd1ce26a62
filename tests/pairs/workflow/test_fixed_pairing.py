"""A fixed tolerance compares the same calls as the noise does: pairing does not depend on the judging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from paddle.nn import functional as pfunctional
from torch import nn
from torch.nn import functional

import parfocal as pf

TOLERANCE = pf.Tolerance(rtol=1e-3, atol=1e-4)
IMAGES = np.random.default_rng(3).standard_normal((2, 3, 32, 32)).astype(np.float32)
ROWS = np.random.default_rng(4).standard_normal((6, 8)).astype(np.float32)


def stacked() -> nn.Module:
    """As AlexNet is built: most of its calls have no weights."""
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(4), nn.Flatten()),
        *(nn.Dropout(), nn.Linear(128, 16), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(16, 5)),
    )


class Stacked(pnn.Layer):
    """The same under other names, in another order of definition."""

    def __init__(self, pool: int = 3) -> None:
        super().__init__()
        self.head = pnn.Sequential(
            *(pnn.Dropout(), pnn.Linear(128, 16), pnn.ReLU(), pnn.Dropout(), pnn.Linear(16, 5))
        )
        self.act, self.flat = pnn.ReLU(), pnn.Flatten()
        self.last, self.first = pnn.Conv2D(8, 8, 3, padding=1), pnn.Conv2D(3, 8, 5, padding=2)
        self.mean, self.pool = pnn.AdaptiveAvgPool2D(4), pnn.MaxPool2D(pool, 2)

    def forward(self, x: Any) -> Any:
        x = self.act(self.last(self.pool(self.act(self.first(x)))))
        return self.head(self.flat(self.mean(x)))


class Norm(nn.Module):
    """A norm that activates too."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.norm(x))


def normed() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 8, 3), Norm(), nn.Conv2d(8, 8, 3), Norm(), nn.Conv2d(8, 4, 3))


def activating() -> pnn.Layer:
    """A layer that normalises and activates in one, of the framework."""
    layers = (pnn.Conv2D(3, 8, 3), pnn.BatchNorm(8, act="relu"), pnn.Conv2D(8, 8, 3))
    return pnn.Sequential(*layers, pnn.BatchNorm(8, act="relu"), pnn.Conv2D(8, 4, 3))


class Bounded(nn.Module):
    """Bounds what a block gives, and adds it, in its own code."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8))
        self.head = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x + torch.clamp(self.block(x), -0.3, 0.3))


class Bounding(pnn.Layer):
    def __init__(self, high: float) -> None:
        super().__init__()
        self.first, self.second, self.high = pnn.Linear(8, 8), pnn.Linear(8, 8), high

    def forward(self, x: Any) -> Any:
        return x + paddle.clip(self.second(pfunctional.gelu(self.first(x))), -0.3, self.high)


class BoundedInside(pnn.Layer):
    def __init__(self, high: float = 0.3) -> None:
        super().__init__()
        self.block, self.head = Bounding(high), pnn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.head(self.block(x))


PAIRS: dict[str, tuple[Callable[[], nn.Module], Callable[[], pnn.Layer], Any]] = {
    "layers without weights": (stacked, Stacked, IMAGES),
    "a norm that activates": (normed, activating, IMAGES),
    "work that is divided otherwise": (Bounded, BoundedInside, ROWS),
}


def made(build: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(2)
    return build().eval()


def calls(report: pf.Report) -> set[tuple[str, str]]:
    return {(pair.reference.path, pair.port.path) for pair in report.pairs}


@pytest.mark.parametrize("name", PAIRS)
def test_a_fixed_tolerance_pairs_the_same_calls(name: str) -> None:
    reference, port, inputs = PAIRS[name]
    noise, fixed = (
        pf.align(made(reference), port(), inputs, tolerance=tolerance) for tolerance in (None, TOLERANCE)
    )
    assert noise.ok, str(noise)
    assert fixed.ok, str(fixed)
    assert calls(noise) == calls(fixed)
    assert fixed.unpaired_port == noise.unpaired_port


def test_calls_without_weights_are_compared_forward_and_backward() -> None:
    report = pf.align(made(stacked), Stacked(), IMAGES, tolerance=TOLERANCE)
    leaves = [pair for pair in report.pairs if pair.port.kind in ("ReLU", "MaxPool2d", "Dropout", "Flatten")]
    assert len(leaves) == 7
    assert all(pair.forward == 0.0 and pair.backward == 0.0 for pair in leaves)


def test_a_wrong_call_without_weights_is_the_first_beyond_the_tolerance() -> None:
    report = pf.align(made(stacked), Stacked(pool=2), IMAGES, tolerance=TOLERANCE)
    assert report.first is not None
    assert report.first.port is not None
    assert (report.first.phase, report.first.port.path) == ("forward", "pool")


def test_a_wrong_call_pairs_the_same_calls_behind_it() -> None:
    noise, fixed = (
        pf.align(made(stacked), Stacked(pool=2), IMAGES, tolerance=tolerance)
        for tolerance in (None, TOLERANCE)
    )
    assert calls(noise) == calls(fixed)
    scored = {pair.port.path for pair in fixed.pairs if pair.forward is not None}
    assert {"first", "pool", "last", "head.1", "head.4"} <= scored


def test_another_bound_in_work_that_was_moved_is_beyond_the_tolerance() -> None:
    report = pf.align(made(Bounded), BoundedInside(high=0.2), ROWS, tolerance=TOLERANCE)
    assert not report.ok


def test_little_memory_gives_the_same_verdict() -> None:
    reports = [
        pf.align(made(stacked), Stacked(pool=2), IMAGES, tolerance=TOLERANCE, memory=memory)
        for memory in (None, "1KB")
    ]
    first, second = (
        [(each.phase, each.port and each.port.path, each.score) for each in report.divergences]
        for report in reports
    )
    assert first == second
