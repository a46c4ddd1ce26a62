"""What it costs to name a cause: ``python -m benchmarks.explanation [--every 4] [--rounds 3]``.

The time of an alignment with its explanation over that of the same alignment without, minus one: what
the explanation adds. Every n-th of the planted faults that are a single mistake; the two ways are
taken in turns, the best of all rounds counts. Bar: at most 1x.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

from benchmarks.bars import note
from benchmarks.faults.cases import build
from benchmarks.faults.catalogue import FAULTS
from benchmarks.faults.fault import Fault
from benchmarks.faults.scoring import Case
from parfocal.workflow.align import align

WORST = 10
BAR = 1.0


def added(fault: Fault, rounds: int) -> float:
    """The time that the explanation adds, as a share of the alignment's own."""
    best = {False: float("inf"), True: float("inf")}
    for _ in range(rounds):
        for explain in best:
            models = build(Case(fault.pair, fault.mode, 0, fault.name), load=False)
            start = time.perf_counter()
            align(
                *(models.reference, models.port, models.inputs),
                mode=models.mode,
                transfer=not models.loaded,
                explain=explain,
            )
            best[explain] = min(best[explain], time.perf_counter() - start)
    return best[True] / best[False] - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    single = [fault for fault in FAULTS.values() if len(fault.guilts) == 1 and not fault.finding]
    found = {fault.name: added(fault, options.rounds) for fault in single[:: options.every]}
    print(f"explaining one fault, over {len(found)} faults, in times of the alignment (at most 1x):")
    print(f"  median {statistics.median(found.values()):5.2f}x, largest {max(found.values()):5.2f}x")
    note("explaining one fault, beside aligning, median", statistics.median(found.values()), BAR)
    for name, share in sorted(found.items(), key=lambda item: -item[1])[:WORST]:
        print(f"  {share:5.2f}x  {name}")


if __name__ == "__main__":
    main()
