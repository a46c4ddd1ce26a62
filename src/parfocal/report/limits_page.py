"""The documentation's page of numbers, made from the register; run it to print the page."""

from __future__ import annotations

import sys

from parfocal.judge import limits

INTRODUCTION = """\
# Limits

Every number that decides a verdict or a cause, with its reason and where it was measured. This page is made
from `parfocal/judge/limits/`. "Chosen, not measured" says that no other value was tried systematically; all
benchmarks ([noise](noise.md), [faults](faults.md), [training](training-faults.md),
[recorded runs](recorded-runs.md)) run with these values.
"""


def page() -> str:
    lines = INTRODUCTION.splitlines()
    for table in limits.TABLES:
        title = table.__name__.rpartition(".")[2]
        lines += ["", f"## {title.capitalize()}", "", str(table.__doc__).strip(), ""]
        lines += ["| name | value | reason | measured |", "| --- | --- | --- | --- |"]
        lines += [
            f"| `{title}.{name}` | {_number(limit.value)} | {limit.reason} | {limit.measured} |"
            for name, limit in limits.entries(table).items()
        ]
    return "\n".join(lines) + "\n"


def _number(value: float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_number, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    sys.stdout.write(page())
