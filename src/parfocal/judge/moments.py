"""One pass over one array: census, range, sums of powers (its fingerprint) and, if asked for, the projection.

The pass is shared by ``sketch``, ``fingerprint`` and ``stats``. Ordinary float32 and bfloat16 numbers
go through the compiled loop if there is one, everything else through NumPy, which sums in float64.
Complex numbers are read as their real and imaginary parts.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from parfocal.judge.kernels import PIECE, dot, widened
from parfocal.judge.parallel import blocks, run_spans
from parfocal.judge.projection import (
    ROWS,
    SMALL,
    TILES,
    element_signs,
    project_block,
    project_small,
    random_bits,
    tile_angles,
    tile_flips,
    turn,
    turns,
)
from parfocal.judge.reading import Array, Scratch, address_of, admitted, arithmetic, block_reader, memory_of
from parfocal.judge.scaled import Scaled
from parfocal.judge.totals import ZERO
from parfocal.native.library import ANY_EXPONENT, LIBRARY, Projection

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
# Cubes of numbers in this range neither overflow nor lose digits to underflow.
_SAFE = {_FLOAT32: (1e-7, 1e10), _FLOAT64: (1e-90, 1e90)}
_SIX = ctypes.c_double * 6
# Bytes: up to this an array that does not lie in order is copied; a larger one is read in blocks.
_LAID_OUT = 1 << 24
_FARTHEST = 100  # exponents up to this are far from the ends of float32


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The same for every order of the same finite values, up to rounding (1e-7 of ``l1``, ``l2``, ...)."""

    size: int
    sum: float
    l1: float  # sum of magnitudes
    l2: float  # root of the sum of squares
    third: float  # sum of cubes
    minimum: float | None  # None when there is no finite value
    maximum: float | None


@dataclass(slots=True)
class Moments:
    """What one array adds up to; the sums are over its finite values."""

    count: int = 0
    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    places: int = 0  # a number that changes when a non-finite value moves
    minimum: float = math.inf
    maximum: float = -math.inf
    total: float = 0.0
    absolute: Scaled = ZERO
    square: Scaled = ZERO
    cube: Scaled = ZERO
    buckets: Any = field(default=0.0)

    @property
    def finite(self) -> int:
        """How many values are finite."""
        return self.count - self.nan - self.positive_infinity - self.negative_infinity

    def merge(self, other: Moments) -> None:
        """Add what came from a later block."""
        self.count += other.count
        self.nan += other.nan
        self.positive_infinity += other.positive_infinity
        self.negative_infinity += other.negative_infinity
        self.total += other.total
        self.places = (self.places + other.places) % 2**64
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)
        self.absolute = self.absolute.plus(other.absolute)
        self.square = self.square.plus(other.square)
        self.cube = self.cube.plus(other.cube)
        self.buckets = self.buckets + other.buckets


@dataclass(frozen=True, slots=True)
class Pass:
    """What to gather besides census, range, sum and sum of squares."""

    powers: bool = False  # the sums of magnitudes and of cubes
    project: bool = False
    width: int = 256
    seed: int = 0

    @property
    def length(self) -> int:
        """Elements of a block: part of the projection's definition."""
        return TILES * ROWS * self.width


_POWERS = Pass(powers=True)


def real_view(array: Array) -> Array:
    """Complex numbers as pairs of reals along a new last axis; other arrays as they are."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], axis=-1)


def working_dtype(array: Array) -> np.dtype[Any]:
    """float32 for floats of up to 32 bits, else float64."""
    return _FLOAT32 if arithmetic(array.dtype, array.dtype) == _FLOAT32 else _FLOAT64


def gather(array: Array, what: Pass) -> Moments:
    """The moments of an array, over the blocks of a pass; a complex one is seen as ``real_view`` does."""
    array = real_view(array)
    if array.nbytes <= _LAID_OUT and not array.flags.c_contiguous:
        array = np.ascontiguousarray(array)  # a transposed view: its copy is what the compiled loop takes
    whole = _compiled(array, what)
    if whole is not None:
        return whole
    small = what.project and array.size <= SMALL
    blockwise = replace(what, project=what.project and not small)
    read = block_reader(array, working_dtype(array), "actual")

    def span(start: int, stop: int, scratch: Scratch) -> Moments:
        found = Moments()
        with np.errstate(all="ignore"):
            for begin, end in blocks(start, stop, what.length):
                block = _block(read(begin, end, scratch), begin, blockwise, scratch)
                if blockwise.project:
                    block.buckets = turn(block.buckets, begin // what.length, what.seed)
                found.merge(block)
        return found

    moments = Moments()
    # NumPy's many short calls would only wait for each other at the interpreter lock.
    for found in run_spans(array.size, what.length, span, threads=False):
        moments.merge(found)
    if small:
        moments.buckets = _small_buckets(array, what)
    return moments


def fingerprint(array: Any) -> Fingerprint:
    """The fingerprint alone, for those who need neither statistics nor projection."""
    return Fingerprint(**fingerprint_fields(gather(admitted(array, "array"), _POWERS)))


def finite_range(moments: Moments) -> tuple[float | None, float | None]:
    return (moments.minimum, moments.maximum) if moments.finite else (None, None)


def fingerprint_fields(moments: Moments) -> dict[str, Any]:
    """The fields of a fingerprint."""
    low, high = finite_range(moments)
    return {
        "size": moments.count,
        "sum": moments.total,
        "l1": moments.absolute.over(1),
        "l2": moments.square.root(),
        "third": moments.cube.over(1),
        "minimum": low,
        "maximum": high,
    }


def _small_buckets(array: Array, what: Pass) -> Array:
    """The projection of a small array; non-finite values count as 0."""
    flat = array.astype(np.float64).reshape(-1)
    return project_small(np.where(np.isfinite(flat), flat, 0.0), what.width, what.seed)


def _compiled(array: Array, what: Pass) -> Moments | None:
    """What the compiled loop finds, if there is one for arrays like this.

    None also if a value is not finite, or all are nearly 0. Numbers whose cubes would leave the range of
    float32 are multiplied by a power of two.
    """
    memory = None if LIBRARY is None else memory_of(array)
    if LIBRARY is None or memory is None:
        return None
    exponent, found = _scaled_moments(LIBRARY.parfocal_moments, memory, array.size, what, ANY_EXPONENT)
    if not math.isfinite(found.total):
        return None
    reach = max(-found.minimum, found.maximum, 0.0)
    floor, ceiling = _SAFE[_FLOAT32]
    if reach == 0 or floor < math.ldexp(reach, -exponent) < ceiling:
        return found
    exponent = math.frexp(reach)[1]
    if abs(exponent) > _FARTHEST:
        return None
    return _scaled_moments(LIBRARY.parfocal_moments, memory, array.size, what, exponent)[1]


def _scaled_moments(
    function: Any, memory: tuple[int, bool], size: int, what: Pass, wanted: int
) -> tuple[int, Moments]:
    """The moments, powers by way of the numbers times ``2**-exponent``, and that exponent."""
    sums, chosen = _SIX(), ctypes.c_int(wanted)
    buckets: Any = 0.0
    room, by = None, None
    if what.project:
        buckets = np.zeros(what.width)
        room = address_of(buckets)
        by = _tables(what, size)
    if not function(*memory, size, chosen, what.width, by, sums, room):
        raise MemoryError
    exponent = chosen.value
    total, absolute, square, cube, minimum, maximum = sums
    return exponent, Moments(
        count=size,
        minimum=minimum,
        maximum=maximum,
        total=total,
        absolute=Scaled(absolute, exponent),
        square=Scaled(square, 2 * exponent),
        cube=Scaled(cube, 3 * exponent),
        buckets=buckets,
    )


def _tables(what: Pass, size: int) -> _Tables:
    """How an array of this size is projected."""
    if size <= SMALL:
        return _small_projection(what.seed, what.width)
    return _projection(what.seed, -(-size // what.length), what.width)


class _Tables(Projection):
    """A projection together with the arrays that it points into."""

    def __init__(self, **tables: Array) -> None:
        super().__init__(**{name: table.ctypes.data for name, table in tables.items()})
        self.tables = tables


@lru_cache(maxsize=64)
def _projection(seed: int, count: int, width: int) -> _Tables:
    """How so many blocks are projected."""
    places, signs = turns(seed, 0, count, width)
    return _Tables(
        flips=tile_flips(seed, width), angles=tile_angles(seed, TILES, width), turns=places, signs=signs
    )


@lru_cache(maxsize=8)
def _small_projection(seed: int, width: int) -> _Tables:
    """How an array that is a small one is projected."""
    angles = tile_angles(seed, -(-SMALL // width), width)
    return _Tables(angles=angles, elements=element_signs(seed).astype(np.float32))


def _block(values: Array, start: int, what: Pass, scratch: Scratch) -> Moments:
    """A block of float32 or float64 numbers of any kind."""
    low, high = float(np.minimum.reduce(values)), float(np.maximum.reduce(values))
    moments = Moments(count=len(values), minimum=low, maximum=high)
    if not (math.isfinite(low) and math.isfinite(high)):
        values = _set_aside(values, start, moments)
    wide = widened(values, scratch)
    reach = max(-moments.minimum, moments.maximum)
    floor, ceiling = _SAFE[_FLOAT64]
    exponent = 0
    if reach > 0 and not floor < reach < ceiling:
        exponent = math.frexp(reach)[1]
        wide = np.ldexp(wide, -exponent)
    _sums(moments, wide, exponent, what, scratch)
    return moments


def _set_aside(values: Array, start: int, moments: Moments) -> Array:
    """Count the non-finite values by kind, note their places, and put zeros in their stead."""
    moments.nan = int(np.count_nonzero(np.isnan(values)))
    moments.positive_infinity = int(np.count_nonzero(np.isposinf(values)))
    moments.negative_infinity = int(np.count_nonzero(np.isneginf(values)))
    finite = np.isfinite(values)
    for seed, mask in enumerate((np.isnan(values), np.isposinf(values), np.isneginf(values))):
        if mask.any():
            codes = random_bits(seed, "element", start, len(values))[mask]
            moments.places = (moments.places + int(codes.sum(dtype=np.uint64))) % 2**64
    usual = values[finite]
    moments.minimum = float(usual.min()) if usual.size else math.inf
    moments.maximum = float(usual.max()) if usual.size else -math.inf
    return np.where(finite, values, values.dtype.type(0))


def _sums(moments: Moments, values: Array, exponent: int, what: Pass, scratch: Scratch) -> None:
    """Add the sums of powers and the projection of finite ``values * 2**exponent``."""
    sums = np.zeros(4)
    for begin in range(0, len(values), PIECE):
        sums += _powers(values[begin : begin + PIECE], what, scratch)
    total, square, absolute, cube = sums.tolist()
    if what.project:
        moments.buckets = np.ldexp(project_block(values, what.width, what.seed, scratch), exponent)
    moments.total = float(np.ldexp(total, exponent))
    moments.absolute = Scaled(absolute, exponent)
    moments.square = Scaled(square, 2 * exponent)
    moments.cube = Scaled(cube, 3 * exponent)


def _powers(piece: Array, what: Pass, scratch: Scratch) -> tuple[float, float, float, float]:
    """The sums of values, squares, magnitudes and cubes; the last two 0 if they are not asked for."""
    if not what.powers:
        return dot(piece), dot(piece, piece), 0.0, 0.0
    work = scratch.get("work", _FLOAT64, len(piece))
    absolute = dot(np.abs(piece, out=work))
    np.square(piece, out=work)
    return dot(piece), dot(work), absolute, dot(work, piece)
