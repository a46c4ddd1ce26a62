"""How a part lies in the rows of a larger tensor: in one piece, or interleaved with the others in groups.

Whoever packs layers into one (q, k and v; gate and up) does one or the other. The search for a layout goes
through orders of the parts and numbers of groups; here are the orders, and the view that each of them means.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import TypeVar

from parfocal.weights.units import Unit
from parfocal.weights.views import IDENTITY, Shape, View, part, reshape

Item = TypeVar("Item")


def rows_view(shape: Shape, start: int, size: int, groups: int, *, interleaved: bool) -> View:
    """``size`` rows with ``start`` rows of other parts before them, as ``[groups, rows in a group, ...]``.

    Interleaved, every group of the tensor has its share of each part, in the order of the parts.
    """
    rest = shape[1:]
    if interleaved and groups > 1:
        width, first = size // groups, start // groups
        return reshape(groups, shape[0] // groups, *rest), part(1, first, first + width)
    whole = IDENTITY if size == shape[0] else (part(0, start, start + size),)
    return whole if groups == 1 else (*whole, reshape(groups, size // groups, *rest))


def orders(parts: Iterable[Item], first: tuple[Item, ...] | None = None) -> Iterator[tuple[Item, ...]]:
    """Every order of parts or axes: ``first``, if there is one, and then all others, the plainest first."""
    if first is not None:
        yield first
    yield from (order for order in itertools.permutations(parts) if order != first)


def said_heads(units: Iterable[Unit], size: int) -> Iterator[int]:
    """Numbers of heads that modules say; a negative one is what they say of a head's size."""
    for number in (number for unit in units for number in unit.heads):
        if number > 0 or size % -number == 0:
            yield number if number > 0 else size // -number
