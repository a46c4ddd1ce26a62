"""Finds fingerprints that are near another one without looking at all of them.

Few are all looked at. Of many, a tree over the numbers that do not depend on the layout gives the
candidates, so that looking up every layer of a deep model costs little more than the depth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from parfocal.judge import limits
from parfocal.weights.fingerprint import WeightFingerprint

FEW = limits.transfer.INDEX_FEW.value
SLACK = limits.transfer.INDEX_SLACK.value

Item = TypeVar("Item")


class PrintIndex(Generic[Item]):
    """Items by the fingerprints of their tensors."""

    def __init__(self, items: Iterable[tuple[Item, Sequence[WeightFingerprint]]]) -> None:
        self._items: list[Item] = []
        self._places: dict[int, list[tuple[int, WeightFingerprint]]] = {}  # by the size of a tensor
        self._trees: dict[int, Any] = {}
        self._odd: set[int] = set()  # values that say nothing, which no tree can hold
        for number, (item, prints) in enumerate(items):
            self._items.append(item)
            for each in prints:
                if _is_plain(each):
                    self._places.setdefault(each.size, []).append((number, each))
                else:
                    self._odd.add(number)

    def near(self, prints: Sequence[WeightFingerprint], radius: float) -> list[Item]:
        """All items that may be within the radius, in order; some are not."""
        found = set(self._odd)
        for each in prints:
            places = self._places.get(each.size, ())
            if len(places) <= FEW or not _is_plain(each):
                found.update(number for number, _ in places)
            else:
                inside = self._tree(each.size).query_ball_point(_numbers(each), SLACK * radius, p=np.inf)
                found.update(places[place][0] for place in inside)
        return [self._items[number] for number in sorted(found)]

    def nearest(self, prints: Sequence[WeightFingerprint], count: int) -> list[Item]:
        """At least the nearest few, judged by the largest tensor, in order."""
        found = set(self._odd)
        largest = max(prints, key=lambda each: each.size, default=None)
        places = [] if largest is None else self._places.get(largest.size, [])
        if largest is None or len(places) <= max(FEW, count) or not _is_plain(largest):
            found.update(number for number, _ in places)
        else:
            _, inside = self._tree(largest.size).query(_numbers(largest), count, p=np.inf)
            found.update(places[place][0] for place in inside.tolist())
        return [self._items[number] for number in sorted(found)]

    def _tree(self, size: int) -> Any:
        if size not in self._trees:
            from scipy.spatial import cKDTree

            self._trees[size] = cKDTree([_numbers(each) for _, each in self._places[size]])
        return self._trees[size]


def _is_plain(each: WeightFingerprint) -> bool:
    return each.size > 0 and math.isfinite(each.square) and math.isfinite(each.cube) and each.square > 0.0


def _numbers(each: WeightFingerprint) -> tuple[float, ...]:
    """What ``distance`` compares, each relative to the tensor itself."""
    peak = max(abs(each.least), abs(each.greatest))
    return (
        math.log(each.absolute),
        math.log(each.square),
        each.total / each.absolute,
        each.cube / (each.square * peak),
        each.least / peak,
        each.greatest / peak,
    )
