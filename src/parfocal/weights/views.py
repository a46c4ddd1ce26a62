"""Views: ways of looking at a tensor's memory, as data.

A view is a tuple of four kinds of steps (transpose, reshape, slice, index), each of which is a
NumPy view of the same memory. An entry of a plan copies a view of one tensor onto a view of
another, so layouts are converted without intermediate arrays, and a view can be written to JSON.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.brief import brief
from parfocal.errors import InputError
from parfocal.phrases import phrase

Array = NDArray[Any]
Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ViewStep:
    """One step: ``kind`` is "transpose", "reshape", "slice" or "index"; ``numbers`` its arguments.

    transpose: the permutation of the axes; reshape: the new shape; slice: axis, start, stop;
    index: axis, position (the axis disappears).
    """

    kind: str
    numbers: tuple[int, ...]


View = tuple[ViewStep, ...]
IDENTITY: View = ()


def transpose(*permutation: int) -> ViewStep:
    return ViewStep("transpose", permutation)


def reshape(*shape: int) -> ViewStep:
    return ViewStep("reshape", shape)


def part(axis: int, start: int, stop: int) -> ViewStep:
    return ViewStep("slice", (axis, start, stop))


def index(axis: int, position: int) -> ViewStep:
    return ViewStep("index", (axis, position))


def _transposed(shape: Shape, numbers: tuple[int, ...]) -> Shape | None:
    if sorted(numbers) != list(range(len(shape))):
        return None
    return tuple(shape[axis] for axis in numbers)


def _reshaped(shape: Shape, numbers: tuple[int, ...]) -> Shape | None:
    fits = all(number >= 0 for number in numbers) and math.prod(numbers) == math.prod(shape)
    return numbers if fits else None


def _sliced(shape: Shape, numbers: tuple[int, ...]) -> Shape | None:
    if len(numbers) != 3 or not 0 <= numbers[0] < len(shape):
        return None
    axis, start, stop = numbers
    if not 0 <= start < stop <= shape[axis]:
        return None
    return (*shape[:axis], stop - start, *shape[axis + 1 :])


def _indexed(shape: Shape, numbers: tuple[int, ...]) -> Shape | None:
    if len(numbers) != 2 or not 0 <= numbers[0] < len(shape):
        return None
    axis, position = numbers
    if not 0 <= position < shape[axis]:
        return None
    return (*shape[:axis], *shape[axis + 1 :])


_SHAPES = {"transpose": _transposed, "reshape": _reshaped, "slice": _sliced, "index": _indexed}


def shape_of(view: View, shape: Shape) -> Shape:
    """The shape that a view of a tensor of this shape has."""
    for step in view:
        known = _SHAPES.get(step.kind)
        if known is None:
            raise InputError(
                phrase(
                    "there is no view step {kind}; the steps are: {known}",
                    kind=repr(step.kind),
                    known=", ".join(_SHAPES),
                ),
            )
        after = known(shape, step.numbers)
        if after is None:
            raise InputError(
                phrase(
                    "the view step {step} does not fit a tensor of shape {shape}",
                    step=describe((step,)),
                    shape=list(shape),
                ),
                hint=phrase(
                    "transpose names every axis once, reshape keeps the number of elements, slice "
                    "(axis, start, stop) and index (axis, position) stay inside the shape"
                ),
            )
        shape = after
    return shape


def apply(view: View, array: Array) -> Array:
    """The view of an array; it shares the array's memory."""
    shape_of(view, array.shape)
    array = np.asarray(array)  # arithmetic on an array without axes gives a number, which has no memory
    for step in view:
        array = _apply(step, array)
    return array


def _apply(step: ViewStep, array: Array) -> Array:
    if step.kind == "transpose":
        return np.transpose(array, step.numbers)
    if step.kind == "reshape":
        return _reshape(array, step.numbers)
    axis = step.numbers[0]
    which: Any = slice(*step.numbers[1:]) if step.kind == "slice" else step.numbers[1]
    chosen: Array = array[(slice(None),) * axis + (which, ...)]
    return chosen


def _reshape(array: Array, shape: Shape) -> Array:
    reshaped = array.reshape(shape)
    if array.size and not np.may_share_memory(array, reshaped):
        raise InputError(
            phrase(
                "a tensor of shape {shape} in this memory order cannot be viewed as {wanted}",
                shape=list(array.shape),
                wanted=list(shape),
            ),
            hint=phrase("reshape before transposing, or split one axis at a time"),
        )
    return reshaped


def describe(view: View) -> str:
    """A view in words: ``transpose(1, 0), slice(0, 0:64)``."""
    return ", ".join(_words(step) for step in view)


def _words(step: ViewStep) -> str:
    if step.kind == "slice" and len(step.numbers) == 3:
        axis, start, stop = step.numbers
        return f"slice(axis {axis}, {start}:{stop})"
    if step.kind == "index" and len(step.numbers) == 2:
        return f"index(axis {step.numbers[0]}, {step.numbers[1]})"
    return f"{step.kind}({', '.join(map(str, step.numbers))})"


def to_json(view: View) -> list[list[Any]]:
    """``[["transpose", 1, 0], ...]``."""
    return [[step.kind, *step.numbers] for step in view]


def from_json(value: Any) -> View:
    """The inverse of ``to_json``; an InputError for anything else."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(phrase("a view is a list of steps, not {value}", value=brief(value)))
    return tuple(_step(item) for item in value)


def _step(item: Any) -> ViewStep:
    if (
        not isinstance(item, Sequence)
        or isinstance(item, str)
        or not item
        or item[0] not in _SHAPES
        or not all(isinstance(number, int) and not isinstance(number, bool) for number in item[1:])
    ):
        raise InputError(
            phrase("{item} is not a view step", item=brief(item)),
            hint=phrase(
                'write ["transpose", 1, 0], ["reshape", 3, 64], ["slice", axis, start, stop] or '
                '["index", axis, position]'
            ),
        )
    return ViewStep(item[0], tuple(item[1:]))
