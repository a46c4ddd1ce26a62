"""A report as Markdown: the comment under a pull request, with the long parts folded away."""

from __future__ import annotations

import re

from parfocal.judge.verdict import Divergence
from parfocal.report.coverage import words_of
from parfocal.report.mistakes import own_mistakes, place_of
from parfocal.report.report import Report
from parfocal.report.text import amount, headline, in_one_line

SHOWN = 20  # mistakes in the table; a comment has a size limit
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~$!@])")


def to_markdown(report: Report) -> str:
    verdict, _, names = headline(report).partition(": ")
    lines = [f"### parfocal: {verdict}", "", escaped(names), ""]
    groups = own_mistakes(report.divergences)
    if groups:
        lines += ["| where | what | cause |", "| --- | --- | --- |"]
        lines += [_row(group, report) for group in groups[:SHOWN]]
        if len(groups) > SHOWN:
            lines.append(f"| ... | {len(groups) - SHOWN} more | |")
        lines.append("")
        lines += _fixes(groups[:SHOWN])
    inherited = sum(each.inherited for each in report.divergences)
    if inherited:
        lines += [f"Further differences that follow from these: {inherited}.", ""]
    lines += [f"**Compared** {escaped(', '.join(map(amount, report.coverage.compared)) or 'nothing')}", ""]
    if report.coverage.left_out:
        left = "; ".join(map(words_of, report.coverage.left_out))
        lines += [f"**Not compared** {escaped(left)}", ""]
    lines += _folded("The whole text", f"{report}")
    return "\n".join(lines)


def _row(group: list[Divergence], report: Report) -> str:
    first, *more = group
    elsewhere = len({place_of(each) for each in more} - {place_of(first)})
    where = _code(place_of(first)) + (f" and {elsewhere} more" if elsewhere else "")
    cause = "" if first.cause is None else f"{_code(first.cause.code)} {escaped(first.cause.message)}"
    return f"| {where} | {escaped(in_one_line(first, report))} | {cause} |"


def _fixes(groups: list[list[Divergence]]) -> list[str]:
    fixes = dict.fromkeys(group[0].cause.fix for group in groups if group[0].cause is not None)
    return ["What to write:", "", *_fenced("\n".join(fixes), "python"), ""] if any(fixes) else []


def _folded(title: str, text: str) -> list[str]:
    return [f"<details><summary>{title}</summary>", "", *_fenced(text, "text"), "", "</details>", ""]


def _fenced(text: str, language: str) -> list[str]:
    """A block of code, with a fence longer than any in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text, fence]


def _code(text: str) -> str:
    """In a cell of a table: a bar would end it, whatever is around it."""
    ticks = "`" * (max((len(run) for run in re.findall(r"`+", text)), default=0) + 1)
    space = " " if "`" in text else ""
    return f"{ticks}{space}{_one_line(text)}{space}{ticks}".replace("|", "\\|")


def escaped(text: str) -> str:
    """Text that users control: nothing in it is markup, nobody is called by it, and it stays on one line."""
    return _MARKUP.sub(r"\\\1", _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
