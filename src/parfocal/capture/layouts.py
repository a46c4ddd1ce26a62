"""One array laid out like another: the same values, perhaps with their axes in another order."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from parfocal.backends.protocol import Array

MAX_AXES = 5  # 120 orders
SAME = 1e-2  # relative distance below which two arrays show the same values
_SAMPLES = 4096


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Axes to take in this order, then the shape to give."""

    order: tuple[int, ...]
    shape: tuple[int, ...]

    def apply(self, array: Array) -> Array:
        moved: Array = array.transpose(self.order).reshape(self.shape)
        return moved


def same_extents(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes have the same extents in any order, ones aside."""
    return sorted(extent for extent in one if extent != 1) == sorted(
        extent for extent in other if extent != 1
    )


def arrangement(array: Array, like: Array) -> Arrangement:
    """How to lay ``array`` out so that it agrees best with ``like``, whose extents it has.

    The axes stay as they are unless another order is clearly better: a wrong value fits none.
    """
    plain = Arrangement(tuple(range(array.ndim)), like.shape)
    squeezed = tuple(extent for extent in array.shape if extent != 1)
    stays = squeezed == tuple(extent for extent in like.shape if extent != 1)
    if stays and (distance(plain.apply(array), like) < SAME or array.ndim > MAX_AXES):
        return plain
    orders = [
        Arrangement(order, like.shape)
        for order in permutations(range(array.ndim))
        if tuple(array.shape[axis] for axis in order if array.shape[axis] != 1)
        == tuple(extent for extent in like.shape if extent != 1)
    ]
    best = min(orders, key=lambda each: distance(each.apply(array), like))
    return plain if stays and distance(best.apply(array), like) >= SAME else best


def distance(array: Array, like: Array) -> float:
    """Relative distance over a regular sample of the elements; 0 for two empty arrays."""
    step = max(1, like.size // _SAMPLES)
    left = array.flat[::step].astype(np.float64)
    right = like.flat[::step].astype(np.float64)
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True):
        return float("inf")
    left, right = left[finite], right[finite]
    scale = max(float(np.linalg.norm(left)), float(np.linalg.norm(right)))
    return float(np.linalg.norm(left - right)) / scale if scale else 0.0
