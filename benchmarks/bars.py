"""The bars that the benchmarks measure, and the one table in which they stand at the end.

A benchmark hands over what it measured with ``note``. By itself that does nothing; under ``python -m
benchmarks`` the rows go into a file that all its parts share, and are printed as one table when all have run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from parfocal.native.library import path_in_use

ROWS = "PARFOCAL_BENCH_ROWS"  # the file of the rows


@dataclass(frozen=True, slots=True)
class MeasuredBar:
    """One figure beside the most it may be."""

    what: str
    path: str  # of the loops: a name that PARFOCAL_CPU takes
    measured: float
    bar: float | None  # None: it is shown, and nothing is asked of it
    unit: str
    read: float | None = None  # milliseconds that numpy.dot takes over the same bytes

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
    """One row for the table at the end; ``path`` is the one in use unless told."""
    file = os.environ.get(ROWS)
    if file:
        row = MeasuredBar(what, path_in_use() if path is None else path, measured, bar, unit, read)
        with open(file, "a", encoding="utf-8") as rows:
            rows.write(json.dumps(asdict(row)) + "\n")


def noted(file: Path) -> list[MeasuredBar]:
    """What all parts handed over."""
    return [MeasuredBar(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


def table(rows: Sequence[MeasuredBar]) -> Iterator[str]:
    """The rows in columns."""
    width = max([len(row.what) for row in rows], default=0)
    yield f"{'what':<{width}}  {'path':<10} {'measured':>10} {'bar':>10} {'numpy.dot':>10}  holds"
    for row in rows:
        bar = "" if row.bar is None else _figure(row.bar, row.unit)
        read = "" if row.read is None else _figure(row.read, " ms")
        holds = "" if row.bar is None else "yes" if row.holds else "NO"
        measured = _figure(row.measured, row.unit)
        yield f"{row.what:<{width}}  {row.path:<10} {measured:>10} {bar:>10} {read:>10}  {holds}".rstrip()


def _figure(value: float, unit: str) -> str:
    return f"{value:.2f}{unit}"
