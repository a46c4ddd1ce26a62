"""A small picture of a difference: how its values are spread, and where in the tensor they sit.

A few kilobytes whatever the size of the arrays, made from a sample of them, for a person to look at. Nothing
is judged by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from parfocal.judge.reading import Array

SAMPLE = 1 << 15  # elements that are looked at
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
    """None where the two have different shapes or no elements."""
    if actual.shape != reference.shape or not actual.size:
        return None
    steps = _steps(actual.shape)
    part = tuple(slice(None, None, step) for step in steps)
    kind = np.complex128 if "c" in (actual.dtype.kind, reference.dtype.kind) else np.float64
    with np.errstate(all="ignore"):
        a, b = actual[part].astype(kind), reference[part].astype(kind)
        difference = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, a - b)
        if kind is np.complex128:
            difference = np.abs(difference)
        maps = tuple(
            _heat_map(difference, actual.shape, rows, columns) for rows, columns in _groups(actual.ndim)
        )
    return ErrorPicture(int(difference.size), _histogram(difference), maps)


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


def _histogram(difference: Array) -> Histogram | None:
    finite = difference[np.isfinite(difference)].real
    if not finite.size:
        return None
    reach = float(np.abs(finite).max()) or 1.0
    counts, _ = np.histogram(finite / reach, bins=BINS, range=(-1.0, 1.0))
    return Histogram(-reach, reach, tuple(map(int, counts)))


def _heat_map(
    difference: Array, shape: tuple[int, ...], rows: tuple[int, ...], columns: tuple[int, ...]
) -> HeatMap:
    others = tuple(axis for axis in range(difference.ndim) if axis not in (*rows, *columns))
    lengths = [[difference.shape[axis] for axis in axes] for axes in (rows, columns)]
    size = float(np.abs(difference[np.isfinite(difference)]).max(initial=0.0)) or 1.0
    flat = np.transpose(difference / size, (*rows, *columns, *others))
    squares = np.square(np.abs(flat.reshape(math.prod(lengths[0]), math.prod(lengths[1]), -1)))
    cells = np.where(np.isfinite(squares), squares, math.inf).mean(axis=2)
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
