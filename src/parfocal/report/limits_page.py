"""The documentation's page of numbers, made from the register; run it to print the page.

``python -m parfocal.report.limits_page zh`` prints it in Chinese.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from parfocal import data
from parfocal.data import Text
from parfocal.judge import limits
from parfocal.locale import ENGLISH
from parfocal.phrases import phrase, translate

CHOSEN = phrase("chosen, not measured")


@dataclass(frozen=True, slots=True)
class LimitReason:
    """Why a number is what it is; ``measured``: where it was seen to be right, or what it follows from."""

    reason: Text
    measured: Text | None = None


@dataclass(frozen=True, slots=True)
class LimitTable:
    """The words of one table of numbers."""

    title: Text
    introduction: Text
    limit: Mapping[str, LimitReason]


def reasons() -> Mapping[str, LimitTable]:
    """The words of every table, by its name."""
    return data.read(dict[str, LimitTable], "limits.toml")


def page(language: str = ENGLISH) -> str:
    lines = [translate(line, language) for line in _introduction()]
    head = [phrase("name"), phrase("value"), phrase("reason"), phrase("measured")]
    words = reasons()
    for name, numbers in limits.tables().items():
        table = words[name]
        lines += ["", f"## {table.title.words(language)}", "", table.introduction.words(language), ""]
        lines += [_row(*(translate(each, language) for each in head)), "| --- | --- | --- | --- |"]
        lines += [
            _row(f"`{name}.{each}`", _number(limit.value), *_why(table.limit[each], language))
            for each, limit in numbers.items()
        ]
    return "\n".join(lines) + "\n"


def _introduction() -> list[str]:
    return [
        phrase("# Limits"),
        "",
        phrase(
            "Every number that decides a verdict or a cause, with its reason and where it was measured. "
            "This page is made\n"
            'from {file}. "Chosen, not measured" says that no other value was tried systematically; all\n'
            "benchmarks ([noise](noise.md), [faults](faults.md), [training](training-faults.md),\n"
            "[recorded runs](recorded-runs.md)) run with these values.",
            file="`parfocal/judge/limits/`",
        ),
    ]


def _why(why: LimitReason, language: str) -> tuple[str, str]:
    measured = why.measured.words(language) if why.measured else translate(CHOSEN, language)
    return why.reason.words(language), measured


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_number, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:2]))
