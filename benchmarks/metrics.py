"""How fast and how frugal comparing and sketching are: ``python -m benchmarks.metrics``.

Every bar is a ratio of two measurements on the same arrays. The two are taken in turns, so that
a busy machine slows both, and the best of all rounds counts. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import hashlib
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from parfocal.judge import Tolerance, compare_arrays, parallel
from parfocal.judge.sketch import sketch, stats

Job = Callable[[], object]


def best_of(jobs: dict[str, Job], rounds: int) -> dict[str, float]:
    """The shortest time of each job in seconds, the jobs taken in turns."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def extra_megabytes(job: Job) -> float:
    """The peak of what a job allocates, buffers that are kept between calls included."""
    parallel._workers.cache_clear()
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def arrays(megabytes: int) -> tuple[Any, Any, Any]:
    """Two close float32 arrays, and a bfloat16 array of as many bytes."""
    generator = np.random.default_rng(0)
    size = megabytes * 2**20 // 4
    b = generator.standard_normal(size, dtype=np.float32)
    a = b + np.float32(1e-6) * generator.standard_normal(size, dtype=np.float32)
    half = np.concatenate([a, b]).astype(ml_dtypes.bfloat16)
    return a, b, half


def report(megabytes: int, rounds: int) -> None:
    """Measure and print."""
    a, b, half = arrays(megabytes)
    close = Tolerance(rtol=1e-5, atol=7e-6)  # passes, but no block can tell from its extremes alone
    small = a[:1000].copy(), b[:1000].copy()
    jobs: dict[str, Job] = {
        "compare": lambda: compare_arrays(a, b),
        "compare, tolerance": lambda: compare_arrays(a, b, tolerance=close),
        "assert_allclose": lambda: np.testing.assert_allclose(a, b, rtol=close.rtol, atol=close.atol),
        "abs(a - b).mean()": lambda: np.abs(a - b).mean(),
        "sketch float32": lambda: sketch(a),
        "sketch bfloat16": lambda: sketch(half),
        "stats float32": lambda: stats(a),
        "md5": lambda: hashlib.md5(a.data, usedforsecurity=False).digest(),
    }
    best = best_of(jobs, rounds)
    tiny = best_of({"compare 1000": lambda: compare_arrays(*small)}, 300)["compare 1000"]
    print(f"{megabytes} MB per array, best of {rounds}")
    for name, seconds in best.items():
        print(f"  {name:24s} {1e3 * seconds:8.1f} ms")
    print(f"  {'compare, 1000 elements':24s} {1e6 * tiny:8.1f} us   (aim: below 100 us)")
    memory = {name: extra_megabytes(jobs[name]) for name in jobs if name.startswith(("compare", "sketch"))}
    print("\n  bar                                                      wanted   measured")
    for name in ("compare", "compare, tolerance"):
        print(row(f"{name}: assert_allclose / it", ">= 4", best["assert_allclose"] / best[name]))
        print(row(f"{name}: it / abs(a - b).mean()", "<= 2", best[name] / best["abs(a - b).mean()"]))
    for name in ("sketch float32", "sketch bfloat16"):
        print(row(f"{name}: md5 / it", ">= 8", best["md5"] / best[name]))
    for name, megabytes_used in memory.items():
        print(row(f"{name}: extra megabytes", "<= 32", megabytes_used))


def row(name: str, wanted: str, measured: float) -> str:
    return f"  {name:54s} {wanted:>8s} {measured:10.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    report(options.megabytes, options.rounds)


if __name__ == "__main__":
    main()
