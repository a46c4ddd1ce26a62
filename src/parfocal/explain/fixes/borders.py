"""What a list of paddings means, axis by axis: the frameworks count the axes from different ends.

PyTorch's list begins with the last axis. Paddle's does too, but for a list of every axis, which begins
with the first, and for channels that come last, which are no axis of the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Borders = tuple[tuple[int, int], ...]  # before and after, of every axis
BY_AXIS = "pad by axis"  # what this is called among an op's arguments
PICTURES = (3, 4, 5)  # numbers of axes of what has channels


def axes_of(count: int, rank: int, framework: str, words: Mapping[str, Any]) -> list[int]:
    """The axes that a list of so many pairs is about, in its order."""
    if framework == "paddle" and count == rank - 2 and rank in PICTURES:
        last = str(words.get("data_format") or "").upper().endswith("C")
        return list(range(rank - 2, 0, -1) if last else range(rank - 1, 1, -1))
    if framework == "paddle" and count == rank and words.get("pad_from_left_axis", True):
        return list(range(rank))
    return list(range(rank - 1, rank - 1 - count, -1))


def by_axis(pad: Sequence[int], rank: int, axes: Sequence[int]) -> Borders:
    """The two paddings of every axis."""
    found = dict(zip(axes, zip(pad[::2], pad[1::2], strict=True), strict=True))
    return tuple(found.get(axis, (0, 0)) for axis in range(rank))


def listed(borders: Borders, axes: Sequence[int], framework: str) -> list[int]:
    """The list that says so in a framework, of these axes if it can be."""
    if any(any(pair) and axis not in axes for axis, pair in enumerate(borders)):
        axes = axes_of(len(borders), len(borders), framework, {})
    return [value for axis in axes for value in borders[axis]]


def shortest(borders: Borders, framework: str) -> list[int]:
    """The same, of as few axes as are padded."""
    rank = len(borders)
    first = next((axis for axis, pair in enumerate(borders) if any(pair)), rank - 1)
    count = rank - first
    if framework == "paddle" and rank in PICTURES and count < rank - 2:
        count = rank - 2  # fewer are read otherwise in some modes
    return listed(borders, axes_of(count, rank, framework, {}), framework)
