"""What an optimizer remembers of its own steps (LBFGS), in a form that both frameworks can be given.

It keeps vectors of all parameters joined, which are taken apart here by parameter, and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array

VECTORS = ("direction", "gradient")  # one, joined from all parameters
SERIES = ("gradient_changes", "weight_changes")  # several of them, the oldest first
PRODUCTS = "products"  # a number for each of the series
COUNTS = ("iterations", "evaluations")
NUMBERS = ("rate", "scale", "loss", *COUNTS)

Vectors = Mapping[str, Array]  # by parameter path


@dataclass(frozen=True, slots=True)
class History:
    """Vectors and numbers by common name."""

    vectors: Mapping[str, Sequence[Vectors]]
    numbers: Mapping[str, float]
    products: Sequence[float]


Parameters = Sequence[tuple[str, tuple[int, ...]]]  # in the optimizer's order: path and shape


def read_history(
    state: Mapping[str, Any],
    keys: Mapping[str, str],
    parameters: Parameters,
    to_array: Callable[[Any], Array],
) -> History | None:
    """``keys``: common name -> the framework's. None: there is none yet, or it is another optimizer's."""
    if any(state.get(key) is None for key in keys.values()) or not state[keys[PRODUCTS]]:
        return None

    def number(value: Any) -> float:
        return float(value) if isinstance(value, (int, float)) else float(to_array(value).reshape(-1)[0])

    vectors = {
        **{name: [_apart(to_array(state[keys[name]]), parameters)] for name in VECTORS},
        **{name: [_apart(to_array(each), parameters) for each in state[keys[name]]] for name in SERIES},
    }
    return History(
        vectors,
        {name: number(state[keys[name]]) for name in NUMBERS},
        [number(each) for each in state[keys[PRODUCTS]]],
    )


def write_history(
    history: History,
    state: dict[str, Any],
    keys: Mapping[str, str],
    parameters: Parameters,
    from_array: Callable[[Array], Any],
) -> None:
    """Numbers become what the optimizer keeps them as: its own, or tensors."""

    def joined(arrays: Vectors) -> Any:
        return from_array(np.concatenate([arrays[path].reshape(-1) for path, _ in parameters]))

    for name in VECTORS:
        state[keys[name]] = joined(history.vectors[name][0])
    for name in SERIES:
        state[keys[name]] = [joined(each) for each in history.vectors[name]]
    dtype = next(iter(history.vectors[VECTORS[0]][0].values())).dtype
    state[keys[PRODUCTS]] = [from_array(np.array(each, dtype)) for each in history.products]
    for name, value in history.numbers.items():
        if name in COUNTS:
            state[keys[name]] = int(value)
        else:
            plain = isinstance(state.get(keys[name]), (int, float))
            state[keys[name]] = value if plain else from_array(np.array(value, dtype))


def _apart(whole: Array, parameters: Parameters) -> dict[str, Array]:
    sizes = [int(np.prod(shape)) for _, shape in parameters]
    parts = np.split(whole, np.cumsum(sizes)[:-1])
    return {path: part.reshape(shape) for (path, shape), part in zip(parameters, parts, strict=True)}
