"""Copies views onto views at the speed of memory.

NumPy's own copy of a transposed matrix walks one side against the grain and misses the cache at
every element; cut into strips it stays inside it. Strips of all copies go to a few threads, because
NumPy lets go of the interpreter lock while it copies.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Copy = tuple[Array, Array]  # target, source: views of equal shape

STRIP = 64  # elements of the target's contiguous axis: a few cache lines
PIECE = 1 << 20  # elements that one task copies, enough to hide the price of handing it over
THREADS = 4


def copy_all(copies: Iterable[Copy]) -> None:
    """``target[...] = source`` for every pair; equal dtypes bit by bit, others converted."""
    tasks = list(_tasks(piece for copy in copies for piece in _pieces(*_comparable(*copy))))
    workers = min(THREADS, os.cpu_count() or 1, len(tasks))
    if workers <= 1:
        for task in tasks:
            _copy_each(task)
        return
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(_copy_each, tasks))


def _tasks(pieces: Iterable[Copy]) -> Iterator[list[Copy]]:
    """Small pieces together, as many as make a large one: each task has a price of its own."""
    task: list[Copy] = []
    size = 0
    for piece in pieces:
        if task and size + piece[0].size > PIECE:
            yield task
            task, size = [], 0
        task.append(piece)
        size += piece[0].size
    if task:
        yield task


def _comparable(target: Array, source: Array) -> Copy:
    """Equal dtypes as plain integers: the bits travel as they are, whatever they mean."""
    if target.dtype == source.dtype and target.dtype.itemsize in (1, 2, 4, 8):
        bits = f"u{target.dtype.itemsize}"
        return target.view(bits), source.view(bits)
    return target, source


def _pieces(target: Array, source: Array) -> Iterator[Copy]:
    """Cut along the longest axis until a piece is small."""
    if target.size <= PIECE:
        yield target, source
        return
    axis = int(np.argmax(target.shape))
    length = target.shape[axis]
    count = min(length, -(-target.size // PIECE))
    edges = [length * cut // count for cut in range(count + 1)]
    before = (slice(None),) * axis
    for start, stop in itertools.pairwise(edges):
        piece = (*before, slice(start, stop))
        yield target[piece], source[piece]


def _copy_each(pieces: Iterable[Copy]) -> None:
    for piece in pieces:
        _copy(piece)


def _copy(piece: Copy) -> None:
    target, source = piece
    axis = _fastest(target)
    if axis is None or axis == _fastest(source) or target.shape[axis] <= STRIP:
        np.copyto(target, source, casting="unsafe")
        return
    before = (slice(None),) * axis
    for start in range(0, target.shape[axis], STRIP):
        strip = (*before, slice(start, start + STRIP))
        np.copyto(target[strip], source[strip], casting="unsafe")


def _fastest(array: Array) -> int | None:
    """The axis whose neighbours lie next to each other in memory."""
    steps = [(abs(step), axis) for axis, step in enumerate(array.strides) if array.shape[axis] > 1]
    return min(steps)[1] if steps else None
