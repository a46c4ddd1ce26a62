"""All benchmarks, one after the other, and then one table of their bars: ``make bench``.

    python -m benchmarks [--only metrics,growth] [--paths x86-64-v3,x86-64]

Times are those of the processor, on one thread, as far as a bar is a time. ``metrics``, aligning and
recording go through every path of the compiled loops that the machine has, and through NumPy's (``none``).
Aligning and recording have bars where vectors have 32 bytes or more; elsewhere their times are shown, from
fewer rounds. A path is that of our own loops (``PARFOCAL_CPU``): the frameworks beside them take the best
instructions that the machine has, so that the bare step is as fast as it can be. ``make bench CPU=avx2``
holds them down as well (``benchmarks/processors.py``). Exit status 1: a part failed, or a bar does not hold.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.bars import ROWS, has_time_bars, noted, table
from parfocal.native.library import LIBRARY, NO_PATH, VARIABLE, usable_paths

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
BRIEFLY = ("--rounds", "2", "--no-memory")  # where such a part has no bars


def every_path() -> list[str]:
    """Those of this machine, the best first, and NumPy's last."""
    return [*([] if LIBRARY is None else reversed(usable_paths(LIBRARY))), NO_PATH]


def run(part: str, path: str | None, rows: Path) -> int:
    # a process each, so that one's memory and threads do not show in the next one's numbers
    environment = {**os.environ, ROWS: str(rows), "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    if path is not None:
        environment[VARIABLE] = path
    brief = BRIEFLY if path is not None and not has_time_bars(path) else ()
    command = [sys.executable, "-m", f"benchmarks.{part}", *PARTS[part], *brief]
    return subprocess.run(command, env=environment, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(PARTS), help="parts to run, by name")
    parser.add_argument("--paths", default=",".join(every_path()), help="to align and to record on")
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
