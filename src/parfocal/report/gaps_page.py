"""The documentation's page of differences between torch and paddle; run it to print the page.

``python -m parfocal.report.gaps_page zh`` prints it in Chinese.
"""

from __future__ import annotations

import sys

from parfocal.backends.gaps import Gap, families, gaps
from parfocal.locale import ENGLISH
from parfocal.phrases import joined, phrase, translate
from parfocal.report.mapping import FAMILIES, STATUSES, symptom_words

VERSIONS = {"torch": "2.13", "paddle": "3.3"}


def page(language: str = ENGLISH) -> str:
    lines = [translate(line, language) for line in _introduction()]
    for family, entries in families().items():
        lines += ["", f"## {translate(FAMILIES[family], language)}"]
        for gap in entries:
            lines += ["", *(translate(line, language) for line in _entry(gap, language))]
    return "\n".join(lines) + "\n"


def _introduction() -> list[str]:
    return [
        phrase("# What torch and paddle do differently"),
        "",
        phrase(
            "{count} differences that ports stumble over, for torch {torch} and paddle {paddle} on a CPU.",
            count=len(gaps()),
            **VERSIONS,
        ),
        phrase(
            "*Verified* means that both frameworks were run; *read* means that signatures, documentation or\n"
            "reports say so."
        ),
        phrase("`parfocal map NAME` shows those of one layer or function."),
        phrase("This page is made from {file}.", file="`parfocal/data/gaps`"),
    ]


def _entry(gap: Gap, language: str) -> list[str]:
    words = gap.words(language)
    shows = joined(", ", [symptom_words(each.value) for each in gap.symptoms]) or phrase(
        "nothing: both agree"
    )
    return [
        f"### {words.title}",
        "",
        phrase(
            "{id}, {status}; shows in: {shows}", id=f"`{gap.id}`", status=STATUSES[gap.status], shows=shows
        ),
        "",
        phrase("{side}{names}{told}", side="- **torch**", names=_names(gap.torch), told=words.torch),
        phrase("{side}{names}{told}", side="- **paddle**", names=_names(gap.paddle), told=words.paddle),
        phrase("- **seen** {told}", told=words.seen),
        phrase("- **fix** {told}", told=words.fix),
    ]


def _names(names: tuple[str, ...]) -> str:
    return phrase(" ({names}): ", names=joined(", ", [f"`{name}`" for name in names])) if names else " "


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:2]))
