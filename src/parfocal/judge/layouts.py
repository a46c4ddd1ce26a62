"""How two tensors of the same values lie differently: an axis permutation, a reshape, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from math import inf, prod
from typing import Any, NamedTuple

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits

MAX_AXES = limits.searches.ALL_ORDERS.value
SAME = limits.causes.SAME_LAYOUT.value
_SAMPLE = limits.searches.LAYOUT_SAMPLE.value


class MaskEncoding(NamedTuple):
    """How a mask is said: what stands for the reference's zeros, and for all else."""

    zero: float
    other: float
    dtype: str

    def said(self, mask: Array) -> Array:
        return np.where(mask != 0, self.other, self.zero).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class Layout:
    """Makes the reference's array look like the port's."""

    permutation: tuple[int, ...] | None  # None: as it is
    shape: tuple[int, ...]
    split: tuple[int, ...] | None = None  # axes are split up to this shape before they are moved
    words: MaskEncoding | None = None  # of a mask that is said otherwise here

    @property
    def is_identity(self) -> bool:
        return self.permutation is None and self.words is None

    def keeps(self, shape: tuple[int, ...]) -> bool:
        """Whether axes were moved and the shape is the same all the same: it says nothing of the move."""
        return self.permutation is not None and self.shape == shape

    def for_shapes(self, reference: tuple[int, ...], port: tuple[int, ...]) -> Layout | None:
        """The same move for tensors of other extents, as of a shorter batch; None where there is none."""
        moves = (each for each in layouts(reference, port) if each.permutation == self.permutation)
        found = next(moves, None)
        return found if found is None or self.words is None else replace(found, words=self.words)

    def apply(self, array: Array) -> Array:
        if self.shape == array.shape and self.permutation is None and self.words is None:
            return array
        said = array if self.words is None else self.words.said(array)
        parts = said if self.split is None else said.reshape(self.split)
        moved = parts if self.permutation is None else parts.transpose(self.permutation)
        return moved.reshape(self.shape)


@lru_cache(maxsize=1024)
def layouts(reference: tuple[int, ...], port: tuple[int, ...]) -> tuple[Layout, ...]:
    """Every way in which the reference's shape can become the port's, the plainest first."""
    return tuple(_layouts(reference, port))


def _layouts(reference: tuple[int, ...], port: tuple[int, ...]) -> Iterator[Layout]:
    if prod(reference) != prod(port):
        return
    if without_ones(reference) == without_ones(port) or len(reference) != len(port):
        yield Layout(None, port)  # as it is, or flattened
    axes = max(len(reference), len(port))
    for order in permutations(range(axes)) if axes <= MAX_AXES else ():
        if order == tuple(range(axes)):
            continue
        if len(reference) >= len(port):  # images become rows of pixels: axes are moved, then merged
            if _merges([reference[axis] for axis in order], port):
                yield Layout(order, port)
        elif _merges(split := [port[axis] for axis in order], reference):
            yield Layout(tuple(order.index(axis) for axis in range(axes)), port, tuple(split))


def crosses(reference: tuple[int, ...], port: tuple[int, ...]) -> bool:
    """Whether one shape becomes the other only across axes, the first too: an image and windows of it."""
    if len(reference) == len(port) or reference[:1] == port[:1]:
        return False
    return not (_merges(reference, port) or _merges(port, reference))


def _merges(fine: Sequence[int], coarse: Sequence[int]) -> bool:
    """Whether neighbours of the one shape make up the other; as many axes must be the same."""
    if len(fine) == len(coarse):
        return tuple(fine) == tuple(coarse)
    wanted, product = list(without_ones(coarse)), 1
    for extent in without_ones(fine):
        product *= extent
        if wanted and product == wanted[0]:
            wanted, product = wanted[1:], 1
    return not wanted and product == 1


def same_extents(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether two shapes have the same extents in any order, ones aside."""
    return sorted(without_ones(one)) == sorted(without_ones(other))


def fit(reference: Array, port: Array, *, may_move: bool = True) -> Layout | None:
    """The layout under which the two agree best; None when no layout fits the shapes.

    Without ``may_move`` tensors of the same shape lie the same, whatever their values say.
    """
    if not may_move and reference.shape == port.shape:
        return Layout(None, port.shape)
    candidates = layouts(reference.shape, port.shape)
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    plain = candidates[0]
    if distance(plain.apply(reference), port) < SAME:
        return plain
    best = min(candidates, key=lambda layout: distance(layout.apply(reference), port))
    # Of equal ranks only a clear gain speaks for moved axes: a wrong port fits no layout well.
    clear = reference.ndim != port.ndim or distance(best.apply(reference), port) < SAME
    return best if clear else plain


def lay_out(
    reference: Array, port: Array, words: MaskEncoding | None = None, *, may_move: bool = True
) -> tuple[Layout | None, Array]:
    """The layout that ``fit`` finds, and the reference's array in it; as it is where none fits.

    ``words``: how a mask is said in the port, where not as in the reference.
    """
    said = reference if words is None else words.said(reference)
    layout = fit(said, port, may_move=may_move)
    if layout is None:
        return None, reference
    layout = layout if words is None else replace(layout, words=words)
    return layout, layout.apply(reference)


def fitted(reference: Array, port: Array) -> Array | None:
    """The reference's array laid out as the port's; None when no layout fits the shapes."""
    layout, laid_out = lay_out(reference, port)
    return None if layout is None else laid_out


def without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent != 1)


def distance(a: Array, b: Array) -> float:
    """Relative distance over a regular sample of the elements."""
    left, right = (_sample(side).astype(_wide(side)) for side in (a, b))
    same = (left == right) | (np.isnan(left) & np.isnan(right))  # equal infinities have no difference
    apart = np.subtract(left, right, where=~same, out=np.zeros_like(left))
    if not np.isfinite(apart).all():
        return inf
    scale = float(np.linalg.norm(right[np.isfinite(right)]))
    return float(np.linalg.norm(apart)) / scale if scale else float(np.any(apart != 0))


def _sample(array: Array) -> Array:
    """Some elements, in the order of the indices."""
    step = max(1, array.size // _SAMPLE) | 1  # an odd one meets every column
    if array.flags.c_contiguous:
        return array.reshape(-1)[::step]
    sample: Array = array[np.unravel_index(np.arange(0, array.size, step), array.shape)]
    return sample


def _wide(array: Array) -> Any:
    return np.complex128 if array.dtype.kind == "c" else np.float64
