"""The same numbers in another order: axes swapped, slices in another order along one or several axes.

Along every axis the slices of both arrays are identified by numbers that do not depend on the order within
them, so orders along several axes, together with swapped axes, are found at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.phrases import phrase

MOST_AXES = limits.searches.ALL_ORDERS.value
FEWEST = limits.pairing.AGREE_BY_CHANCE.value
SHOWN = 8


@dataclass(frozen=True, slots=True)
class Rearrangement:
    """``observed`` is ``expected.transpose(axes)`` with slices picked by ``orders``, one an axis."""

    axes: tuple[int, ...]
    orders: tuple[tuple[int, ...], ...]

    @property
    def swaps_axes(self) -> bool:
        return self.axes != tuple(range(len(self.axes)))

    @property
    def moved(self) -> tuple[int, ...]:
        """Axes along which the slices are in another order."""
        return tuple(axis for axis, order in enumerate(self.orders) if order != tuple(range(len(order))))

    def apply(self, expected: Array) -> Array:
        return np.asarray(expected.transpose(self.axes)[np.ix_(*self.orders)])


def find_arrangement(observed: Array, expected: Array, noise: float) -> Rearrangement | None:
    """How the numbers of ``expected`` are arranged in ``observed``; the simplest arrangement that fits."""
    if not 0 < observed.ndim <= MOST_AXES or not same_numbers(observed, expected, noise):
        return None
    candidates = sorted(_candidates(observed, expected), key=lambda each: (len(each.moved), each.swaps_axes))
    for each in candidates:
        if np.abs(each.apply(expected) - observed).max() <= noise:
            return each
    return None


def same_numbers(observed: Array, expected: Array, noise: float) -> bool:
    """Whether both hold the same numbers, and enough different ones that this is no chance."""
    if observed.size != expected.size or not np.abs(observed.sum() - expected.sum()) <= noise * observed.size:
        return False
    left, right = np.sort(observed, axis=None), np.sort(expected, axis=None)
    different = 1 + int(np.count_nonzero(np.diff(right) > 2 * noise))
    return different >= FEWEST and bool(np.abs(left - right).max() <= noise)


def _candidates(observed: Array, expected: Array) -> Iterator[Rearrangement]:
    own = [_marks(observed, axis) for axis in range(observed.ndim)]
    marks = [_marks(expected, axis) for axis in range(expected.ndim)]
    for axes in permutations(range(expected.ndim)):
        if tuple(expected.shape[axis] for axis in axes) == observed.shape:
            orders = (_matched(own[place], marks[axis]) for place, axis in enumerate(axes))
            yield Rearrangement(axes, tuple(orders))


def _marks(array: Array, axis: int) -> Array:
    """One number per slice that does not depend on the order within it."""
    rows = np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return np.asarray(rows.sum(1) + (rows**2).sum(1) * np.sqrt(2.0) + (rows**3).sum(1) / np.sqrt(3.0))


def _matched(own: Array, marks: Array) -> tuple[int, ...]:
    """For each slice the one with the same mark; a slice that is where it was stays there."""
    close = 1e-9 * float(np.abs(marks).max(initial=0.0))
    leaving = np.flatnonzero(np.abs(own - marks) > close)
    order = np.arange(len(own))
    order[leaving[np.argsort(own[leaving], kind="stable")]] = leaving[
        np.argsort(marks[leaving], kind="stable")
    ]
    return tuple(int(index) for index in order)


def is_reversed(order: Sequence[int]) -> bool:
    return list(order) == list(range(len(order)))[::-1]


def in_words(order: Sequence[int]) -> str:
    """What kind of order it is."""
    length = len(order)
    places = np.arange(length)
    if is_reversed(order):
        return phrase("reversed")
    if list(order) == list(np.roll(places, -order[0])):
        by = -order[0] % length
        return phrase("rolled by {by}", by=by if by <= length // 2 else by - length)
    for parts in (size for size in range(2, min(length // 2, 16) + 1) if length % size == 0):
        blocks = np.asarray(order).reshape(parts, -1)
        firsts = blocks[:, 0] * parts // length
        if np.array_equal(blocks, places.reshape(parts, -1)[firsts]):
            return phrase(
                "{parts} blocks in the order {firsts}", parts=parts, firsts=", ".join(map(str, firsts))
            )
        if list(order) == list(places.reshape(parts, -1).T.ravel()):
            return phrase("interleaved, {parts} blocks into one", parts=parts)
        if list(order) == list(places.reshape(-1, parts).T.ravel()):
            return phrase("interleaved, one into {parts} blocks", parts=parts)
    return ", ".join(map(str, order[:SHOWN])) + (", ..." if length > SHOWN else "")
