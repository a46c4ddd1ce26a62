"""The random-sign projection of a sketch: a few hundred sums of elements with random signs.

Every element, by its index in C order, has a fixed sign and a fixed bucket. Small arrays have an
independent sign for each element and the bucket ``index % width``. Larger ones are cut into
tiles of 64 rows of ``width``: each column of a tile follows one of three sign patterns, which a
small matrix product applies to all columns at once, and whole blocks of tiles are turned by a
random angle, so that differences that repeat along rows or columns do not pile up. A pattern's
signs sum to +-8, which makes a difference that is constant along a full column come out exact.

All randomness is SplitMix64 of the seed, the same on every platform and NumPy version.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from parfocal.judge.reading import Array, Scratch

ROWS = 64
PATTERNS = 3
TILES = 16  # in a block
SMALL = 65536  # elements up to which every element has a sign of its own
_PLUS = 36  # of 64 signs: 36 - 28 == sqrt(64)

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STREAMS = {"element": 1, "order": 2, "flip": 3, "column": 4, "turn": 5}


def random_bits(seed: int, stream: str, start: int, count: int) -> Array:
    """Numbers ``start`` to ``start + count`` of a SplitMix64 stream, as uint64."""
    origin = (seed * 0xD1342543DE82EF95 + _STREAMS[stream] * 0xA0761D6478BD642F) % 2**64
    state = np.arange(start + 1, start + count + 1, dtype=np.uint64) * _GOLDEN + np.uint64(origin)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Array = state ^ (state >> np.uint64(31))
    return mixed


class Signs(NamedTuple):
    """The tables for full tiles: what to multiply tiles with, and what to take from the products."""

    patterns: Array  # (TILES, 1 + PATTERNS, ROWS); row 0 is all ones and gives the plain sums
    choice: Array  # (TILES, 1 + PATTERNS, width): +-1 at the column's pattern, else 0


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
def tile_signs(seed: int, width: int, dtype: np.dtype[Any]) -> Signs:
    """The tables of one block of tiles."""
    shape = (TILES, PATTERNS, ROWS)
    order = random_bits(seed, "order", 0, TILES * PATTERNS * ROWS).reshape(shape)
    rank = order.argsort(axis=-1, kind="stable").argsort(axis=-1, kind="stable")
    flip = random_bits(seed, "flip", 0, TILES * PATTERNS).reshape(TILES, PATTERNS, 1) >> np.uint64(63)
    patterns = np.ones((TILES, 1 + PATTERNS, ROWS), dtype)
    patterns[:, 1:] = np.where((rank < _PLUS) ^ flip.astype(np.bool_), 1, -1)
    column = random_bits(seed, "column", 0, TILES * width).reshape(TILES, 1, width)
    chosen = 1 + (column >> np.uint64(8)) % np.uint64(PATTERNS)
    sign = np.where(column & np.uint64(1), 1, -1)
    choice = np.where(np.arange(1 + PATTERNS).reshape(1, -1, 1) == chosen, sign, 0).astype(dtype)
    patterns.flags.writeable = choice.flags.writeable = False
    return Signs(patterns, choice)


def project_small(values: Array, width: int, seed: int) -> Array:
    """The buckets of an array of at most ``SMALL`` elements, in float64."""
    padded = np.zeros(-(-values.size // width) * width)
    np.multiply(values, element_signs(seed)[: values.size], out=padded[: values.size])
    buckets: Array = padded.reshape(-1, width).sum(axis=0)
    return buckets


def project_lanes(lanes: list[Array], width: int, seed: int, scratch: Scratch) -> tuple[Array, float]:
    """The buckets of one block before its turn, and the sum of its elements.

    Lane ``k`` of ``n`` holds the elements whose index is ``k`` modulo ``n``.
    """
    signs = tile_signs(seed, width, lanes[0].dtype)
    columns = width // len(lanes)
    buckets = np.empty(width)
    total = 0.0
    for place, lane in enumerate(lanes):
        tiles = _full_tiles(lane, columns, scratch)
        count = len(tiles)
        product = scratch.get("product", lane.dtype, count * (1 + PATTERNS) * columns)
        product = product.reshape(count, 1 + PATTERNS, columns)
        np.matmul(signs.patterns[:count], tiles, out=product)
        total += float(product[:, 0].sum(dtype=np.float64))
        choice = signs.choice[:count, :, place :: len(lanes)]
        buckets[place :: len(lanes)] = np.einsum("tpc,tpc->c", product, choice)
    return buckets, total


def _full_tiles(lane: Array, columns: int, scratch: Scratch) -> Array:
    """The lane as tiles; an incomplete last one is filled up with zeros."""
    tile = ROWS * columns
    count = -(-lane.size // tile)
    if lane.size < count * tile:
        padded = scratch.get("padded", lane.dtype, count * tile)
        padded[: lane.size] = lane
        padded[lane.size :] = 0
        lane = padded
    return lane.reshape(count, ROWS, columns)


def turn(buckets: Array, block: int, seed: int) -> Array:
    """The buckets of block number ``block``, rotated and with a sign."""
    bits = int(random_bits(seed, "turn", block, 1)[0])
    place = (bits >> 8) % len(buckets)
    turned: Array = np.concatenate((buckets[place:], buckets[:place]))
    return turned if bits & 1 else -turned
