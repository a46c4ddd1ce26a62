"""The documentation's page of numbers, made from the register; run it to print the page.

``python -m parfocal.report.limits_page zh`` prints it in Chinese.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from parfocal.judge import limits
from parfocal.locale import CHINESE, ENGLISH
from parfocal.locale.zh.limits import LIMITS
from parfocal.phrases import phrase, translate
from parfocal.report.matched_words import MatchedWords


def page(language: str = ENGLISH) -> str:
    reword: Callable[[str], str] = MatchedWords(LIMITS).translate if language == CHINESE else str
    lines = [translate(line, language) for line in _introduction()]
    head = [phrase("name"), phrase("value"), phrase("reason"), phrase("measured")]
    for table in limits.TABLES:
        title = table.__name__.rpartition(".")[2]
        lines += ["", f"## {reword(title.capitalize())}", "", reword(str(table.__doc__).strip()), ""]
        lines += [_row(*(translate(each, language) for each in head)), "| --- | --- | --- | --- |"]
        lines += [
            _row(f"`{title}.{name}`", _number(limit.value), reword(limit.reason), reword(limit.measured))
            for name, limit in limits.entries(table).items()
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


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float | tuple[float, ...]) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_number, value))
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:2]))
