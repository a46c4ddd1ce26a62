"""What an error looks like: a factor, an offset, zeros, a border, one channel, a permutation.

Each finding is a fact about two arrays, for people and for the search for a cause. A finding
must be overwhelmingly unlikely by chance: it needs enough elements, and places that would
happen to line up with a probability above one in a million do not count. Differences within
the rounding of the coarser dtype are not looked at.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from parfocal.judge import limits
from parfocal.judge.reading import Array, is_narrow_float
from parfocal.judge.shape_order import find_order, find_transposition
from parfocal.judge.tolerance import Tolerance

CHANCE = limits.causes.CHANCE.value
MINIMUM_ELEMENTS = limits.pairing.AGREE_BY_CHANCE.value
_NOISE_STEPS = limits.causes.SHAPE_NOISE.value
_SLACK = limits.causes.SHAPE_SLACK.value
_SHARE = limits.causes.SHAPE_SHARE.value
_SAMPLE = limits.searches.SHAPE_SAMPLE.value
# Axes that can be spatial, by the number of dimensions: channels first, channels last, no channels.
_SPATIAL = {2: ((0, 1),), 3: ((2,), (1,), (1, 2)), 4: ((2, 3), (1, 2)), 5: ((2, 3, 4), (1, 2, 3))}


@dataclass(frozen=True, slots=True)
class Borders:
    """All differences lie within ``width`` of an edge along one of ``axes``."""

    axes: tuple[int, ...]
    width: int


@dataclass(frozen=True, slots=True)
class AxisIndices:
    """All differences lie at these indices along ``axis``."""

    axis: int
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AxisOrder:
    """``a == b.take(order, axis)``."""

    axis: int
    order: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """Everything found; a field that is None or empty was looked for and not found."""

    differing: int  # elements that differ by more than the tolerance, or than rounding
    factor: float | None = None  # a == factor * b
    offset: float | None = None  # a == b + offset
    zero_side: str | None = None  # "a" or "b": exactly zero wherever the two differ
    borders: Borders | None = None
    indices: tuple[AxisIndices, ...] = ()
    order: AxisOrder | None = None
    transposed: tuple[int, ...] | None = None  # a == b.transpose(transposed)
    reshaped: bool = False  # a == (b, or its transposition).reshape(a.shape)


@dataclass(frozen=True, slots=True)
class _Pair:
    """The two arrays in a working dtype, with the size of rounding at each element."""

    a: Array
    b: Array
    noise: Array
    finite: Array
    differs: Array


def error_shape(actual: Array, reference: Array, tolerance: Tolerance) -> ErrorShape:
    """Look for every known shape in the difference of two arrays of one shape.

    Needs a few times the memory of the arrays.
    """
    with np.errstate(all="ignore"):
        pair = _pair(actual, reference, tolerance)
        differing = int(np.count_nonzero(pair.differs))
        factor, offset = _fits(pair)
        if not differing:
            return ErrorShape(0, factor=factor, offset=offset)
        transposed, reshaped = find_transposition(pair.a, pair.b, pair.noise, CHANCE)
        order = find_order(pair.a, pair.b, pair.noise, CHANCE)
    return ErrorShape(
        differing,
        factor=factor,
        offset=offset,
        zero_side=_zero_side(pair),
        borders=_borders(pair.differs),
        indices=_indices(pair.differs),
        order=None if order is None else AxisOrder(*order),
        transposed=transposed,
        reshaped=reshaped,
    )


def layout_shape(actual: Array, reference: Array, tolerance: Tolerance) -> ErrorShape | None:
    """For arrays of different shapes: whether they hold the same values in another layout."""
    if actual.size != reference.size or actual.size == 0:
        return None
    with np.errstate(all="ignore"):
        flat = _pair(actual.reshape(-1), reference.reshape(-1), tolerance)
        differing = int(np.count_nonzero(flat.differs))
        if not differing:
            return ErrorShape(0, reshaped=True)
        a, b = flat.a.reshape(actual.shape), flat.b.reshape(reference.shape)
        transposed, reshaped = find_transposition(a, b, flat.noise, CHANCE)
    return ErrorShape(differing, transposed=transposed, reshaped=reshaped)


def _pair(actual: Array, reference: Array, tolerance: Tolerance) -> _Pair:
    narrow = all(array.dtype.itemsize <= 4 and array.dtype.kind in "fV" for array in (actual, reference))
    wide: Any = np.float32 if narrow else np.float64
    if "c" in (actual.dtype.kind, reference.dtype.kind):
        wide = np.complex128
    a, b = actual.astype(wide), reference.astype(wide)
    finite = np.isfinite(a) & np.isfinite(b)
    magnitude = np.where(finite, np.abs(b), 0)
    eps = max(_eps(actual.dtype), _eps(reference.dtype))
    scale = math.sqrt(float(np.mean(np.square(magnitude, dtype=np.float64)))) if a.size else 0.0
    noise = _NOISE_STEPS * eps * np.maximum(magnitude, magnitude.dtype.type(scale))
    if not tolerance.exact:
        noise = np.maximum(noise, tolerance.atol + tolerance.rtol * magnitude)
    agreeing = (a == b) | (np.isnan(a) & np.isnan(b))
    differs = np.where(finite, np.abs(a - b) > noise, ~agreeing)
    return _Pair(a, b, noise, finite, differs)


def _eps(dtype: np.dtype[Any]) -> float:
    """The distance from 1 to the next number; 0 for integers."""
    if is_narrow_float(dtype):
        finfo: Any = ml_dtypes.finfo  # knows the extension floats, but has no annotations
        return float(finfo(dtype).eps)
    return float(np.finfo(dtype).eps) if dtype.kind in "fc" else 0.0


def _fits(pair: _Pair) -> tuple[float | None, float | None]:
    """A constant factor and a constant offset; the better one when only one of them is exact."""
    if pair.a.dtype.kind == "c" or np.count_nonzero(pair.finite) < MINIMUM_ELEMENTS:
        return None, None
    a, b, noise = pair.a[pair.finite], pair.b[pair.finite], pair.noise[pair.finite] / 2
    factor, factor_rest = _fit(a, b, noise, _median_ratio(a, b), multiply=True)
    offset, offset_rest = _fit(a, b, noise, float(np.median(_sample(a - b))), multiply=False)
    if factor is not None and offset is not None:
        if factor_rest < 0.5 * offset_rest:
            offset = None
        elif offset_rest < 0.5 * factor_rest:
            factor = None
    return factor, offset


def _fit(
    a: Array, b: Array, noise: Array, value: float | None, *, multiply: bool
) -> tuple[float | None, float]:
    """``value`` if it explains the change of nearly every element it should change, and the rest."""
    if value is None or not math.isfinite(value):
        return None, math.inf
    change = (value - 1) * b if multiply else np.full_like(b, value)
    rest = np.abs(a - b - change)
    telling = np.abs(change) > 4 * noise
    explained = rest <= _SLACK * np.abs(change) + noise
    enough = np.count_nonzero(telling) >= MINIMUM_ELEMENTS
    if not enough or explained.mean() < _SHARE or explained[telling].mean() < _SHARE:
        return None, math.inf
    return value, float(np.sqrt(np.mean(np.square(rest, dtype=np.float64))))


def _median_ratio(a: Array, b: Array) -> float | None:
    """The typical a / b, over the larger half of b, where it is well determined."""
    a, b = _sample(a), _sample(b)
    usable = np.abs(b) > 0
    if not usable.any():
        return None
    usable &= np.abs(b) >= np.median(np.abs(b[usable]))
    return float(np.median(a[usable].astype(np.float64) / b[usable]))


def _sample(values: Array) -> Array:
    return values[:: max(1, values.size // _SAMPLE)]


def _zero_side(pair: _Pair) -> str | None:
    """The side that is zero at every difference (and the other one is not, since they differ)."""
    if np.count_nonzero(pair.differs) < MINIMUM_ELEMENTS:
        return None
    zero = [bool((values[pair.differs] == 0).all()) for values in (pair.a, pair.b)]
    return "a" if zero[0] else "b" if zero[1] else None


def _borders(differs: Array) -> Borders | None:
    """The narrowest frame that holds every difference and leaves an interior without any."""
    count = int(np.count_nonzero(differs))
    found: list[tuple[float, Borders]] = []
    for axes in _SPATIAL.get(differs.ndim, ()):
        lengths = [differs.shape[axis] for axis in axes]
        if min(lengths) < 3:
            continue
        depth = _depth_from_edge(lengths)
        others = tuple(axis for axis in range(differs.ndim) if axis not in axes)
        cells = differs.any(axis=others)
        width = int(depth[cells].max()) + 1
        frame = depth < width
        share = float(frame.mean())
        filled = np.count_nonzero(cells) >= 0.4 * np.count_nonzero(frame)
        if width <= max(1, min(lengths) // 4) and filled and share**count < CHANCE:
            found.append((share, Borders(axes, width)))
    return min(found, key=lambda item: item[0])[1] if found else None


def _depth_from_edge(lengths: list[int]) -> Array:
    """For each cell of a grid its distance to the nearest edge."""
    grids = np.ix_(*(np.minimum(np.arange(n), np.arange(n)[::-1]) for n in lengths))
    depth: Array = grids[0]
    for grid in grids[1:]:
        depth = np.minimum(depth, grid)
    return depth


def _indices(differs: Array) -> tuple[AxisIndices, ...]:
    """Axes along which the differences lie at few indices."""
    count = int(np.count_nonzero(differs))
    found = []
    for axis, length in enumerate(differs.shape):
        others = tuple(other for other in range(differs.ndim) if other != axis)
        hit = np.flatnonzero(differs.any(axis=others))
        few = len(hit) <= max(1, length // 8) and len(hit) < length
        # The first difference may lie anywhere; each further one had to fall on the same indices.
        ways = math.comb(length, len(hit)) if few else 0
        if few and ways * (len(hit) / length) ** count < CHANCE:
            found.append(AxisIndices(axis, tuple(int(index) for index in hit)))
    return tuple(found)
