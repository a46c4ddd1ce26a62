"""``python -m benchmarks.training_faults [--only WORDS] [--seeds N]``: runs all, writes the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.training_faults import parts, trainings
from benchmarks.training_faults.page import Answer, page
from benchmarks.translating import write_page

PAGE = Path(__file__).parent.parent.parent / "docs" / "training-faults.md"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_faults", description=__doc__)
    parser.add_argument(
        "--only", default="", help="mistakes whose name or family contains this; writes no page"
    )
    parser.add_argument("--seeds", type=int, default=10, help="of every clean twin")
    parser.add_argument(
        "--output", type=Path, default=PAGE, help="the page to write (docs/training-faults.md)"
    )
    options = parser.parse_args(arguments)
    chosen = [
        each
        for each in (*trainings.faults(), *parts.faults())
        if options.only in f"{each.family} {each.name}"
    ]
    answers = [Answer(fault, fault.wrong(0)) for fault in chosen]
    twins = {fault.right[0]: fault.right[1] for fault in chosen}
    alarms = [
        f"{name}, seed {seed}: {Answer(chosen[0], report).words}"
        for name, compare in twins.items()
        for seed in range(options.seeds)
        if not (report := compare(seed)).ok
    ]
    text = page(answers, alarms, len(twins), options.seeds)
    print(text)
    if not options.only:
        write_page(options.output, text)
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main())
