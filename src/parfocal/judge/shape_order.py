"""Looks for the same values in another order: an axis permuted, or the axes themselves."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from parfocal.judge import limits
from parfocal.judge.reading import Array

MINIMUM_MOVED = limits.pairing.AGREE_BY_CHANCE.value
_MOST_AXES = limits.searches.ALL_ORDERS.value
_MOST_INDICES = limits.searches.ORDER_INDICES.value
_PROBE = limits.searches.ORDER_PROBE.value
_LEFT_OVER = limits.causes.ORDER_LEFT.value


def find_transposition(
    a: Array, b: Array, noise: Array, chance: float
) -> tuple[tuple[int, ...] | None, bool]:
    """Axes with ``a == b.transpose(axes)``, and whether a reshape to a's shape was needed as well.

    ``noise`` is the rounding at each element of b, in b's C order.
    """
    if b.ndim < 2 or b.ndim > _MOST_AXES:
        return None, False
    flat, rounding = a.reshape(-1), noise.reshape(b.shape)
    probe = np.linspace(0, flat.size - 1, min(_PROBE, flat.size)).astype(np.int64)
    candidates = sorted(
        itertools.permutations(range(b.ndim)), key=lambda axes: b.transpose(axes).shape != a.shape
    )
    for axes in candidates:
        moved, moved_noise = b.transpose(axes), rounding.transpose(axes)
        places = np.unravel_index(probe, moved.shape)
        if not _close(flat[probe], moved[places], moved_noise[places]).all():
            continue
        if _convincing(flat, moved.reshape(-1), b.reshape(-1), moved_noise.reshape(-1), chance):
            return tuple(axes), moved.shape != a.shape
    return None, False


def find_order(a: Array, b: Array, noise: Array, chance: float) -> tuple[int, tuple[int, ...]] | None:
    """An axis and an order along it with ``a == b.take(order, axis)``."""
    for axis, length in enumerate(a.shape):
        if length < 2 or length > _MOST_INDICES:
            continue
        order = _matching_order(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0))
        if order is None:
            continue
        moved = b.take(order, axis=axis).reshape(-1)
        rounding = noise.take(order, axis=axis).reshape(-1)
        if _convincing(a.reshape(-1), moved, b.reshape(-1), rounding, chance):
            return axis, tuple(int(index) for index in order)
    return None


def _matching_order(a: Array, b: Array) -> Array | None:
    """For each slice of ``a`` the slice of ``b`` like it, by one random projection of the slices."""
    length = a.shape[0]
    rows = [array.reshape(length, -1) for array in (a, b)]
    weights = np.random.Generator(np.random.PCG64(0)).uniform(0.5, 1.5, rows[0].shape[1])
    codes_a, codes_b = (row @ weights for row in rows)
    scale = max(float(np.abs(codes_b).max()), float(np.abs(codes_a).max()))
    if not math.isfinite(scale):
        return None
    staying = np.abs(codes_a - codes_b) <= 1e-6 * scale
    leaving = np.flatnonzero(~staying)
    sorted_a = leaving[np.argsort(codes_a[leaving].real, kind="stable")]
    sorted_b = leaving[np.argsort(codes_b[leaving].real, kind="stable")]
    gaps = np.diff(codes_b[sorted_b].real)
    if len(leaving) < 2 or (gaps == 0).any():  # slices that cannot be told apart prove nothing
        return None
    order = np.arange(length)
    order[sorted_a] = sorted_b
    return order


def _convincing(a: Array, moved: Array, before: Array, noise: Array, chance: float) -> bool:
    """Whether ``moved`` equals ``a``, changed enough elements, and cannot be luck."""
    matches = _close(a, moved, noise)
    changed = ~_close(a, before, noise) if a.shape == before.shape else np.ones(a.shape, np.bool_)
    count = int(np.count_nonzero(changed))
    if count < MINIMUM_MOVED or np.count_nonzero(~matches) > _LEFT_OVER * count:
        return False
    return _luck(before, noise) ** count < chance


def _luck(values: Array, noise: Array) -> float:
    """How likely two elements picked at random are equal; never quite 0 or 1 from a sample."""
    picks = np.random.Generator(np.random.PCG64(1)).integers(0, values.size, (2, 4096))
    left, right = picks[:, picks[0] != picks[1]]
    if not len(left):
        return 1.0
    equal: Any = _close(values[left], values[right], noise[left])
    return (int(np.count_nonzero(equal)) + 1) / (len(left) + 2)


def _close(a: Array, b: Array, noise: Array) -> Any:
    return (np.abs(a - b) <= noise) | (a == b) | (np.isnan(a) & np.isnan(b))
