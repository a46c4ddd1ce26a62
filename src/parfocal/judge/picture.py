"""A small picture of a difference: how its values are spread, and where in the tensor they sit.

A few kilobytes whatever the size of the arrays, made from a sample of them, for a person to look at. Nothing
is judged by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parfocal.judge.reading import Array

FEWEST = 2  # elements that a picture shows more of than a number does
SAMPLE = 1 << 17  # elements that are looked at
BINS = 41  # of a histogram; odd, so that zero is in the middle of one
CELLS = (24, 48)  # rows and columns of a heat map, at most
DECADES = 6  # below the largest that a heat map tells apart
LEVELS = 255


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many of the sampled differences (port minus reference) lie in each of equal bins."""

    low: float
    high: float
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Root mean squares of the difference over two groups of axes; the other axes are summed up.

    ``levels``: a row of cells is a text with two hexadecimal digits a cell. Level 255 is ``peak``, every step
    below it a factor of ``10 ** (-6 / 255)``, and 0 is zero or next to it.
    """

    row_axes: tuple[int, ...]
    column_axes: tuple[int, ...]
    lengths: tuple[int, int]  # of the two groups in the tensor
    peak: float
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ErrorPicture:
    """Both, of one pair of tensors."""

    sampled: int
    histogram: Histogram | None  # None: no difference is finite
    maps: tuple[HeatMap, ...]


def picture_of(actual: Array, reference: Array) -> ErrorPicture | None:
    """None where the two have different shapes, or there is but one number to look at."""
    if actual.shape != reference.shape or actual.size < FEWEST:
        return None
    part = tuple(slice(None, None, step) for step in _steps(actual.shape))
    with np.errstate(all="ignore"):
        difference = _difference(actual[part], reference[part])
        finite = np.isfinite(difference)
        size = float(np.abs(difference).max(initial=0.0, where=finite)) or 1.0
        scaled = difference / size  # so that no square overflows or vanishes
        squares = np.square(scaled)
        if not finite.all():
            squares = np.where(finite, squares, math.inf)
            scaled = scaled[finite]
        groups = _groups(actual.ndim)
        if len(groups) > 1:  # of images, which no map tells apart
            squares = squares.mean(axis=0, dtype=np.float64, keepdims=True)
        maps = tuple(_heat_map(squares, size, actual.shape, rows, columns) for rows, columns in groups)
        histogram = _histogram(scaled.reshape(-1), size)
    return ErrorPicture(int(difference.size), histogram, maps)


def _difference(a: Array, b: Array) -> Array:
    """Port minus reference; of complex numbers the distance. Zero where both are the same infinity or NaN."""
    kinds = {array.dtype for array in (a, b)}
    if kinds != {np.dtype(np.float32)}:
        wide = np.complex128 if any(kind.kind == "c" for kind in kinds) else np.float64
        a, b = a.astype(wide), b.astype(wide)
    difference: Array = a - b
    if a.dtype.kind == "c":
        difference = np.abs(difference)
    if not np.isfinite(difference).all():
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        difference = np.where(same, difference.dtype.type(0), difference)
    return difference


def _steps(shape: tuple[int, ...]) -> list[int]:
    """Every which index of each axis is looked at: fewer of the batch first, then of the longest axis."""
    steps = [1] * len(shape)
    lengths = list(shape)
    while math.prod(lengths) > SAMPLE:
        axis = 0 if len(shape) > 1 and lengths[0] > 1 else int(np.argmax(lengths))
        steps[axis] *= 2
        lengths[axis] = -(-shape[axis] // steps[axis])
    return steps


def _groups(dimensions: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Which axes go down and which go across: of images the channels against the places, and the places."""
    if dimensions < 2:
        return [((), tuple(range(dimensions)))]
    if dimensions < 4:
        return [((dimensions - 2,), (dimensions - 1,))]
    return [((1,), tuple(range(2, dimensions))), ((dimensions - 2,), (dimensions - 1,))]


def _histogram(scaled: Array, size: float) -> Histogram | None:
    """Of differences between -1 and 1, in units of ``size``."""
    if not scaled.size:
        return None
    bins = np.clip((scaled + 1) * (BINS / 2), 0, BINS - 1).astype(np.intp)
    return Histogram(-size, size, tuple(map(int, np.bincount(bins, minlength=BINS))))


def _heat_map(
    squares: Array, size: float, shape: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...]
) -> HeatMap:
    """``squares``: of the differences in units of ``size``."""
    others = tuple(axis for axis in range(squares.ndim) if axis not in (*rows, *columns))
    lengths = [math.prod(squares.shape[axis] for axis in axes) for axes in (rows, columns)]
    cells = squares.mean(axis=others, dtype=np.float64).reshape(lengths)
    for axis, most in enumerate(CELLS):
        cells = _pooled(cells, axis, most)
    values = np.sqrt(cells) * size
    finite = values[np.isfinite(values)]
    peak = float(finite.max(initial=0.0))
    whole = tuple(math.prod(shape[axis] for axis in axes) for axes in (rows, columns))
    return HeatMap(rows, columns, (whole[0], whole[1]), peak, tuple(map(_digits, _levels(values, peak))))


def _pooled(cells: Array, axis: int, most: int) -> Array:
    """The mean of neighbours, so that at most so many are left."""
    length = cells.shape[axis]
    if length <= most:
        return cells
    edges = np.arange(most + 1) * length // most
    counts = np.diff(edges).reshape((-1, 1) if axis == 0 else (1, -1))
    sums: Array = np.add.reduceat(cells, edges[:-1], axis=axis)
    pooled: Array = sums / counts
    return pooled


def _levels(values: Array, peak: float) -> Array:
    if not peak:
        return np.where(np.isfinite(values), 0, LEVELS).astype(np.uint8)
    with np.errstate(divide="ignore"):
        below = np.log10(values / peak) / DECADES
    return np.clip(np.rint(LEVELS * (1 + below)), 0, LEVELS).astype(np.uint8)


def _digits(row: Array) -> str:
    return row.tobytes().hex()
