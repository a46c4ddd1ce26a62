"""What a bundled pair is, and how its reference gets weights that keep signals alive.

A randomly initialised deep network often gives almost nothing (or infinity), and normalisation
with weight 1 and bias 0 hides mistakes. ``enliven`` therefore re-scales the weights, gives the
normalisation layers random affine parameters, and fits their statistics to what flows through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
import torch
from torch import nn

Loss = Callable[[Any], Any]

WEIGHTED = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d)
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
NORMS = (*BATCH_NORMS, nn.LayerNorm, nn.GroupNorm)


@dataclass(frozen=True)
class Pair:
    """A torch model and its paddle port. The port has weights of its own; aligning copies them."""

    name: str
    reference: Callable[[int], nn.Module]
    port: Callable[[int], paddle.nn.Layer]
    inputs: Callable[[int], Any]
    tags: frozenset[str]
    loss: tuple[Loss, Loss] | None = None
    modes: tuple[str, ...] = ("eval", "train")
    expected: str = ""  # how the port really differs from the reference; empty: it is correct
    guilty: tuple[str, ...] = ()  # the port's layers that differ, in order of execution


def pair(
    name: str,
    reference: Callable[[], nn.Module],
    port: Callable[[], paddle.nn.Layer],
    inputs: Callable[[np.random.Generator], Any],
    *tags: str,
    gain: float = 1.0,
    settling: Callable[[np.random.Generator], Any] | None = None,
    drift: float = 1.0,
    **facts: Any,
) -> Pair:
    """A pair from two constructors and a function that draws inputs.

    ``settling`` draws the batch that fits the statistics of the normalisation layers, where one like
    the inputs has too few values for that; ``drift`` says how far off they then are (less in a deep
    network, where that adds up).
    """

    def draw(seed: int) -> Any:
        return inputs(np.random.default_rng(seed))

    def make_reference(seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = reference()
            enliven(model, gain)
            settle(model, _for_torch((settling or inputs)(np.random.default_rng(seed + 1000))), drift)
        return model.eval()

    def make_port(seed: int) -> paddle.nn.Layer:
        with _paddle_seeded(seed + 1):
            model = port()
        model.eval()
        return model

    return Pair(name, make_reference, make_port, draw, frozenset(tags), **facts)


@torch.no_grad()
def enliven(model: nn.Module, gain: float) -> None:
    """Weights that keep the size of what flows through; no normalisation layer is left at 1 and 0."""
    for module in model.modules():
        if isinstance(module, WEIGHTED) and module.weight is not None:
            fan_in = module.weight[0].numel()
            module.weight.normal_(0.0, gain / fan_in**0.5)
        elif isinstance(module, TRANSPOSED):
            fan_in = module.weight.shape[0] * module.weight[0, 0].numel()
            steps = int(np.prod(module.stride))
            module.weight.normal_(0.0, gain * (steps / fan_in) ** 0.5)
        elif isinstance(module, NORMS) and module.weight is not None:
            module.weight.uniform_(0.6, 1.4)
        bias = getattr(module, "bias", None)
        if isinstance(bias, torch.Tensor) and isinstance(module, (*WEIGHTED, *TRANSPOSED, *NORMS)):
            bias.normal_(0.0, 0.1)


@torch.no_grad()
def settle(model: nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]], drift: float = 1.0) -> None:
    """Batch statistics of one run, a little off: what a trained network's statistics look like."""
    layers = [module for module in model.modules() if isinstance(module, BATCH_NORMS)]
    if not layers:
        return
    usual = [layer.momentum for layer in layers]
    for layer in layers:
        layer.momentum = 1.0
    model.train()
    args, kwargs = arguments
    model(*args, **kwargs)
    for layer, momentum in zip(layers, usual, strict=True):
        layer.momentum = momentum
        spread = layer.running_var.sqrt()
        layer.running_mean += 0.2 * drift * spread * torch.randn_like(spread)
        layer.running_var *= torch.empty_like(spread).uniform_(0.7, 1.4) ** drift
        layer.running_var += 1e-3


def _for_torch(inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from parfocal.backends import registry
    from parfocal.inputs import arguments, split

    return arguments(split(inputs)[0], registry.get("torch"))


@contextmanager
def _paddle_seeded(seed: int) -> Iterator[None]:
    state = paddle.get_rng_state()
    paddle.seed(seed)
    try:
        yield
    finally:
        paddle.set_rng_state(state)


def images(count: int, size: int, channels: int = 3) -> Callable[[np.random.Generator], Any]:
    """Draws a batch of square NCHW images."""

    def draw(generator: np.random.Generator) -> Any:
        return generator.standard_normal((count, channels, size, size)).astype(np.float32)

    return draw


def features(*shape: int) -> Callable[[np.random.Generator], Any]:
    """Draws one array of normal values."""

    def draw(generator: np.random.Generator) -> Any:
        return generator.standard_normal(shape).astype(np.float32)

    return draw


def token_ids(count: int, length: int, vocabulary: int) -> Callable[[np.random.Generator], Any]:
    """Draws a batch of token ids."""

    def draw(generator: np.random.Generator) -> Any:
        return generator.integers(0, vocabulary, (count, length))

    return draw
