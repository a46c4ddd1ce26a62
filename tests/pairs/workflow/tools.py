"""Small models that both frameworks can build, with weights that keep signals alive."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.models import Kit, kit_for

TORCH, PADDLE = "torch", "paddle"
SIDES = [(TORCH, PADDLE), (PADDLE, TORCH), (TORCH, TORCH), (PADDLE, PADDLE)]
X = np.random.default_rng(7).normal(size=(6, 4)).astype("float32")
IMAGES = np.random.default_rng(8).normal(size=(2, 3, 6, 6)).astype("float32")


def lively(kit: Kit, model: Any, seed: int = 0) -> Any:
    """Random weights of a size that neither kills nor inflates signals; variances stay positive."""
    random = np.random.default_rng(seed)
    backend = kit.backend
    for entry in backend.state(model):
        shape = backend.shape(entry.value)
        if entry.tied_to is not None or backend.dtype(entry.value) != "float32":
            continue
        if entry.role == "buffer" or (len(shape) == 1 and entry.name == "weight"):
            values = random.uniform(0.5, 1.5, shape)
        else:
            values = random.normal(size=shape) / np.sqrt(max(1, np.prod(shape[1:])) if shape else 1)
        backend.write(entry.value, values.astype("float32"))
    return model


def mlp(framework: str, seed: int = 0, *, activation: str = "ReLU") -> Any:
    """Linear, activation, Linear."""
    kit = kit_for(framework)
    middle = getattr(kit.nn, activation)()
    return lively(kit, kit.sequential(kit.linear(4, 8), middle, kit.linear(8, 3)), seed)


def custom(
    framework: str, forward: Any, seed: int = 0, name: str = "Custom", **sizes: tuple[int, int]
) -> Any:
    """A user's module with one Linear per keyword."""
    kit = kit_for(framework)
    children = {child: kit.linear(*size) for child, size in sizes.items()}
    return lively(kit, kit.module(forward, name, **children), seed)


def snapshot(framework: str, model: Any) -> dict[str, bytes]:
    """Every tensor of the model's state, bit by bit."""
    backend = kit_for(framework).backend
    return {entry.path: backend.to_array(entry.value).tobytes() for entry in backend.state(model)}
