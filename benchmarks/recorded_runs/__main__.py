"""``python -m benchmarks.recorded_runs [--only WORDS]``: records, compares, writes the page."""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from benchmarks.recorded_runs.cases import all_cases, run
from benchmarks.recorded_runs.page import page
from benchmarks.translating import write_page

PAGE = Path(__file__).parent.parent.parent / "docs" / "recorded-runs.md"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recorded_runs", description=__doc__)
    parser.add_argument("--only", default="", help="cases whose title contains this; prints, writes no page")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--output", type=Path, default=PAGE, help="the page to write (docs/recorded-runs.md)")
    options = parser.parse_args(arguments)
    if not all_cases(options.only):
        parser.error(f"no case's title contains {options.only!r}")
    began = time.perf_counter()
    result = run(options.only, 1 if options.only else options.processes)
    text = page(result)
    print(text)
    print(
        f"{len(result.scores)} mistakes, {result.correct} correct pairs: {time.perf_counter() - began:.0f} s"
    )
    if not options.only:
        write_page(options.output, text)
        print(f"written to {options.output}")
    return 0 if result.clean else 1


if __name__ == "__main__":
    sys.exit(main())
