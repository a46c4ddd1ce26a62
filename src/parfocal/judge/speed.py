"""How fast two arrays are compared on this machine, beside a plain copy: the most that memory allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from parfocal.judge.metrics import compare_arrays

_ELEMENTS = 2**23  # 32 MB an array: more than most caches hold
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Speed:
    """Bytes that were read or written in a second, the best of a few rounds."""

    compare: float
    copy: float


def measure_speed() -> Speed:
    """Compares two arrays of float32 and copies one onto the other, in turns."""
    a = np.arange(_ELEMENTS, dtype=np.float32) % np.float32(1021.0)
    b = a + np.float32(0.5)
    both = a.nbytes + b.nbytes
    jobs: tuple[Callable[[], object], ...] = (lambda: compare_arrays(a, b), lambda: np.copyto(a, b))
    best = [float("inf"), float("inf")]
    for _ in range(_ROUNDS):
        for number, job in enumerate(jobs):
            began = time.perf_counter()
            job()
            best[number] = min(best[number], time.perf_counter() - began)
    return Speed(both / best[0], both / best[1])
