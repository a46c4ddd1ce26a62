"""Inputs of a model as a user writes them: ``x=float32[4,3,224,224]``, or a file of arrays."""

from __future__ import annotations

import re
from math import inf
from pathlib import Path
from typing import Any

from parfocal.errors import InputError
from parfocal.phrases import phrase

_INPUT = re.compile(
    r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<dtype>[a-z]+\d*)"
    r"\[\s*(?P<shape>(?:\d+(?:\s*,\s*\d+)*)?)\s*\](?::(?P<range>.+))?"
)


def read_inputs(path: Path) -> Any:
    """Unnamed arrays (``arr_0``, or the only one of an .npy) go by position, named ones by keyword."""
    from parfocal.run.files import load_arrays

    arrays = load_arrays(path)
    for positional in ([""], [f"arr_{index}" for index in range(len(arrays))]):
        if set(arrays) == set(positional):
            return tuple(arrays[name] for name in positional)
    return arrays


def make_inputs(descriptions: list[str], seed: int, option: str = "--input") -> Any:
    """Random arrays for ``x=float32[4,3,224,224]``, ``ids=int64[2,16]:0..1000``; unnamed by position."""
    import numpy as np

    generator = np.random.Generator(np.random.PCG64(seed))
    made: list[tuple[str | None, Any]] = []
    for text in descriptions:
        found = _INPUT.fullmatch(text.strip())
        if found is None:
            raise InputError(
                phrase("{option} {text} is not understood", option=option, text=repr(text)),
                hint=phrase(
                    "write dtype[shape] or name=dtype[shape], e.g. float32[4,3,224,224] or "
                    "ids=int64[2,16]:0..1000"
                ),
            )
        shape = tuple(int(extent) for extent in found["shape"].split(",") if extent.strip())
        made.append((found["name"], _random(generator, found["dtype"], shape, found["range"], text, option)))
    names = [name for name, _ in made]
    if all(name is None for name in names):
        return tuple(array for _, array in made)
    if None in names or len(set(names)) < len(names):
        raise InputError(
            phrase(
                "{option}: name all inputs once each, or none; the names are {names}",
                option=option,
                names=names,
            )
        )
    return dict(made)


def _random(
    generator: Any, dtype: str, shape: tuple[int, ...], limits: str | None, text: str, option: str
) -> Any:
    kind, bounds = _numeric(dtype, text, option), _bounds(limits, text, option)
    try:
        if kind.kind == "b":
            return generator.integers(0, 2, shape).astype(bool)
        if kind.kind in "iu":
            low, high = bounds or (0, 2)
            return generator.integers(int(low), int(high), shape).astype(kind)
        if bounds:
            return generator.uniform(*bounds, shape).astype(kind)
        return generator.standard_normal(shape).astype(kind)
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(
            phrase("{option} {text} cannot be made: {error}", option=option, text=repr(text), error=error)
        ) from error


def _numeric(dtype: str, text: str, option: str) -> Any:
    import numpy as np

    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.kind not in "biufc":
        raise InputError(
            phrase(
                "{option} {text}: there is no dtype {dtype}",
                option=option,
                text=repr(text),
                dtype=repr(dtype),
            ),
            hint=phrase("e.g. float32, int64, bool"),
        )
    return kind


def _bounds(limits: str | None, text: str, option: str) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = (float(each) for each in limits.split("..", 1))
    except ValueError:
        raise InputError(
            phrase(
                "{option} {text}: the range {limits} is not low..high",
                option=option,
                text=repr(text),
                limits=repr(limits),
            )
        ) from None
    if not -inf < low < high < inf:
        raise InputError(
            phrase(
                "{option} {text}: the range {limits} is empty",
                option=option,
                text=repr(text),
                limits=repr(limits),
            )
        )
    return low, high
