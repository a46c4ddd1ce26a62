"""How fast and how frugal comparing and sketching are, on every path: ``python -m benchmarks.metrics``.

Every bar is a ratio of two measurements on the same arrays. They are taken in turns, so that
a busy machine slows both, and the best of all rounds counts. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from benchmarks.bars import NARROW, note
from parfocal.judge import Tolerance, compare_arrays, floors, kernels, moments, parallel
from parfocal.judge.sketch import sketch, stats
from parfocal.native.library import LIBRARY, NO_PATH, path_in_use, usable_paths, use_path

Key = TypeVar("Key")
Job = Callable[[], object]


def best_of(
    jobs: dict[Key, Job], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[Key, float]:
    """The shortest time of each job in seconds, the jobs taken in turns."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = clock()
            job()
            best[name] = min(best[name], clock() - start)
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


@dataclass(frozen=True, slots=True)
class Bar:
    """At most ``most`` times another job's time; ``most_narrow`` where vectors have 16 bytes only."""

    job: str
    other: str
    most: float
    most_narrow: float


BARS = (
    Bar("compare", "dot(a, b)", 2, 4),
    Bar("compare, tolerance", "dot(a, b)", 2, 4),
    Bar("compare bfloat16", "compare", 2, 2),
    Bar("sketch", "dot(a, a)", 4, 4),
    Bar("sketch bfloat16", "sketch", 2, 2),
)
MOST_MEGABYTES = 32


def arrays(megabytes: int) -> tuple[Any, Any]:
    """Two close float32 arrays."""
    generator = np.random.default_rng(0)
    size = megabytes * 2**20 // 4
    b = generator.standard_normal(size, dtype=np.float32)
    return b + np.float32(1e-6) * generator.standard_normal(size, dtype=np.float32), b


@contextmanager
def on_path(name: str) -> Iterator[None]:
    """The loops of one path; ``none``: NumPy's way."""
    users = (floors, kernels, moments)
    before = path_in_use()
    try:
        if name == NO_PATH:
            for user in users:
                user.LIBRARY = None
        elif LIBRARY is not None:
            use_path(LIBRARY, name)
        yield
    finally:
        for user in users:
            user.LIBRARY = LIBRARY
        if LIBRARY is not None:
            use_path(LIBRARY, before)


def on(name: str, job: Job) -> Job:
    def run() -> None:
        with on_path(name):
            job()

    return run


def read(*given: Any) -> None:
    """Reads arrays and does next to nothing with them, on as many threads as there are cores."""
    cores = len(os.sched_getaffinity(0))
    parts = [part for array in given for part in np.array_split(array.view(np.int64), cores)]
    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(np.bitwise_or.reduce, parts))


def jobs_of_a_path(name: str, a: Any, b: Any) -> dict[tuple[str, str], Job]:
    close = Tolerance(rtol=1e-5, atol=7e-6)  # passes, but no block can tell from its extremes alone
    half_a, half_b = a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)
    jobs: dict[str, Job] = {
        "compare": lambda: compare_arrays(a, b),
        "compare, tolerance": lambda: compare_arrays(a, b, tolerance=close),
        "compare bfloat16": lambda: compare_arrays(half_a, half_b),
        "sketch": lambda: sketch(a),
        "sketch bfloat16": lambda: sketch(half_a),
        "stats": lambda: stats(a),
    }
    return {(name, what): on(name, job) for what, job in jobs.items()}


def report(megabytes: int, rounds: int, clock: Callable[[], float]) -> None:
    """Measure and print."""
    a, b = arrays(megabytes)
    paths = [NO_PATH, *([] if LIBRARY is None else usable_paths(LIBRARY))]
    common: dict[tuple[str, str], Job] = {
        ("", "read a and b"): lambda: read(a, b),
        ("", "dot(a, b)"): lambda: np.dot(a, b),
        ("", "dot(a, a)"): lambda: np.dot(a, a),
        ("", "abs(a - b).mean()"): lambda: np.abs(a - b).mean(),
        ("", "assert_allclose"): lambda: np.testing.assert_allclose(a, b, rtol=1e-5, atol=7e-6),
        ("", "md5"): lambda: hashlib.md5(a.data, usedforsecurity=False).digest(),
    }
    jobs = {**common, **{key: job for path in paths for key, job in jobs_of_a_path(path, a, b).items()}}
    best = best_of(jobs, rounds, clock)
    small = a[:1000].copy(), b[:1000].copy()
    tiny = best_of({"": lambda: compare_arrays(*small)}, 300)[""]
    print(f"{megabytes} MB per array, best of {rounds}; {path_in_use()} is in use")
    for _, what in common:
        print(f"  {what:24s} {1e3 * best['', what]:8.1f} ms")
    print(f"  {'compare, 1000 elements':24s} {1e6 * tiny:8.1f} us   (aim: below 100 us)")
    print(f"\n  {'path':10s} {'bar':38s} {'wanted':>8s} {'measured':>9s} {'ms':>8s} {'read ms':>8s}")
    for path in paths:
        print_path(path, best, jobs)


def print_path(path: str, best: dict[tuple[str, str], float], jobs: dict[tuple[str, str], Job]) -> None:
    """A row for every bar; NumPy's way has none but that of memory.

    The time of reading stands for the bytes of the job: of one array or two, in half as many for bfloat16.
    """
    reading = 1e3 * best["", "read a and b"]
    for bar in BARS:
        most = bar.most_narrow if path in NARROW else bar.most
        wanted = "" if path == NO_PATH else f"<= {most:g}"
        dot = best["", "dot(a, a)" if bar.job.startswith("sketch") else "dot(a, b)"]
        other = best.get(("", bar.other)) or best[path, bar.other]
        found, name = best[path, bar.job], f"{bar.job} / {bar.other}"
        times = reading / 2 if bar.job.startswith("sketch") else reading  # one array or two
        halves = 2 if "bfloat16" in bar.job else 1
        times /= halves
        print(f"  {path:10s} {name:38s} {wanted:>8s} {found / other:9.2f} {1e3 * found:8.1f} {times:8.1f}")
        note(name, found / other, most if wanted else None, path=path, read=1e3 * dot / halves)
    for what in dict.fromkeys(bar.job for bar in BARS):
        used = extra_megabytes(jobs[path, what])
        print(f"  {path:10s} {what + ': extra MB':38s} {f'<= {MOST_MEGABYTES}':>8s} {used:9.2f}")
        note(f"{what}: extra memory", used, MOST_MEGABYTES, unit=" MB", path=path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="what the threads worked, not what passed: for a machine that others use, too",
    )
    options = parser.parse_args()
    clock = time.process_time if options.processor_time else time.perf_counter
    report(options.megabytes, options.rounds, clock)


if __name__ == "__main__":
    main()
