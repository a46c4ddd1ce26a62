"""The documentation's page of differences between torch and paddle; run it to print the page."""

from __future__ import annotations

import sys

from parfocal.backends.gaps import GAPS
from parfocal.backends.gaps.entry import Family, Gap


def page(language: str = "en") -> str:
    lines = [
        "# What torch and paddle do differently",
        "",
        f"{len(GAPS)} differences that ports stumble over, for torch 2.13 and paddle 3.3 on a CPU.",
        "*Verified* means that both frameworks were run; *read* means that signatures, documentation or",
        "reports say so.",
        "`parfocal map NAME` shows those of one layer or function.",
        "This page is made from `parfocal/backends/gaps`.",
    ]
    for family in Family:
        lines += ["", f"## {family.value}"]
        for gap in GAPS:
            if gap.family is family:
                lines += ["", *_entry(gap, language)]
    return "\n".join(lines) + "\n"


def _entry(gap: Gap, language: str) -> list[str]:
    words = gap.words(language)
    shows = ", ".join(symptom.value for symptom in gap.symptoms) or "nowhere"
    return [
        f"### {words.title}",
        "",
        f"`{gap.id}`, {gap.status.value}; shows in: {shows}",
        "",
        f"- **torch** {_names(gap.torch)}{words.torch}",
        f"- **paddle** {_names(gap.paddle)}{words.paddle}",
        f"- **seen** {words.seen}",
        f"- **fix** {words.fix}",
    ]


def _names(names: tuple[str, ...]) -> str:
    return f"({', '.join(f'`{name}`' for name in names)}): " if names else ""


if __name__ == "__main__":
    sys.stdout.write(page())
