"""The models around the layers of the sweep, the same in both frameworks, and their inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import paddle
import torch

from parfocal.backends import registry
from tests.faults.sweep import Row


class TorchFrame(torch.nn.Module):
    """The layer, fed by one that has weights and followed by one that has none."""

    def __init__(self, before: Any, layer: Any) -> None:
        super().__init__()
        self.before, self.layer, self.after = before, layer, torch.nn.Tanh()

    def forward(self, x: Any, *others: Any) -> Any:
        return self.after(first_of(self.layer(self.before(x), *others)))


class PaddleFrame(paddle.nn.Layer):
    def __init__(self, before: Any, layer: Any) -> None:
        super().__init__()
        self.before, self.layer, self.after = before, layer, paddle.nn.Tanh()

    def forward(self, x: Any, *others: Any) -> Any:
        return self.after(first_of(self.layer(self.before(x), *others)))


class TorchSelf(torch.nn.Module):
    """Attention of a sequence to itself."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Any) -> Any:
        return first_of(self.attention(x, x, x))


class PaddleSelf(paddle.nn.Layer):
    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.attention = attention

    def forward(self, x: Any) -> Any:
        return first_of(self.attention(x, x, x))


def first_of(result: Any) -> Any:
    return result[0] if isinstance(result, (tuple, list)) else result


FRAMES: dict[str, tuple[Any, Any]] = {"torch": (TorchFrame, TorchSelf), "paddle": (PaddleFrame, PaddleSelf)}


def model(framework: str, row: Row, settings: Mapping[str, Any]) -> Any:
    backend: Any = registry.get(framework)
    layer = backend.layer(row.kind, settings)
    frame, attending = FRAMES[framework]
    if row.kind == "MultiheadAttention":
        layer = attending(layer)
    whole = frame(before(backend, row), layer).eval()
    generator = np.random.default_rng(11)
    for entry in backend.state(whole):  # a bias of zeros could be left out without any effect
        if entry.role == "parameter" and (len(backend.shape(entry.value)) == 1 or "bias" in entry.path):
            values = generator.normal(0.5, 0.3, tuple(backend.shape(entry.value)))
            backend.write(entry.value, values.astype(np.float32))
    return whole


def before(backend: Any, row: Row) -> Any:
    """A layer with weights that keeps the shape; labels go straight in."""
    shape = row.inputs[0]
    if isinstance(shape[0], tuple):
        return backend.layer("Identity", {})
    if row.positive:
        return backend.layer("Sigmoid", {})
    if len(shape) < 4 and row.kind not in ("Fold",) and not row.kind.endswith(("1d",)):
        return backend.layer("Linear", {"in_features": shape[-1], "out_features": shape[-1], "bias": True})
    rank = len(shape) - 2
    one = {"in_channels": shape[1], "out_channels": shape[1], "kernel_size": (1,) * rank, "bias": True}
    return backend.layer(f"Conv{rank}d", one)


def arrays(row: Row) -> tuple[Any, ...]:
    generator = np.random.default_rng(5)

    def made(shape: Any) -> Any:
        if isinstance(shape[0], tuple) and not shape[1]:
            return generator.choice(np.array([-1.0, 1.0], np.float32), shape[0])
        if isinstance(shape[0], tuple):
            return generator.integers(0, shape[1], shape[0])
        values = generator.standard_normal(shape).astype(np.float32)
        return np.abs(values) if row.positive else values

    return tuple(made(shape) for shape in row.inputs)
