"""A report in words, on one screen: the verdict, the first divergence, what was and was not compared."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from parfocal.backends.vocabulary import CONVENTIONS
from parfocal.brief import some
from parfocal.columns import width_of, wrapped
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Divergence, InheritanceReason, Site
from parfocal.phrases import current_language, joined, phrase, translate
from parfocal.report.coverage import NOUNS, Compared, Coverage, words_of
from parfocal.report.mistakes import by_mistake, place_of
from parfocal.report.report import INCOMPLETE, DepthPoint, Report
from parfocal.weights.settings import setting_difference

WIDTH = 80
SHOWN = 5  # of a list, before it is summed up
LINES = 60  # of a text that is not asked to say everything
MESSAGE = 5  # lines of one message, likewise
FIX = 8  # lines of one fix, likewise
CODE = 200  # characters of a line of code, likewise: a longer one is elided to the width of the terminal
ELISION = " ... "
NOTES = 8  # lines of notes that are kept free whatever else there is to tell
_BARS = (" ▁▂▃▄▅▆▇█", " .:-=+*#@")  # the second where the first cannot be printed
_LABEL = re.compile(r"\s{4,}|\s*\S+\s{2,}")


@dataclass(frozen=True, slots=True)
class _ScoreWords:
    """How scores are told: those of calls that were run again, and those of recorded ones."""

    score: Callable[[str], str]
    floor: Callable[[str], str]
    largest: Callable[[str, str], str]
    unpaired: str  # what becomes of calls without a partner


_WORDS = {
    "noise": _ScoreWords(
        lambda score: phrase("{score} the noise", score=score),
        lambda size: phrase("noise {size}", size=size),
        lambda score, limit: phrase(
            "largest own error {score} the noise, allowed {limit}x", score=score, limit=limit
        ),
        phrase("judged with the code around them"),
    ),
    "growth": _ScoreWords(
        lambda score: phrase("{score} what went in", score=score),
        lambda size: phrase("given {size}", size=size),
        lambda score, limit: phrase(
            "an error grew by {score} at most, allowed {limit}x", score=score, limit=limit
        ),
        phrase("not compared"),
    ),
}
PHASES = {
    "weights": phrase("weights"),
    "forward": phrase("forward"),
    "loss": phrase("loss"),
    "backward": phrase("backward"),
    "gradient": phrase("gradient"),
    "optimizer": phrase("optimizer"),
    "buffer": phrase("buffer"),
    "lr": phrase("lr"),
    "data": phrase("data"),
    "metric": phrase("metric"),
    "init": phrase("init"),
}

_KINDS = {  # of sites that are no layers
    "parameter": phrase("parameter"),
    "buffer": phrase("buffer"),
    "module": phrase("module"),
}


REASONS = {
    InheritanceReason.GUILTY_CALL: phrase("made by a module that differs already"),
    InheritanceReason.NOT_FED: phrase("given other inputs than the reference, after a difference"),
    InheritanceReason.CUT_OFF: phrase("a gradient that another call does not send"),
    InheritanceReason.USED_BY_GUILTY: phrase("a gradient from code that differs already"),
    InheritanceReason.ONE_PIECE: phrase("of one piece with code that differs already"),
    InheritanceReason.WEIGHTS: phrase("right with the reference's weights"),
    InheritanceReason.LOSS: phrase("comes back from losses that differ"),
    InheritanceReason.SAME_LINE: phrase("the same line of code, told already"),
    InheritanceReason.UNPAIRED: phrase("the gradient of a layer without a partner"),
    InheritanceReason.SAME_PARAMETER: phrase("the same parameter of the reference, told already"),
    InheritanceReason.CALLS: phrase("a result of the model that calls explain"),
    InheritanceReason.EARLIER_PHASE: phrase("follows from an earlier phase"),
    InheritanceReason.NATURAL_RUN: phrase("after the first difference of two natural runs"),
    InheritanceReason.MADE_OTHERWISE: phrase("inside a layer that is made otherwise"),
}


@dataclass(frozen=True, slots=True)
class _Fix:
    """What to write: lines of code are not broken."""

    text: str


_Line: TypeAlias = "str | _Fix"


def render(report: Report, width: int = WIDTH, *, verbose: bool = False, language: str | None = None) -> str:
    """The report in words: at most ``LINES`` lines, or everything with ``verbose``."""
    language = language or current_language()
    first = [] if report.first is None else [*_divergence(report.first, report), ""]
    head, others, summary, notes, end = (
        [part for line in lines for part in _fitted(line, width, verbose, language)]
        for lines in (
            [headline(report), "", *first],
            _others(report, verbose),
            [*_depth(report.along, report.limit, width), *_compared(report, verbose)],
            _listed(notes_of(report), verbose),
            [_next_step(report)],
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


def headline(report: Report) -> str:
    return phrase("{verdict}: {names}", verdict=verdict(report), names=names(report))


def verdict(report: Report) -> str:
    if not report.ok:
        return phrase("DIFFERENT")
    if any(each.code == INCOMPLETE for each in report.findings):
        return phrase("SAME as far as recorded")
    return phrase("SAME")


def names(report: Report) -> str:
    return phrase("{port} against {reference}", port=report.port_name, reference=report.reference_name)


def _divergence(first: Divergence, report: Report) -> list[_Line]:
    lines: list[_Line] = [
        phrase("first divergence: {where}", where=in_one_line(replace(first, message=""), report))
    ]
    if report.has_calls and first.reference is not None:
        lines.append(phrase("  reference  {site}", site=_site(first.reference)))
    if report.has_calls and first.port is not None:
        lines.append(phrase("  port       {site}", site=_site(first.port)))
    lines += [phrase("  settings   {setting}", setting=line) for line in differing_settings(first)]
    if first.message and (first.cause is None or first.message not in first.cause.message):
        lines.append(phrase("  {message}", message=first.message))
    if first.error is not None:
        lines += _error(first.error, first, report)
    return [*lines, *_cause(first)]


def _cause(divergence: Divergence) -> list[_Line]:
    if divergence.cause is None:
        return []
    return [phrase("  cause      {cause}", cause=divergence.cause.message), _Fix(divergence.cause.fix)]


def _site(site: Site) -> str:
    where = f"  {short_path(site.file)}:{site.line}" if site.file else ""
    op = f", {site.op}" if site.op else ""
    path = site.path or phrase("(the model)")
    kind = _KINDS.get(site.kind, site.kind)
    return phrase("{path}  {kind}{place}", path=path, kind=kind, place=f"{op}{where}")


def short_path(path: str | None) -> str:
    if path is None:
        return ""
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    return relative if not relative.startswith("..") else os.path.join(*path.split(os.sep)[-2:])


def differing_settings(first: Divergence) -> list[str]:
    if first.reference is None or first.port is None:
        return []
    ours, theirs = first.reference.settings, first.port.settings
    return [
        setting_difference(name, ours[name], theirs[name])
        for name in ours
        if name in theirs and ours[name] != theirs[name] and name not in CONVENTIONS
    ]


def _size(divergence: Divergence, report: Report) -> str:
    """How large a divergence is, in the units in which it was judged."""
    error, tolerance = divergence.error, report.tolerance
    if tolerance is not None and error is not None:
        return phrase(
            "{count} of {size} values beyond {bounds}",
            count=error.mismatched,
            size=error.size,
            bounds=f"rtol={tolerance.rtol:g}, atol={tolerance.atol:g}",
        )
    if tolerance is not None or not math.isfinite(divergence.score):
        return ""
    return _WORDS[report.scale].score(score_words(divergence.score))


def _error(error: Comparison, first: Divergence, report: Report) -> list[str]:
    size = phrase(
        "  error      {dtype} {shape}: rms {rms}, relative {relative}",
        dtype=error.a.dtype,
        shape="x".join(map(str, error.a.shape)) or phrase("scalar"),
        rms=f"{error.rmse:.3g}",
        relative=f"{error.rel_l2:.3g}",
    )
    floor = _WORDS[report.scale].floor(f"{first.noise.rms:.3g}")
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


def _others(report: Report, verbose: bool) -> list[_Line]:
    """Every further mistake with its cause; the same mistake in several places once."""
    rest = report.divergences[1:]
    own = [d for d in rest if not d.inherited]
    lines: list[_Line] = []
    groups = by_mistake([*report.divergences[:1], *own])
    for number, (first, *more) in enumerate(groups):
        if number > SHOWN and not verbose:
            lines.append(phrase("also: ... and {count} more", count=len(groups) - number))
            break
        if number:
            lines += [phrase("also: {where}", where=in_one_line(first, report)), *_cause(first)]
        elsewhere = [each for each in more if place_of(each) != place_of(first)]
        if elsewhere:
            lines.append(phrase("also: the same in {places}", places=_paths(elsewhere, verbose)))
    inherited = len(rest) - len(own)
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


def in_one_line(divergence: Divergence, report: Report) -> str:
    numbered = bool(divergence.step or report.coverage.count("steps"))
    where = [
        *([phrase("step {step}", step=divergence.step)] if numbered else []),
        *([phrase("rank {rank}", rank=divergence.rank)] if divergence.rank else []),
        PHASES.get(divergence.phase, divergence.phase),
        *([place_of(divergence)] if report.has_calls else []),
    ]
    size = _size(divergence, report)
    line: str = phrase("{where}: {what}", where=joined(", ", where), what=divergence.what)
    if size:
        line = phrase("{line}, {size}", line=line, size=size)
    return phrase("{line} ({detail})", line=line, detail=divergence.message) if divergence.message else line


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
        [_beside(_WORDS[report.scale].largest(score_words(max(finite)), f"{report.limit:g}"))]
        if finite and report.tolerance is None
        else []
    )
    how = [_directions(coverage)] if coverage.directions else []
    what = joined(", ", [*map(amount, coverage.compared), *how]) or phrase("nothing")
    lines = [phrase("compared   {what}", what=what), *worst]
    words = _WORDS[report.scale].unpaired
    if report.unpaired_reference:
        kinds = _kinds(report.unpaired_reference)
        lines.append(_beside(phrase("unpaired in the reference: {kinds}; {then}", kinds=kinds, then=words)))
        lines += _sites(report.unpaired_reference) if verbose else []
    if report.unpaired_port:
        kinds = _kinds(report.unpaired_port)
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
    return [phrase("             {site}", site=_site(site)) for site in sites]


def _directions(coverage: Coverage) -> str:
    words = joined(" and ", (PHASES.get(each, each) for each in coverage.directions))
    if not coverage.mode:
        return words
    return phrase("{directions} in {mode} mode", directions=words, mode=coverage.mode)


def _kinds(sites: Sequence[Site]) -> str:
    kinds = Counter(site.kind for site in sites)
    named = joined(", ", (f"{count} {kind}" for kind, count in kinds.most_common(SHOWN)))
    if len(kinds) <= SHOWN:
        return named
    return phrase("{kinds} and {count} more kinds", kinds=named, count=len(kinds) - SHOWN)


def amount(compared: Compared) -> str:
    """``4 of 4 calls (100%)``, ``20 tensors``."""
    known = NOUNS.get(compared.what)
    total = compared.count if compared.of is None else compared.of
    noun = compared.what if known is None else known.one if total == 1 else known.many
    if compared.of is None:
        return phrase("{count} {noun}", count=compared.count, noun=noun)
    told = phrase("{count} of {total} {noun}", count=compared.count, total=compared.of, noun=noun)
    if not compared.of:
        return told
    return phrase("{amount} ({share})", amount=told, share=f"{compared.count / compared.of:.0%}")


def notes_of(report: Report) -> list[str]:
    """What is worth knowing and is not said above already."""
    own = [each for each in report.divergences if not each.inherited]
    settings = {line for each in own for line in differing_settings(each)}
    told = {each.cause.message for each in own if each.cause is not None} | {each.what for each in own}
    return [
        finding.message
        for finding in report.findings
        if finding.setting not in settings and finding.message not in told
    ]


def _listed(items: Sequence[str], verbose: bool) -> list[str]:
    shown = items if verbose else items[:SHOWN]
    notes = [phrase("note: {note}", note=item) for item in shown]
    if len(items) > len(shown):
        notes.append(phrase("note: ... and {count} more", count=len(items) - len(shown)))
    return notes


def score_words(score: float) -> str:
    return phrase(
        "{number}x",
        number=f"{score:.3g}" if score < 1e3 else f"{score:,.0f}" if score < 1e6 else f"{score:.1e}",
    )


def _next_step(report: Report) -> str:
    first = report.first
    if first is None:
        return phrase("next: nothing to mend here")
    again = phrase("align again") if report.scale == "noise" else phrase("record and compare again")
    if not report.has_calls:
        again = phrase("compare again")
    if first.cause is not None:
        if len(by_mistake([each for each in report.divergences if not each.inherited])) > 1:
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
