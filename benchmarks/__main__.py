"""All benchmarks, one after the other, and then one table of their bars: ``make bench``.

    python -m benchmarks [--only metrics,growth] [--paths x86-64-v3,x86-64]

Times are those of the processor, on one thread, as far as a bar is a time. ``metrics`` goes through every
path of the compiled loops that the machine has, and through NumPy's. Aligning and recording have bars where
vectors have 32 bytes or more, and run once on each such path (``--paths``: on others). Exit status 1: a part
failed, or a bar does not hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.bars import ROWS, noted, table
from benchmarks.metrics import NARROW
from parfocal.native.library import LIBRARY, VARIABLE, path_in_use, usable_paths

# Each part, and what it is told.
PARTS: Mapping[str, tuple[str, ...]] = {
    "metrics": ("--processor-time",),
    "transfer": (),
    "conversion": (),
    "recording": ("--cpu",),
    "alignment": ("--cpu",),
    "growth": (),
    "wrong_pairs": (),
    "explanation": (),
}
ON_EVERY_PATH = ("recording", "alignment")


def wide_paths() -> list[str]:
    """Those that aligning and recording have bars on; else the one in use."""
    usable = [] if LIBRARY is None else usable_paths(LIBRARY)
    return [path for path in usable if path not in NARROW] or [path_in_use()]


def run(part: str, path: str | None, rows: Path) -> int:
    # a process each, so that one's memory and threads do not show in the next one's numbers
    environment = {**os.environ, ROWS: str(rows), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if path is not None:
        environment[VARIABLE] = path
    command = [sys.executable, "-m", f"benchmarks.{part}", *PARTS[part]]
    return subprocess.run(command, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, by name")
    parser.add_argument("--paths", default=",".join(wide_paths()), help="to align and to record on")
    options = parser.parse_args()
    status = 0
    with tempfile.TemporaryDirectory(prefix="parfocal-benchmarks-") as folder:
        rows = Path(folder, "rows.jsonl")
        rows.touch()
        for part in options.only.split(","):
            for path in options.paths.split(",") if part in ON_EVERY_PATH else [None]:
                print(f"\n== {part}" + ("" if path is None else f" on {path}"), flush=True)
                status |= run(part, path, rows)
        found = noted(rows)
    print("\n== all bars", *table(found), sep="\n")
    return 1 if status or not all(row.holds for row in found) else 0


if __name__ == "__main__":
    sys.exit(main())
