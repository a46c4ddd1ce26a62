"""``python -m benchmarks.faults [--tools parfocal,...] [--only NAME]``: runs all, writes the page."""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.cases import TWINS, correct_cases, fault_cases
from benchmarks.faults.catalogue import FAULTS, REWRITINGS
from benchmarks.faults.environments import Unavailable
from benchmarks.faults.fault import marked_lines
from benchmarks.faults.page import TITLES, page
from benchmarks.faults.pairs import PAIRS
from benchmarks.faults.running import answers
from benchmarks.faults.scoring import Case, Result, record
from benchmarks.translating import write_page

DEAREST = 5  # faults that are printed with what they cost
PAGE = Path(__file__).parent.parent.parent / "docs" / "faults.md"


def run(tool: str, cases: Sequence[Case], loud: bool, again: bool) -> Result:
    """One tool on all cases; ``loud``: with a line for everything that is not as it should be."""
    result = Result(tool)
    began = time.perf_counter()
    try:
        for case, answer in answers(tool, cases, again):
            wrong = record(result, case, FAULTS.get(case.fault), answer)
            if wrong and loud:
                print(f"  {case.name}: {wrong}", flush=True)
    except Unavailable as error:
        result.missing = str(error)
    print(_line(result, time.perf_counter() - began), flush=True)
    return result


def _line(result: Result, seconds: float) -> str:
    if result.missing:
        return f"{TITLES[result.tool]}: not run: {result.missing}"
    sums = result.total()
    return (
        f"{TITLES[result.tool]}: {sums.faults} faults: {sums.detected} detected, "
        f"{result.told_apart} told apart, {sums.located} located, {sums.named} named, "
        f"{sums.stray} with others blamed, {sums.crashed} crashed; {result.correct} correct: "
        f"{len(result.alarms)} false alarms, {len(result.crashes)} crashed; {seconds:.0f} s"
        f"{_costs(result)}"
    )


def _costs(result: Result) -> str:
    """Of wrong pairs, in times of their correct twins."""
    costs = sorted(((score.cost, score.fault) for score in result.scores if score.cost), reverse=True)
    if not costs:
        return ""
    worst = "".join(f"\n  {cost:5.2f}x  {name}" for cost, name in costs[:DEAREST])
    median = statistics.median(cost for cost, _ in costs)
    return f"; a wrong pair costs {median:.2f}x its correct twin, {costs[0][0]:.2f}x at most:{worst}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults", description=__doc__)
    parser.add_argument("--tools", default=",".join(TITLES), help=f"of {', '.join(TITLES)} (all)")
    parser.add_argument("--only", default="", help="faults whose name contains this, and no correct pairs")
    parser.add_argument("--output", type=Path, help="the page to write (docs/faults.md after a whole run)")
    parser.add_argument(
        "--again", action="store_true", help="also ask the other tools what they answered before"
    )
    options = parser.parse_args(arguments)
    tools = options.tools.split(",")
    unknown = [tool for tool in tools if tool not in TITLES]
    if unknown:
        parser.error(f"no such tool: {', '.join(unknown)}; there are {', '.join(TITLES)}")
    cases = [case for case in fault_cases() if options.only in case.fault]
    if not cases:
        parser.error(f"no fault's name contains {options.only!r}")
    if not options.only:
        cases += correct_cases()
    for mark in {guilt.mark for fault in FAULTS.values() for guilt in fault.guilts if guilt.mark}:
        marked_lines(mark)  # a fault whose place is not in the source must not wait for its turn
    results = [run(tool, cases, tool == "parfocal" or bool(options.only), options.again) for tool in tools]
    facts = {"faults": len(FAULTS), "pairs": len(PAIRS), "twins": TWINS, "rewritings": len(REWRITINGS)}
    whole = not options.only and set(tools) == set(TITLES)
    output = options.output or (PAGE if whole else None)
    if output is not None:
        write_page(output, page(results, facts))
        print(f"written to {output}")
    ours = [result for result in results if result.tool == "parfocal"]
    return int(any(result.alarms or result.crashes for result in ours))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the process of a tool is ended as well
    sys.exit(main())
