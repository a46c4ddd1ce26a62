"""How large the noise of correct ports is, and how far above it planted mistakes are.

``python -m benchmarks.sweep`` aligns every pair over several seeds, plants every mistake, hides every
bundled port behind other names, does the first two again as on older processors (one seed, training
mode), and writes what it measured to ``docs/noise.md``. ``--seeds 1 --pairs vit,gpt`` makes it quick;
then it only prints.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.sweep.page import page_of
from benchmarks.sweep.results import NATIVE, Sweep
from benchmarks.sweep.running import processors_at_hand, run
from benchmarks.translating import write_page

PAGE = Path(__file__).parents[2] / "docs" / "noise.md"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweep", description=__doc__)
    parser.add_argument("--seeds", type=int, default=2, help="runs per pair and mode (2); 1 on others")
    parser.add_argument("--pairs", default="", help="only these pairs, e.g. vit,gpt")
    parser.add_argument("--processors", default="", help="only as on these, e.g. native,avx2")
    parser.add_argument("--processes", type=int, default=2, help="at the same time (2)")
    parser.add_argument("--output", type=Path, help=f"the page to write ({PAGE.name}, if all is swept)")
    options = parser.parse_args(arguments)
    from benchmarks.sweep.catalogue import ALL  # the processes that do the work come here, too

    processors = _chosen(parser, options.processors, processors_at_hand(), "processor")
    names = _chosen(parser, options.pairs, list(ALL), "pair")
    sweeps: list[Sweep] = []
    for processor in processors:
        print(f"== {processor}", flush=True)
        seeds = options.seeds if processor == NATIVE else 1
        sweeps.append(run(processor, names, seeds, options.processes))
    page = page_of(sweeps, _versions())
    output = options.output or (None if options.pairs or options.processors else PAGE)
    if output is None:
        print(page)
    else:
        output.parent.mkdir(exist_ok=True)
        write_page(output, page)
        print(f"written to {output}")
    return 0 if all(sweep.clean for sweep in sweeps) else 1


def _chosen(parser: argparse.ArgumentParser, given: str, offered: list[str], what: str) -> list[str]:
    if not given:
        return offered
    names = given.split(",")
    unknown = [name for name in names if name not in offered]
    if unknown:
        parser.error(f"no such {what}: {', '.join(unknown)}; there are {', '.join(offered)}")
    return names


def _versions() -> str:
    from parfocal.backends import registry

    return ", ".join(f"{name} {registry.get(name).framework_version}" for name in ("torch", "paddle"))


if __name__ == "__main__":
    sys.exit(main())
