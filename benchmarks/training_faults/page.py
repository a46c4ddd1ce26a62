"""The results as a page: a table of shares, and every miss by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.training_faults.fault import Fault
from parfocal.report.report import Report

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
