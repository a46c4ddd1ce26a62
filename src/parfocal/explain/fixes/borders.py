"""What a list of paddings means, axis by axis: the frameworks count the axes from different ends.

Most lists begin with the last axis; which ones do not, a framework's dialect says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from parfocal.backends import registry

Borders = tuple[tuple[int, int], ...]  # before and after, of every axis
BY_AXIS = "pad by axis"  # what this is called among an op's arguments


def axes_of(count: int, rank: int, framework: str, words: Mapping[str, Any]) -> list[int]:
    """The axes that a list of so many pairs is about, in its order."""
    return list(registry.dialect(framework).padded_axes(count, rank, words))


def by_axis(pad: Sequence[int], rank: int, axes: Sequence[int]) -> Borders:
    """The two paddings of every axis."""
    found = dict(zip(axes, zip(pad[::2], pad[1::2], strict=True), strict=True))
    return tuple(found.get(axis, (0, 0)) for axis in range(rank))


def listed(borders: Borders, axes: Sequence[int], framework: str) -> list[int]:
    """The list of paddings as a framework takes it, over these axes where possible."""
    if any(any(pair) and axis not in axes for axis, pair in enumerate(borders)):
        axes = axes_of(len(borders), len(borders), framework, {})
    return [value for axis in axes for value in borders[axis]]


def shortest(borders: Borders, framework: str) -> list[int]:
    """The same list, over as few axes as are padded."""
    rank = len(borders)
    first = next((axis for axis, pair in enumerate(borders) if any(pair)), rank - 1)
    count = max(rank - first, registry.dialect(framework).fewest_padded(rank))
    return listed(borders, axes_of(count, rank, framework, {}), framework)
