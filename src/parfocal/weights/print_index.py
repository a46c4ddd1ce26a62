"""Finds fingerprints that are near another one without looking at all of them.

Few are all looked at. Of many, a tree over the numbers that do not depend on the layout gives the
candidates, so that looking up every layer of a deep model costs little more than the depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from parfocal.judge import limits
from parfocal.weights.fingerprint import STRETCHES, WeightFingerprint

FEW = limits.transfer.INDEX_FEW.value
SLACK = limits.transfer.INDEX_SLACK.value

COMPARED_STRETCHES = STRETCHES // 2

Item = TypeVar("Item")
_Figures = Callable[[WeightFingerprint], tuple[float, ...]]


class PrintIndex(Generic[Item]):
    """Items by the fingerprints of their tensors."""

    def __init__(self, items: Iterable[tuple[Item, Sequence[WeightFingerprint]]]) -> None:
        self._items: list[Item] = []
        self._shelves: dict[int, dict[tuple[int, ...], _Shelf]] = {}  # by the size of a tensor and its shape
        self._odd: set[int] = set()  # values that say nothing, which no tree can hold
        for number, (item, prints) in enumerate(items):
            self._items.append(item)
            for each in prints:
                if _is_plain(each):
                    shapes = self._shelves.setdefault(each.size, {})
                    shapes.setdefault(each.shape, _Shelf(each.shape)).add(number, each)
                else:
                    self._odd.add(number)

    def near(self, prints: Sequence[WeightFingerprint], radius: float) -> list[Item]:
        """All items that may be within the radius, in order; some are not."""
        found = set(self._odd)
        for each in prints:
            for shelf in self._shelves.get(each.size, {}).values():
                found.update(shelf.near(each, radius))
        return [self._items[number] for number in sorted(found)]

    def nearest(self, prints: Sequence[WeightFingerprint], count: int) -> list[Item]:
        """At least the nearest few, judged by the largest tensor, in order."""
        found = set(self._odd)
        largest = max(prints, key=lambda each: each.size, default=None)
        if largest is not None:
            for shelf in self._shelves.get(largest.size, {}).values():
                found.update(shelf.nearest(largest, count))
        return [self._items[number] for number in sorted(found)]


class _Shelf:
    """Tensors of one shape, and the numbers of their items."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._numbers: list[int] = []
        self._prints: list[WeightFingerprint] = []
        self._trees: dict[_Figures, Any] = {}

    def add(self, number: int, each: WeightFingerprint) -> None:
        self._numbers.append(number)
        self._prints.append(each)

    def near(self, wanted: WeightFingerprint, radius: float) -> list[int]:
        if len(self._numbers) <= FEW or not _is_plain(wanted):
            return self._numbers
        figures = _with_stretches if wanted.shape == self._shape else _moments
        inside = self._tree(figures).query_ball_point(figures(wanted), SLACK * radius, p=np.inf)
        return [self._numbers[place] for place in inside]

    def nearest(self, wanted: WeightFingerprint, count: int) -> list[int]:
        if len(self._numbers) <= max(FEW, count) or not _is_plain(wanted):
            return self._numbers
        _, inside = self._tree(_moments).query(_moments(wanted), count, p=np.inf)
        return [self._numbers[place] for place in inside.tolist()]

    def _tree(self, figures: _Figures) -> Any:
        if figures not in self._trees:
            from scipy.spatial import cKDTree

            self._trees[figures] = cKDTree([figures(each) for each in self._prints])
        return self._trees[figures]


def _is_plain(each: WeightFingerprint) -> bool:
    return each.size > 0 and math.isfinite(each.square) and math.isfinite(each.cube) and each.square > 0.0


def _moments(each: WeightFingerprint) -> tuple[float, ...]:
    """What ``distance`` compares whatever the layout, each relative to the tensor itself."""
    peak = max(abs(each.least), abs(each.greatest))
    return (
        math.log(each.absolute),
        math.log(each.square),
        each.total / each.absolute,
        each.cube / (each.square * peak),
        each.least / peak,
        each.greatest / peak,
    )


def _with_stretches(each: WeightFingerprint) -> tuple[float, ...]:
    """What ``distance`` compares of tensors of one shape, as far as it takes to tell most of them apart.

    Behind norms moments are much alike, so the larger a model is, the more of them are near by chance.
    With ``asinh`` a stretch that makes up most of a tensor differs by no more than the slack allows.
    """
    shares = each.stretches[:COMPARED_STRETCHES] * (STRETCHES / each.absolute)
    return (*_moments(each), *np.arcsinh(shares).tolist())
