"""The bars that the benchmarks measure, and the one table in which they stand at the end.

A benchmark hands over what it measured with ``note``. By itself that does nothing; under ``python -m
benchmarks`` the rows go into a file that all its parts share, and are printed as one table when all have run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from parfocal.native.library import NO_PATH, path_in_use

ROWS = "PARFOCAL_BENCH_ROWS"  # the file of the rows
NARROW = ("x86-64", "portable")  # paths whose vectors have 16 bytes
READ_MEGABYTES = 64
LEGEND = (
    "measured: at most the bar, else the bar does not hold; no bar: shown, and nothing is asked of it.",
    f"read: what numpy.dot takes over the bytes of the row (compare, sketch), else over {READ_MEGABYTES} MB.",
)


@dataclass(frozen=True, slots=True)
class MeasuredBar:
    """One figure beside the most it may be."""

    what: str
    path: str  # of the loops: a name that PARFOCAL_CPU takes
    measured: float
    bar: float | None  # None: it is shown, and nothing is asked of it
    unit: str
    read: float  # milliseconds that numpy.dot takes: over the same bytes, or over READ_MEGABYTES

    @property
    def holds(self) -> bool:
        return self.bar is None or self.measured <= self.bar


def note(
    what: str,
    measured: float,
    bar: float | None,
    *,
    unit: str = "x",
    path: str | None = None,
    read: float | None = None,
) -> None:
    """One row for the table at the end; ``path`` is the one in use unless told, ``read`` ``memory_read``."""
    file = os.environ.get(ROWS)
    if file:
        path = path_in_use() if path is None else path
        row = MeasuredBar(what, path, measured, bar, unit, memory_read() if read is None else read)
        with open(file, "a", encoding="utf-8") as rows:
            rows.write(json.dumps(asdict(row)) + "\n")


def has_time_bars(path: str) -> bool:
    """Whether aligning and recording have bars on a path: where vectors have 32 bytes or more."""
    return path not in (*NARROW, NO_PATH)


@cache
def memory_read() -> float:
    """Milliseconds of processor time that reading READ_MEGABYTES takes: how fast this machine's memory is."""
    array = np.ones(READ_MEGABYTES * 2**20 // 4, np.float32)
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        np.dot(array, array)
        best = min(best, time.process_time() - start)
    return 1e3 * best


def noted(file: Path) -> list[MeasuredBar]:
    """What all parts handed over."""
    return [MeasuredBar(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


def table(rows: Sequence[MeasuredBar]) -> Iterator[str]:
    """What the columns mean, and the rows."""
    yield from LEGEND
    width = max([len(row.what) for row in rows], default=0)
    yield f"{'path':<10} {'what':<{width}} {'measured':>10} {'bar':>10} {'holds':>6} {'read':>10}"
    for row in rows:
        bar, holds = ("no bar", "-") if row.bar is None else (_figure(row.bar, row.unit), _yes(row.holds))
        measured, read = _figure(row.measured, row.unit), _figure(row.read, " ms")
        yield f"{row.path:<10} {row.what:<{width}} {measured:>10} {bar:>10} {holds:>6} {read:>10}"


def _yes(holds: bool) -> str:
    return "yes" if holds else "NO"


def _figure(value: float, unit: str) -> str:
    return f"{value:.2f}{unit}"
