"""The random-sign projection of a sketch: a few hundred sums of elements with random signs.

Every element, by its index in C order, has a fixed sign and a fixed bucket. Small arrays have an
independent sign for each element, and rows of ``width`` elements that are turned by random angles
onto the buckets. Larger ones are cut into tiles of 64 rows: each column of a tile follows one of
three sign patterns of its quarter of the tile, which small matrix products apply to all columns
at once, and each tile is turned as a whole. So differences that repeat along rows or columns do
not pile up. A pattern's signs sum to plus or minus the root of their number: a difference that is
constant along the columns of a tile comes out exact.

All randomness is SplitMix64 of the seed, the same on every platform and NumPy version.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from parfocal.judge.reading import Array, Scratch

_FLOAT64 = np.dtype(np.float64)
ROWS = 64
PATTERNS = 3  # of a group of columns
GROUPS = 4  # of neighbouring columns in a tile
TILES = 16  # in a block
SMALL = 65536  # elements up to which every element has a sign of its own
_PLUS = 36  # of 64 signs: 36 - 28 == sqrt(64)

_GOLDEN = 0x9E3779B97F4A7C15
_MIX = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_STREAMS = {"element": 1, "order": 2, "flip": 3, "column": 4, "angle": 5, "turn": 6}


def random_bits(seed: int, stream: str, start: int, count: int) -> Array:
    """Numbers ``start`` to ``start + count`` of a SplitMix64 stream, as uint64."""
    state = np.arange(start + 1, start + count + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    state += np.uint64(_origin(seed, stream))
    for shift, factor in _MIX:
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    mixed: Array = state ^ (state >> np.uint64(_LAST_SHIFT))
    return mixed


def _origin(seed: int, stream: str) -> int:
    return (seed * 0xD1342543DE82EF95 + _STREAMS[stream] * 0xA0761D6478BD642F) % 2**64


class Signs(NamedTuple):
    """The tables of one block of tiles."""

    patterns: Array  # (TILES, GROUPS, PATTERNS, ROWS)
    choice: Array  # (TILES, GROUPS, PATTERNS, columns): +-1 at a column's pattern, else 0
    places: Array  # (TILES, width): flat indices of what goes to each bucket when a tile is turned


@lru_cache(maxsize=8)
def element_signs(seed: int) -> Array:
    """The signs of a small array's elements."""
    words = random_bits(seed, "element", 0, SMALL // 64).astype("<u8")
    signs = np.unpackbits(words.view(np.uint8), bitorder="little").astype(np.float64)
    signs *= 2
    signs -= 1
    signs.flags.writeable = False
    return signs


@lru_cache(maxsize=8)
def tile_signs(seed: int, width: int) -> Signs:
    """The tables of every block."""
    shape = (TILES, GROUPS, PATTERNS)
    order = random_bits(seed, "order", 0, math.prod(shape) * ROWS).reshape(*shape, ROWS)
    rank = order.argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
    flip = random_bits(seed, "flip", 0, math.prod(shape)).reshape(*shape, 1) >> np.uint64(63)
    patterns = np.where((rank < _PLUS) ^ flip.astype(np.bool_), 1.0, -1.0)
    column = random_bits(seed, "column", 0, TILES * width).reshape(TILES, GROUPS, 1, -1)
    chosen = (column >> np.uint64(8)) % np.uint64(PATTERNS)
    sign = np.where(column & np.uint64(1), 1.0, -1.0)
    choice = np.where(np.arange(PATTERNS).reshape(-1, 1) == chosen, sign, 0.0)
    tables = Signs(patterns, choice, rotations(seed, TILES, width))
    for table in tables:
        table.flags.writeable = False
    return tables


@lru_cache(maxsize=8)
def tile_flips(seed: int, width: int) -> Array:
    """One bit for every element of a block's tiles, set where its sign is minus: (TILES, ROWS, width / 8)."""
    signs = tile_signs(seed, width)
    each = np.einsum("tgpr,tgpc->trgc", signs.patterns, signs.choice)
    flips = np.packbits(each.reshape(TILES, ROWS, width) < 0, axis=-1, bitorder="little")
    flips.flags.writeable = False
    return flips


@lru_cache(maxsize=8)
def tile_angles(seed: int, rows: int, width: int) -> Array:
    """By how many columns each of so many tiles (or rows of a small array) is turned."""
    angle: Array = (random_bits(seed, "angle", 0, rows) % np.uint64(width)).astype(np.int64)
    return angle


@lru_cache(maxsize=8)
def rotations(seed: int, rows: int, width: int) -> Array:
    """Flat indices that turn every row of a (rows, width) array by its angle."""
    turned = (np.arange(width) + tile_angles(seed, rows, width).reshape(rows, 1)) % width
    places: Array = turned + width * np.arange(rows).reshape(rows, 1)
    places.flags.writeable = False
    return places


def project_small(values: Array, width: int, seed: int) -> Array:
    """The buckets of an array of at most ``SMALL`` elements, in float64."""
    rows = -(-values.size // width)
    padded = np.zeros(rows * width)
    np.multiply(values, element_signs(seed)[: values.size], out=padded[: values.size])
    buckets: Array = padded.take(rotations(seed, -(-SMALL // width), width)[:rows]).sum(axis=0)
    return buckets


def project_block(values: Array, width: int, seed: int, scratch: Scratch) -> Array:
    """The buckets of one block of float64 numbers before its turn."""
    signs = tile_signs(seed, width)
    count = -(-len(values) // (ROWS * width))
    shape = (count, GROUPS, PATTERNS, width // GROUPS)
    product = scratch.get("product", _FLOAT64, math.prod(shape)).reshape(shape)
    np.matmul(signs.patterns[:count], _full_tiles(values, count, width, scratch), out=product)
    signed = np.einsum("tgpc,tgpc->tgc", product, signs.choice[:count]).reshape(count, width)
    buckets: Array = signed.take(signs.places[:count]).sum(axis=0)
    return buckets


def _full_tiles(values: Array, count: int, width: int, scratch: Scratch) -> Array:
    """The block as (tile, group, row, column); an incomplete last tile is filled up with zeros."""
    size = count * ROWS * width
    if len(values) < size:
        padded = scratch.get("padded", _FLOAT64, size)
        padded[: len(values)] = values
        padded[len(values) :] = 0
        values = padded
    tiles: Array = values.reshape(count, ROWS, GROUPS, -1).swapaxes(1, 2)
    return tiles


def turns(seed: int, start: int, count: int, width: int) -> tuple[Array, Array]:
    """By how many columns blocks are turned as a whole, and their signs."""
    words = random_bits(seed, "turn", start, count)
    places = ((words >> np.uint64(8)) % np.uint64(width)).astype(np.int64)
    return places, np.where(words & np.uint64(1), 1.0, -1.0)


def turn(buckets: Array, block: int, seed: int) -> Array:
    """The buckets of block number ``block``, rotated and with a sign."""
    (place,), (sign,) = turns(seed, block, 1, len(buckets))
    turned: Array = sign * np.roll(buckets, -place)
    return turned
