"""Which values of two logs are the same numbers, in whatever layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.ops.log import Key
from parfocal.judge.floors import EPSILON
from parfocal.replay.layouts import fit

ROUNDING = 32.0  # units in the last place, relative to the size of all values, that are no difference


@dataclass(slots=True)
class Matches:
    """Which values of the port are which of the reference, both ways."""

    to_reference: dict[Key, Key] = field(default_factory=dict)
    to_port: dict[Key, Key] = field(default_factory=dict)


def match(port: Mapping[Key, Array], reference: Mapping[Key, Array]) -> Matches:
    """Values of the same numbers; several may be one and the same."""
    found = Matches()
    by_size: dict[tuple[int, bool], list[tuple[float, Key]]] = {}
    for key, array in reference.items():
        by_size.setdefault(_class(array), []).append((_norm(array), key))
    for key, array in port.items():
        norm = _norm(array)
        for other_norm, other in by_size.get(_class(array), ()):
            if abs(norm - other_norm) <= 1e-3 * max(norm, other_norm) and same(array, reference[other]):
                found.to_reference.setdefault(key, other)
                found.to_port.setdefault(other, key)
    return found


def same(a: Array, b: Array) -> bool:
    """The same numbers up to rounding, in the same or in another order."""
    if a.size != b.size:
        return False
    left, right = _wide(a), _wide(b)
    # the finer of the two: what was rounded to a coarser type is another value
    epsilon = min(EPSILON.get(a.dtype.name, 0.0), EPSILON.get(b.dtype.name, 0.0))
    if close(left.ravel(), right.ravel(), epsilon):
        return True
    return close(np.sort(left, axis=None), np.sort(right, axis=None), epsilon)


def close(a: Array, b: Array, epsilon: float) -> bool:
    """Equal up to rounding, element by element; infinities must agree exactly."""
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    difference = float(np.linalg.norm(a[finite] - b[finite]))
    return difference <= ROUNDING * epsilon * float(np.linalg.norm(b[finite]))


def laid_out(reference: Array, port_shape: tuple[int, ...], like: Array) -> Array | None:
    """The reference's value in a shape of the port's, in the layout that ``like`` suggests."""
    if reference.shape == port_shape:
        return reference
    layout = fit(reference, like)
    if layout is not None and layout.shape == port_shape:
        return layout.apply(reference)
    return reference.reshape(port_shape) if reference.size == int(np.prod(port_shape)) else None


def _class(array: Array) -> tuple[int, bool]:
    return array.size, array.dtype.kind in "fV"


def _norm(array: Array) -> float:
    wide = _wide(array)
    finite = wide[np.isfinite(wide)]
    return float(np.linalg.norm(finite))


def _wide(array: Array) -> Array:
    return array.astype(np.float64, copy=False)
