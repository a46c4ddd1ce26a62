"""``python -m benchmarks.training_faults [--only WORDS] [--seeds N]``: runs all, writes the page."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.training_faults import parts, trainings
from benchmarks.training_faults.fault import Fault
from parfocal.report.report import Report

PAGE = Path(__file__).parent.parent.parent / "docs" / "training-faults.md"
INTRODUCTION = """# Training faults

`python -m benchmarks.training_faults` (`make bench-training`) wrote this page. {count} mistakes, one at a
time, were planted in trainings, metrics and initialisations of small models, torch against paddle. Their
{twins} clean twins were compared with {seeds} seeds each.

- **detected**: the verdict is that they differ.
- **located**: phase and step of the first difference are right.
- **named**: the code of its cause is right as well.

| family | mistakes | detected | located | named |
| --- | ---: | ---: | ---: | ---: |
"""


@dataclass(frozen=True)
class Answer:
    """What was said of one mistake."""

    fault: Fault
    report: Report

    @property
    def detected(self) -> bool:
        return not self.report.ok

    @property
    def located(self) -> bool:
        first = self.report.first
        return first is not None and (first.phase, first.step) == (self.fault.phase, self.fault.step)

    @property
    def named(self) -> bool:
        first = self.report.first
        return first is not None and first.cause is not None and first.cause.code in self.fault.codes

    @property
    def words(self) -> str:
        first = self.report.first
        if first is None:
            return "nothing differs"
        code = first.cause.code if first.cause is not None else "no cause"
        return f"step {first.step}, {first.phase}, {code}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_faults", description=__doc__)
    parser.add_argument(
        "--only", default="", help="mistakes whose name or family contains this; writes no page"
    )
    parser.add_argument("--seeds", type=int, default=10, help="of every clean twin")
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
        PAGE.write_text(text, encoding="utf-8")
    return 1 if alarms else 0


def page(answers: Sequence[Answer], alarms: Sequence[str], twins: int, seeds: int) -> str:
    families = dict.fromkeys(each.fault.family for each in answers)
    rows = [_row(name, [each for each in answers if each.fault.family == name]) for name in families]
    missed = [
        f"- **{each.fault.name}** ({each.fault.family}): it says {each.words}; right is step "
        f"{each.fault.step}, {each.fault.phase}, {' or '.join(each.fault.codes)}"
        for each in answers
        if not (each.located and each.named)
    ]
    lines = [
        INTRODUCTION.format(count=len(answers), twins=twins, seeds=seeds)
        + "\n".join([*rows, _row("all", answers)]),
        f"\nFalse alarms: {len(alarms)} of {twins * seeds}.\n",
        "## What is missed\n",
        *(missed or ["Nothing."]),
        *(f"- **False alarm**: {each}" for each in alarms),
    ]
    return "\n".join(lines) + "\n"


def _row(name: str, answers: Sequence[Answer]) -> str:
    counts = [
        sum(found)
        for found in (
            [each.detected for each in answers],
            [each.located for each in answers],
            [each.named for each in answers],
        )
    ]
    cells = " | ".join(f"{count} ({count / max(1, len(answers)):.0%})" for count in counts)
    return f"| {name} | {len(answers)} | {cells} |"


if __name__ == "__main__":
    sys.exit(main())
