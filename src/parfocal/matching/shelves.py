"""Calls sorted by what they give, so that those that give about the same are found without asking all.

Every call lies on a shelf, by the sizes of its outputs and by how large the values of the first one are:
their sum of magnitudes, their norm and their peak. Shelves are as wide as fingerprints of the same values may
be apart, so what is alike lies on the same shelf or on a neighbour of it.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Iterator
from itertools import product

from parfocal.judge import limits
from parfocal.judge.moments import Fingerprint
from parfocal.matching.values import SAME
from parfocal.replay.trace import Node

_WIDTH = limits.pairing.SHELF_WIDTH.value * SAME

Shelf = tuple[int, ...]


class Shelves:
    """Calls that wait to be taken, each on its shelf in the order of the run."""

    def __init__(self) -> None:
        self._shelves: dict[tuple[tuple[int, ...], Shelf], OrderedDict[int, Node]] = {}

    def put(self, node: Node) -> None:
        """Calls are to come in the order of the run."""
        self._shelves.setdefault(_place(node), OrderedDict())[node.order] = node

    def take(self, node: Node) -> None:
        del self._shelves[_place(node)][node.order]

    def like(self, node: Node) -> Iterator[Node]:
        """Those that may give the same, in the order of the run."""
        sizes, shelf = _place(node)
        found = (self._shelves.get((sizes, near)) for near in _neighbours(shelf))
        return heapq.merge(*(each.values() for each in found if each), key=lambda each: each.order)


def sizes_of(node: Node) -> tuple[int, ...]:
    """How many elements its outputs have."""
    return tuple(value.data.fingerprint.size for value in node.outputs.values())


def _place(node: Node) -> tuple[tuple[int, ...], Shelf]:
    first = next(iter(node.outputs.values()), None)
    return sizes_of(node), () if first is None else _shelf(first.data.fingerprint)


def _shelf(marks: Fingerprint) -> Shelf:
    """No neighbours where all values are zero or not a number."""
    peak = max(abs(marks.minimum or 0.0), abs(marks.maximum or 0.0))
    figures = marks.l1, marks.l2, peak
    if not all(0.0 < figure < math.inf for figure in figures):
        return ()
    return tuple(math.floor(math.log(figure) / _WIDTH) for figure in figures)


def _neighbours(shelf: Shelf) -> Iterator[Shelf]:
    return product(*((each - 1, each, each + 1) for each in shelf))
