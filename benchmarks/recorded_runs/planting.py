"""Ways to plant a mistake: functions from a correct side to one with a single thing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.recorded_runs.pairs import Batches, Side, Weights, cross_entropy

Plant = Callable[[Side], Side]


def set_to(**fields: Any) -> Plant:
    return lambda side: replace(side, **fields)


def change(**changes: Any) -> Plant:
    return set_to(changes=changes)


def rule(**fields: Any) -> Plant:
    return lambda side: replace(side, rule=replace(side.rule, **fields))  # type: ignore[type-var]


# Weights.


def swap(one: str, other: str) -> Plant:
    return set_to(weights=lambda w: {**w, one: w[other], other: w[one]})


def edit(name: str, change_array: Callable[[np.ndarray], np.ndarray]) -> Plant:
    def edited(weights: Weights) -> Weights:
        return {**weights, name: np.ascontiguousarray(change_array(weights[name].copy()))}

    return set_to(weights=edited)


def one_element(array: np.ndarray) -> np.ndarray:
    array[1, 2] += 0.5
    return array


# Data.


def each_batch(change_input: Callable[[np.ndarray], np.ndarray], step: int | None = None) -> Plant:
    def changed(batches: Batches) -> Batches:
        return [
            (np.ascontiguousarray(change_input(inputs)), target)
            if step in (None, number)
            else (inputs, target)
            for number, (inputs, target) in enumerate(batches)
        ]

    return set_to(data=changed)


def reversed_samples(batches: Batches) -> Batches:
    return [(inputs[::-1].copy(), target[::-1].copy()) for inputs, target in batches]


def reversed_labels(batches: Batches) -> Batches:
    return [(inputs, target[::-1].copy()) for inputs, target in batches]


def normalise(images: np.ndarray) -> np.ndarray:
    means, sizes = (np.array(each, "float32").reshape(3, 1, 1) for each in ([0.1, 0.2, 0.3], [0.5, 0.6, 0.7]))
    return (images - means) / sizes


def other_scale(values: np.ndarray) -> np.ndarray:
    return values * np.float32(2.0) - np.float32(1.0)


# Losses.


def half_detached(kit: Any, output: Any, target: Any) -> Any:
    loss = cross_entropy(kit, output, target)
    return loss * 0.5 + loss.detach() * 0.5


def weighted(kit: Any, output: Any, target: Any) -> Any:
    return cross_entropy(kit, output, target) * 0.7


# Logs.


def accuracy(output: np.ndarray, target: np.ndarray) -> dict[str, Any]:
    return {"accuracy": float((output.argmax(-1) == target).mean()), "largest": float(output.max())}


def wrong_largest(output: np.ndarray, target: np.ndarray) -> dict[str, Any]:
    return {**accuracy(output, target), "largest": float(output[:, 0].max())}


def in_percent(output: np.ndarray, target: np.ndarray) -> dict[str, Any]:
    found = accuracy(output, target)
    return {**found, "accuracy": 100.0 * found["accuracy"] + 1.0}
