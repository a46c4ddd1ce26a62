"""Pairs of small models: weights, batches, and how each is trained.

A ``Side`` is data: which model, in which framework, with which changes, and what its training loop does. A
correct pair is the same side twice, in two frameworks or in one; a mistake is a side with one field replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.recorded_runs import models
from benchmarks.recorded_runs.kits import TORCH, Kit

Batch = tuple[np.ndarray, np.ndarray]
Batches = list[Batch]
Weights = dict[str, np.ndarray]  # by the names of the plain model, linear ones as [outputs, inputs]
STEPS = 3
SAMPLES = 6


@dataclass(frozen=True)
class Rule:
    """How an optimizer updates."""

    kind: str = "SGD"  # or Adam, AdamW
    rate: float = 0.1
    momentum: float = 0.0
    nesterov: bool = False
    decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.99)
    epsilon: float = 1e-8
    without: str = ""  # the layer whose parameters are left out


@dataclass(frozen=True)
class Side:
    """One side of a pair and its training loop."""

    model: str
    loss: Callable[[Kit, Any, Any], Any]
    rule: Rule | None = Rule()
    rates: tuple[float, ...] = (1.0,) * STEPS  # of the rule's rate, step by step
    clip: tuple[str, float] | None = None  # "norm" or "value", and how much is left
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the model
    weights: Callable[[Weights], Weights] = lambda weights: weights
    data: Callable[[Batches], Batches] = lambda batches: batches
    logged: Callable[[np.ndarray, np.ndarray], Mapping[str, Any]] | None = None  # from output and target
    frozen: str = ""  # a parameter without gradient
    clears: bool = True  # the gradients after every step
    backward_passes: int = 1
    training: bool = True
    ranks: int = 1
    reduction: str = "mean"  # of gradients over the ranks, or "sum", "none"
    only_rank: int | None = None  # of which data, loss and changes are wrong; None: of every rank
    shares: tuple[int, ...] = (0, 1)  # whose batches each rank takes
    forgets: int | None = None  # the step before which the optimizer's slots are lost
    evaluates: str = ""  # the layer that is left in evaluation mode
    crashes: tuple[int, str] | None = None  # in this step and this layer
    state: tuple[str, ...] = ()


def rows_of(output: Any, target: Any) -> tuple[Any, Any]:
    return output.reshape([-1, output.shape[-1]]), target.reshape([-1])


def cross_entropy(kit: Kit, output: Any, target: Any, **options: Any) -> Any:
    return kit.functional.cross_entropy(*rows_of(output, target), **options)


def next_word(kit: Kit, output: Any, target: Any, **options: Any) -> Any:
    """The word after each one is what is to be said."""
    return cross_entropy(kit, output[:, :-1], target[:, 1:], **options)


def build(kit: Kit, side: Side, seed: int) -> Any:
    """A model with the weights of the seed, and the side's changes."""
    plain = PLAIN.get(side.model, side.model)
    weights = draw_weights(plain, seed)
    model = getattr(models, side.model)(kit, **side.changes)
    kit.load(model, list(side.weights(weights).values()))
    if side.frozen:
        kit.freeze(kit.parameters(model)[side.frozen])
    kit.set_mode(model, side.training)
    return model


PLAIN = {"nested_perceptron": "perceptron"}  # whose weights, in which order


def draw_weights(model: str, seed: int) -> Weights:
    """Of a size that keeps signals alive."""
    random = np.random.default_rng([seed, len(model)])
    shapes = TORCH.shapes(getattr(models, model)(TORCH))
    return {name: _draw(random, name, shape) for name, shape in shapes.items()}


def _draw(random: Any, name: str, shape: tuple[int, ...]) -> np.ndarray:
    if len(shape) == 1:
        centre = 1.0 if "norm" in name or "bn" in name else 0.0
        centre = 0.0 if name.endswith("bias") else centre
        return (centre + 0.1 * random.normal(size=shape)).astype("float32")
    fan = int(np.prod(shape[1:])) if "embed" not in name else 1
    return (random.normal(size=shape) / np.sqrt(fan)).astype("float32")


def draw_batches(model: str, seed: int, rank: int = 0) -> Batches:
    """One for every step."""
    random = np.random.default_rng([seed, 11, rank])
    return [_batch(PLAIN.get(model, model), random) for _ in range(STEPS)]


def _batch(model: str, random: Any) -> Batch:
    if model == "perceptron":
        return _floats(random, SAMPLES, 12), random.integers(0, models.CLASSES, SAMPLES)
    if model == "convolutional":
        return _floats(random, SAMPLES, 3, 6, 6), random.integers(0, models.CLASSES, SAMPLES)
    words = random.integers(0, models.WORDS, (3, 7))
    return words, words if model == "llama" else random.integers(0, models.CLASSES, (3, 7))


def _floats(random: Any, *shape: int) -> np.ndarray:
    return random.normal(size=shape).astype("float32")


# The correct sides: every mistake is planted into one of them.
PERCEPTRON = Side("perceptron", cross_entropy, Rule(momentum=0.9, decay=0.01))
CONVOLUTIONAL = Side("convolutional", cross_entropy, Rule(), rates=(1.0, 1.0, 0.1))
LLAMA = Side("llama", next_word, Rule("AdamW", rate=0.01, decay=0.1), clip=("norm", 1.0))
TAGGER = Side("tagger", cross_entropy, Rule("Adam", rate=0.01))
SIDES = {side.model: side for side in (PERCEPTRON, CONVOLUTIONAL, LLAMA, TAGGER)}
