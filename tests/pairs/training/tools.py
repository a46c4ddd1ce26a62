"""Small pairs of models and batches to train on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import torch

import parfocal as pf

LOSSES = (torch.nn.functional.cross_entropy, paddle.nn.functional.cross_entropy)
torch_optim, paddle_optim = torch.optim, paddle.optimizer


def perceptron(norm: bool = False) -> tuple[Any, Any]:
    torch.manual_seed(3)
    kits = (torch.nn, torch.nn.BatchNorm1d), (paddle.nn, paddle.nn.BatchNorm1D)
    made = []
    for nn, batch_norm in kits:
        layers = [nn.Linear(8, 16), *([batch_norm(16)] if norm else []), nn.ReLU(), nn.Linear(16, 4)]
        made.append(nn.Sequential(*layers))
    return made[0], made[1]


def batches(count: int, size: int = 12, seed: int = 0) -> list[tuple[Any, Any]]:
    generator = np.random.default_rng(seed)
    return [
        (generator.standard_normal((size, 8)).astype("float32"), generator.integers(0, 4, size))
        for _ in range(count)
    ]


def compare(
    ours: Callable[[Any], Any],
    theirs: Callable[[Any], Any],
    *,
    steps: int = 6,
    models: tuple[Any, Any] | None = None,
    loss: Any = LOSSES,
    **options: Any,
) -> Any:
    """``ours`` and ``theirs``: from the parameters to the optimizer."""
    reference, port = models or perceptron()
    return pf.compare_training(
        *(reference, port, options.pop("data", None) or batches(steps * options.get("passes", 1))),
        loss=loss,
        optimizers=(lambda model: ours(model.parameters()), lambda model: theirs(model.parameters())),
        steps=steps,
        **{name: value for name, value in options.items() if name != "passes"},
    )
