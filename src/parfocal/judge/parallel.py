"""Runs a job over the flat index range of an array: in spans, on a few threads, in bounded memory.

The spans depend on the array's size alone and their results come back in order, so a result
does not depend on the number of threads or on their timing. NumPy releases the interpreter
lock inside its loops, which is where nearly all of the time goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from queue import LifoQueue
from typing import TypeVar

from parfocal.judge.reading import Scratch

Result = TypeVar("Result")

THREADED_BLOCKS = 2  # below this many blocks starting threads costs more than it saves
SPANS = 32
MAX_WORKERS = 3  # bounds the scratch memory, about 9 MB each; memory bandwidth is the limit anyway


def blocks(start: int, stop: int, length: int) -> Iterator[tuple[int, int]]:
    """The blocks of one span."""
    for begin in range(start, stop, length):
        yield begin, min(begin + length, stop)


def run_spans(
    size: int, length: int, job: Callable[[int, int, Scratch], Result], *, threads: bool = True
) -> Iterator[Result]:
    """``job(start, stop, scratch)`` for every span of ``range(size)``; results in order.

    A span is a whole number of blocks of ``length`` elements, but for the last. A job of many short
    calls does better without ``threads``: they would wait for each other at the interpreter lock.
    """
    count = -(-size // length)
    width = -(-count // SPANS) * length
    spans = [(start, min(start + width, size)) for start in range(0, size, width or 1)]
    workers = min(_cores(), MAX_WORKERS)
    free, pool = _workers(os.getpid(), workers)

    def borrowed(span: tuple[int, int]) -> Result:
        scratch = free.get()
        try:
            return job(*span, scratch)
        finally:
            free.put(scratch)

    try:
        if not threads or count < THREADED_BLOCKS or workers < 2:
            yield from map(borrowed, spans)
        else:
            yield from pool.map(borrowed, spans)
    finally:
        for scratch in [free.get() for _ in range(workers)]:
            scratch.trim()
            free.put(scratch)


@lru_cache(maxsize=1)
def _workers(process: int, workers: int) -> tuple[LifoQueue[Scratch], ThreadPoolExecutor]:
    """Buffers and threads that stay: for an array of a megabyte both cost as much as the work.

    A forked process has none of its parent's threads, so it gets its own.
    """
    free: LifoQueue[Scratch] = (
        LifoQueue()
    )  # the last one used is in the cache, and without threads the only one
    for _ in range(workers):
        free.put(Scratch())
    return free, ThreadPoolExecutor(workers, thread_name_prefix="parfocal-judge")


def _cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
