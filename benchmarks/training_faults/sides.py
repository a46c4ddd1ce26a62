"""One side of a training as data, and how two of them are compared."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
import torch

import parfocal as pf
from parfocal.report.report import Report

STEPS = 8
FEATURES, HIDDEN, CLASSES, SAMPLES = 8, 16, 4, 12
Batch = tuple[Any, Any]


def _layers(nn: Any, norm: Any, activation: Any, drop: float, **settings: Any) -> Any:
    return nn.Sequential(
        nn.Linear(FEATURES, HIDDEN),
        *([norm(HIDDEN, **settings)] if norm else []),
        activation(),
        *([nn.Dropout(drop)] if drop else []),
        nn.Linear(HIDDEN, CLASSES),
    )


def torch_model(norm: Any = None, activation: Any = torch.nn.ReLU, drop: float = 0.0, **settings: Any) -> Any:
    return lambda: _layers(torch.nn, norm, activation, drop, **settings)


def paddle_model(
    norm: Any = None, activation: Any = paddle.nn.ReLU, drop: float = 0.0, **settings: Any
) -> Any:
    return lambda: _layers(paddle.nn, norm, activation, drop, **settings)


@dataclass(frozen=True)
class Side:
    """What is written on one side; ``data`` changes what the side is given."""

    model: Callable[[], Any]
    optimizer: Callable[[Any], Any]  # from the model's parameters
    loss: Callable[[Any, Any], Any]
    scheduler: Callable[[Any], Any] | None = None  # from the optimizer
    clip: Callable[[Any], Any] | None = None
    accumulate: int = 1
    data: Callable[[Batch], Batch] | None = None


@dataclass(frozen=True)
class Training:
    """Two sides, and how many samples a batch has."""

    ours: Side
    theirs: Side
    samples: int = SAMPLES

    def compare(self, seed: int) -> Report:
        torch.manual_seed(seed)
        generator = np.random.default_rng(seed)
        sides = self.ours, self.theirs
        count = STEPS * max(side.accumulate for side in sides)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pf.compare_training(
                self.ours.model(),
                self.theirs.model(),
                [self._batch(generator) for _ in range(count)],
                loss=tuple(side.loss for side in sides),
                optimizers=tuple(_of_model(side.optimizer) for side in sides),
                schedulers=tuple(side.scheduler for side in sides),
                clip=tuple(side.clip for side in sides),
                accumulate=tuple(side.accumulate for side in sides),
                steps=STEPS,
            )

    def _batch(self, generator: np.random.Generator) -> Any:
        batch = (
            generator.standard_normal((self.samples, FEATURES)).astype("float32"),
            generator.integers(0, CLASSES, self.samples),
        )
        changes = self.ours.data, self.theirs.data
        if changes == (None, None):
            return batch
        given = [batch if change is None else change(batch) for change in changes]
        return pf.sides(*given)


def _of_model(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda model: make(model.parameters())
