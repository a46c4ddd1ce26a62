"""A report on one screen: the verdict, the first divergence, what was and was not compared."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from parfocal.brief import some
from parfocal.columns import width_of, wrapped
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Divergence, InheritanceReason, Site
from parfocal.phrases import current_language, is_made_with, joined, phrase, translate
from parfocal.report.coverage import words_of
from parfocal.report.mistakes import by_mistake
from parfocal.report.report import DepthPoint, Report
from parfocal.report.wording import (
    REASONS,
    SCORES,
    SHOWN,
    amount,
    differing_settings,
    direction_words,
    headline,
    in_one_line,
    kind_words,
    notes_of,
    place_of,
    proof_words,
    score_words,
    short_path,
    site_words,
)

WIDTH = 80
LINES = 60  # of a text that is not asked to say everything
MESSAGE = 5  # lines of one message, likewise
FIX = 8  # lines of one fix, likewise
CODE = 200  # characters of a line of code, likewise: a longer one is elided to the width of the terminal
ELISION = " ... "
NOTES = 8  # lines of notes that are kept free whatever else there is to tell
_BARS = (" ▁▂▃▄▅▆▇█", " .:-=+*#@")  # the second where the first cannot be printed
_LABEL = re.compile(r"\s{4,}|\s*\S+\s{2,}")


@dataclass(frozen=True, slots=True)
class _Fix:
    """What to write: lines of code are not broken."""

    text: str


_Line: TypeAlias = "str | _Fix"


def render(report: Report, width: int = WIDTH, *, verbose: bool = False, language: str | None = None) -> str:
    """The report in words: at most ``LINES`` lines, or everything with ``verbose``."""
    language = language or current_language()
    own = (each for each in report.divergences[1:] if not each.inherited)
    mistakes = by_mistake([*report.divergences[:1], *own])
    first = mistakes[0][0] if mistakes else None
    told = [] if first is None else [*_divergence(first, report), ""]
    head, others, summary, notes, end = (
        [part for line in lines for part in _fitted(line, width, verbose, language)]
        for lines in (
            [headline(report), "", *told],
            _others(report, mistakes, verbose),
            [*_depth(report.along, report.limit, width), *_compared(report, verbose)],
            _listed(notes_of(report), verbose),
            [_next_step(report, first, len(mistakes))],
        )
    )
    if not verbose:
        room = LINES - len(head) - len(summary) - len(end)
        others = _cut(others, max(1, room - min(len(notes), NOTES)), 0, language, _more_differences)
        notes = _cut(notes, max(1, room - len(others)), 0, language, _more_notes)
    return "\n".join((*head, *others, *summary, *notes, *end))


def _fitted(line: _Line, width: int, verbose: bool, language: str) -> list[str]:
    """Long lines go on below, under the text beside their label; a line of code stays one line."""
    if isinstance(line, _Fix):
        label = translate(phrase("  fix        "), language)
        first, *more = translate(line.text, language).splitlines() or [""]
        indent = width_of(label)
        if not verbose:
            first, *more = (_elided(each, width - indent) for each in (first, *more))
        lines = [label + first, *(" " * indent + each for each in more)]
        return lines if verbose else _cut(lines, FIX, indent, language)
    text = translate(line, language)
    beside = _LABEL.match(text)
    indent = width_of(beside[0]) if beside else 4
    lines = [part for each in text.split("\n") for part in wrapped(each, width, indent)]
    return lines if verbose else _cut(lines, MESSAGE, indent, language)


def _elided(code: str, width: int) -> str:
    """A line that is too long to be read without its middle; ``report.json`` and -v have all of it."""
    if len(code) <= CODE:
        return code
    half = (width - len(ELISION)) // 2
    return f"{code[:half]}{ELISION}{code[-half:]}"


def _more_lines(count: int) -> str:
    return phrase("{count} more lines", count=count)


def _more_differences(count: int) -> str:
    return phrase("{count} more lines of differences", count=count)


def _more_notes(count: int) -> str:
    return phrase("{count} more lines of notes", count=count)


def _cut(
    lines: list[str], most: int, indent: int, language: str, told: Callable[[int], str] = _more_lines
) -> list[str]:
    """The first lines, and how many there are besides."""
    if len(lines) <= most:
        return lines
    more = phrase("... {more}: -v, or report.text(verbose=True)", more=told(len(lines) - most + 1))
    return [*lines[: most - 1], " " * indent + translate(more, language)]


def _divergence(first: Divergence, report: Report) -> list[_Line]:
    lines: list[_Line] = [
        phrase("first divergence: {where}", where=in_one_line(replace(first, message=""), report))
    ]
    if report.has_calls and first.reference is not None:
        lines.append(phrase("  reference  {site}", site=site_words(first.reference)))
    if report.has_calls and first.port is not None:
        lines.append(phrase("  port       {site}", site=site_words(first.port)))
    lines += [phrase("  settings   {setting}", setting=line) for line in differing_settings(first)]
    if first.message and (first.cause is None or not is_made_with(first.cause.message, first.message)):
        lines.append(phrase("  {message}", message=first.message))
    if first.error is not None:
        lines += _error(first.error, first, report)
    return [*lines, *_cause(first)]


def _cause(divergence: Divergence) -> list[_Line]:
    if divergence.cause is None:
        return []
    cause = divergence.cause
    told = (
        phrase("  likely     {cause}", cause=cause.message)
        if cause.proof is None
        else phrase("  cause      {cause}", cause=cause.message)
    )
    shown = (
        phrase("  rests on   {words}", words=proof_words(cause))
        if cause.proof is None
        else phrase("  proof      {words}", words=proof_words(cause))
    )
    return [told, shown, _Fix(cause.fix)]


def _error(error: Comparison, first: Divergence, report: Report) -> list[str]:
    size = phrase(
        "  error      {dtype} {shape}: rms {rms}, relative {relative}",
        dtype=error.a.dtype,
        shape="x".join(map(str, error.a.shape)) or phrase("scalar"),
        rms=f"{error.rmse:.3g}",
        relative=f"{error.rel_l2:.3g}",
    )
    floor = SCORES[report.scale].floor(f"{first.noise.rms:.3g}")
    lines = [phrase("{error}, {floor}", error=size, floor=floor) if report.tolerance is None else size]
    if error.max_index is not None and error.max_a is not None and error.max_b is not None:
        largest = f"{error.max_abs:.3g}"
        if error.max_index:
            place = f"[{', '.join(map(str, error.max_index))}]"
            largest = phrase("{largest} at {place}", largest=largest, place=place)
        lines.append(
            phrase(
                "  worst      {largest}: reference {reference}, port {port}",
                largest=largest,
                reference=f"{error.max_b:.9g}",
                port=f"{error.max_a:.9g}",
            )
        )
    one_sided = error.nonfinite_disagreeing
    if one_sided == 1:
        lines.append(phrase("  not finite on one side only: 1 element"))
    elif one_sided:
        lines.append(phrase("  not finite on one side only: {count} elements", count=one_sided))
    return lines


def _others(report: Report, groups: Sequence[Sequence[Divergence]], verbose: bool) -> list[_Line]:
    """Every further mistake with its cause; the same mistake in several places once."""
    rest = report.divergences[1:]
    lines: list[_Line] = []
    for number, (first, *more) in enumerate(groups):
        if number > SHOWN and not verbose:
            lines.append(phrase("also: ... and {count} more", count=len(groups) - number))
            break
        if number:
            lines += [phrase("also: {where}", where=in_one_line(first, report)), *_cause(first)]
        elsewhere = [each for each in more if place_of(each) != place_of(first)]
        if elsewhere:
            lines.append(phrase("also: the same in {places}", places=_paths(elsewhere, verbose)))
    inherited = sum(each.inherited for each in rest)
    if inherited:
        lines.append(_inherited(inherited, len(groups)))
        lines += _reasons(rest) if verbose else []
    return lines


def _reasons(divergences: Sequence[Divergence]) -> list[_Line]:
    """Why differences are inherited, where that is known: one line for each reason."""
    found: dict[InheritanceReason, list[Divergence]] = {}
    for each in divergences:
        if each.inherited and each.reason is not None:
            found.setdefault(each.reason, []).append(each)
    return [
        phrase(
            "  {count}: {reason} ({places})",
            count=len(group),
            reason=REASONS[reason],
            places=_paths(group, verbose=True),
        )
        for reason, group in found.items()
    ]


def _inherited(count: int, mistakes: int) -> str:
    cause = phrase("this") if mistakes == 1 else phrase("these")
    if count == 1:
        return phrase("inherited: 1 further difference follows from {cause}", cause=cause)
    return phrase("inherited: {count} further differences follow from {cause}", count=count, cause=cause)


def _paths(divergences: Sequence[Divergence], verbose: bool) -> str:
    paths = list(dict.fromkeys(place_of(each) for each in divergences))
    return some(paths, len(paths) if verbose else SHOWN)


def _bar() -> str:
    """The levels of a bar, as characters that can be printed here."""
    try:
        _BARS[0].encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return _BARS[1]
    return _BARS[0]


def _depth(steps: Sequence[DepthPoint], limit: float, width: int) -> list[str]:
    """One bar of the natural difference along the port, and a mark under what made it."""
    if len(steps) < 2:
        return []
    count = min(len(steps), max(1, width - 26))  # beside the label and the number
    groups = [steps[i * len(steps) // count : (i + 1) * len(steps) // count] for i in range(count)]
    carried = [max(step.carried for step in group) for group in groups]
    logs = [math.log10(max(value, 1e-9)) for value in carried]
    low, high = -9.0, max(0.0, *logs)
    levels = _bar()
    bar = "".join(levels[max(0, min(8, round((value - low) / (high - low) * 8)))] for value in logs)
    marks = "".join("^" if max(step.own for step in group) > limit > 0 else " " for group in groups).rstrip()
    largest = max(carried)
    drift = phrase("drift      {bar} up to {largest}", bar=bar, largest=f"{largest:.1e}")
    return [drift, *([phrase("made here  {marks}", marks=marks)] if marks else [])]


def _compared(report: Report, verbose: bool) -> list[str]:
    coverage = report.coverage
    own = [score for pair in report.pairs for score in (pair.forward, pair.backward) if score is not None]
    finite = [score for score in own if math.isfinite(score)]
    worst = (
        [_beside(SCORES[report.scale].largest(score_words(max(finite)), f"{report.limit:g}"))]
        if finite and report.tolerance is None
        else []
    )
    how = [direction_words(coverage)] if coverage.directions else []
    what = joined(", ", [*map(amount, coverage.compared), *how]) or phrase("nothing")
    lines = [phrase("compared   {what}", what=what), *worst]
    words = SCORES[report.scale].unpaired
    if report.unpaired_reference:
        kinds = kind_words(report.unpaired_reference)
        lines.append(_beside(phrase("unpaired in the reference: {kinds}; {then}", kinds=kinds, then=words)))
        lines += _sites(report.unpaired_reference) if verbose else []
    if report.unpaired_port:
        kinds = kind_words(report.unpaired_port)
        lines.append(_beside(phrase("unpaired in the port: {kinds}; {then}", kinds=kinds, then=words)))
        lines += _sites(report.unpaired_port) if verbose else []
    if coverage.left_out:
        what = joined(", ", map(words_of, coverage.left_out))
        lines.append(phrase("not compared  {what}", what=what))
    return lines


def _beside(text: str) -> str:
    """Below what is beside a label of the summary."""
    return phrase("           {text}", text=text)


def _sites(sites: Sequence[Site]) -> list[str]:
    return [phrase("             {site}", site=site_words(site)) for site in sites]


def _listed(items: Sequence[str], verbose: bool) -> list[str]:
    shown = items if verbose else items[:SHOWN]
    notes = [phrase("note: {note}", note=item) for item in shown]
    if len(items) > len(shown):
        notes.append(phrase("note: ... and {count} more", count=len(items) - len(shown)))
    return notes


def _next_step(report: Report, first: Divergence | None, mistakes: int) -> str:
    if first is None:
        return phrase("next: nothing to mend here")
    again = phrase("align again") if report.scale == "noise" else phrase("record and compare again")
    if not report.has_calls:
        again = phrase("compare again")
    if first.cause is not None:
        if mistakes > 1:
            return phrase("next: make the fixes above, then {again}", again=again)
        return phrase("next: make the fix above, then {again}", again=again)
    if first.phase == "weights":
        return phrase(
            "next: make the weights correspond (see the plan: report.transfer), then {again}", again=again
        )
    site = first.port or first.reference
    where = f"{short_path(site.file)}:{site.line}" if site and site.file else phrase("the place named above")
    if report.scale == "growth" and not report.coverage.count("parameters"):
        # what the two runs started from was not recorded with them
        return phrase(
            "next: see that both runs are of one model with one set of weights, look at {where}, "
            "then {again}",
            where=where,
            again=again,
        )
    return phrase("next: look at {where}, mend it, then {again}", where=where, again=again)
