"""A report as Markdown: the comment under a pull request, with the long parts folded away."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from parfocal.judge.verdict import Cause, Divergence
from parfocal.phrases import current_language, joined, phrase, translate
from parfocal.report.coverage import words_of
from parfocal.report.mistakes import own_mistakes
from parfocal.report.report import Report
from parfocal.report.wording import amount, cause_label, in_one_line, names, place_of, proof_words, verdict

Said: TypeAlias = Callable[[str], str]
SHOWN = 20  # mistakes in the table; a comment has a size limit
_MARKUP = re.compile(r"([\\`*_{}\[\]<>|#~$!@])")


def to_markdown(report: Report) -> str:
    """In the language of the terminal."""
    said = partial(translate, language=current_language())
    lines = [f"### parfocal: {said(verdict(report))}", "", escaped(said(names(report))), ""]
    groups = own_mistakes(report.divergences)
    if groups:
        lines += [said(phrase("| where | what | cause |")), "| --- | --- | --- |"]
        lines += [_row(group, report, said) for group in groups[:SHOWN]]
        if len(groups) > SHOWN:
            lines.append(said(phrase("| ... | {count} more | |", count=len(groups) - SHOWN)))
        lines.append("")
        lines += _fixes(groups[:SHOWN], said)
    inherited = sum(each.inherited for each in report.divergences)
    if inherited:
        lines += [said(phrase("Further differences that follow from these: {count}.", count=inherited)), ""]
    compared = said(joined(", ", map(amount, report.coverage.compared)) or phrase("nothing"))
    lines += [said(phrase("**Compared** {what}", what=escaped(compared))), ""]
    if report.coverage.left_out:
        left = said(joined("; ", map(words_of, report.coverage.left_out)))
        lines += [said(phrase("**Not compared** {what}", what=escaped(left))), ""]
    lines += _folded(said(phrase("The whole text")), report.text())
    return "\n".join(lines)


def _row(group: list[Divergence], report: Report, said: Said) -> str:
    first, *more = group
    elsewhere = len({place_of(each) for each in more} - {place_of(first)})
    where = _code(said(place_of(first)))
    if elsewhere:
        where = said(phrase("{place} and {count} more", place=where, count=elsewhere))
    return f"| {where} | {escaped(said(in_one_line(first, report)))} | {_cause(first.cause, said)} |"


def _cause(cause: Cause | None, said: Said) -> str:
    if cause is None:
        return ""
    likely = f"{said(cause_label(cause))}: " if cause.proof is None else ""
    return f"{likely}{_code(cause.code)} {escaped(said(cause.message))} ({escaped(said(proof_words(cause)))})"


def _fixes(groups: list[list[Divergence]], said: Said) -> list[str]:
    fixes = dict.fromkeys(said(group[0].cause.fix) for group in groups if group[0].cause is not None)
    if not any(fixes):
        return []
    return [said(phrase("What to write:")), "", *_fenced("\n".join(fixes), "python"), ""]


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
