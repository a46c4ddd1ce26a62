"""A report in words, on one screen: the verdict, the first divergence, what was and was not compared."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from parfocal.backends.vocabulary import CONVENTIONS
from parfocal.brief import brief, some
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Divergence, Site
from parfocal.report.coverage import Compared, words_of
from parfocal.report.mistakes import by_mistake, place_of
from parfocal.report.report import INCOMPLETE, Report, Step

WIDTH = 80
SHOWN = 5  # of a list, before it is summed up
LINES = 60  # of a text that is not asked to say everything
MESSAGE = 5  # lines of one message, likewise
FIX = 8  # lines of one fix, likewise
NOTES = 8  # lines of notes that are kept free whatever else there is to tell
_BARS = (" ▁▂▃▄▅▆▇█", " .:-=+*#@")  # the second where the first cannot be printed
_FIX = "  fix        "
_LABEL = re.compile(r"\s{4,}|\s*\S+\s{2,}")


@dataclass(frozen=True, slots=True)
class _Words:
    """How scores are told: those of calls that were run again, and those of recorded ones."""

    score: str
    floor: str
    largest: str
    unpaired: str  # what becomes of calls without a partner


_WORDS = {
    "noise": _Words(
        "{} the noise", "noise", "largest own error {} the noise", "judged with the code around them"
    ),
    "growth": _Words("{} what went in", "given", "an error grew by {} at most", "not compared"),
}


def render(report: Report, width: int = WIDTH, *, verbose: bool = False) -> str:
    """The report in words: at most ``LINES`` lines, or everything with ``verbose``."""
    first = [] if report.first is None else [*_divergence(report.first, report), ""]
    head, others, summary, notes, end = (
        [part for line in lines for part in _fitted(line, width, verbose)]
        for lines in (
            [headline(report), "", *first],
            _others(report, verbose),
            [*_depth(report.along, report.limit, width), *_compared(report, verbose)],
            _listed("note", _notes(report), verbose),
            [_next_step(report)],
        )
    )
    if not verbose:
        room = LINES - len(head) - len(summary) - len(end)
        others = _cut(others, max(1, room - min(len(notes), NOTES)), 0, "differences")
        notes = _cut(notes, max(1, room - len(others)), 0, "notes")
    return "\n".join((*head, *others, *summary, *notes, *end))


def _fitted(text: str, width: int, verbose: bool) -> list[str]:
    """Long lines go on below, under the text beside their label; a line of code stays one line."""
    if text.startswith(_FIX):
        code = text.splitlines()
        lines = [code[0], *(" " * len(_FIX) + line for line in code[1:])]
        return lines if verbose else _cut(lines, FIX, len(_FIX))
    label = _LABEL.match(text)
    indent = len(label[0]) if label else 4
    lines = [
        part
        for line in text.split("\n")
        for part in wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False) or [""]
    ]
    return lines if verbose else _cut(lines, MESSAGE, indent)


def _cut(lines: list[str], most: int, indent: int, what: str = "") -> list[str]:
    """The first lines, and how many there are besides."""
    if len(lines) <= most:
        return lines
    more = f"{len(lines) - most + 1} more lines" + (f" of {what}" if what else "")
    return [*lines[: most - 1], f"{' ' * indent}... {more}: -v, or report.text(verbose=True)"]


def headline(report: Report) -> str:
    so_far = " as far as recorded" if any(each.code == INCOMPLETE for each in report.findings) else ""
    verdict = f"SAME{so_far}" if report.ok else "DIFFERENT"
    return f"{verdict}: {report.port_name} against {report.reference_name}"


def _divergence(first: Divergence, report: Report) -> list[str]:
    lines = [f"first divergence: {in_one_line(replace(first, message=''), report)}"]
    for side, site in (("reference", first.reference), ("port", first.port)):
        if site is not None and report.has_calls:
            lines.append(f"  {side:<10} {_site(site)}")
    lines += [f"  settings   {line}" for line in differing_settings(first)]
    if first.message and (first.cause is None or first.message not in first.cause.message):
        lines.append(f"  {first.message}")
    if first.error is not None:
        lines += _error(first.error, first, report)
    if first.cause is not None:
        lines += [f"  cause      {first.cause.message}", f"{_FIX}{first.cause.fix}"]
    return lines


def _site(site: Site) -> str:
    where = f"  {short_path(site.file)}:{site.line}" if site.file else ""
    op = f", {site.op}" if site.op else ""
    return f"{site.path or '(the model)'}  {site.kind}{op}{where}"


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
        f"{name}: {brief(ours[name])} in the reference, {brief(theirs[name])} in the port"
        for name in ours
        if name in theirs and ours[name] != theirs[name] and name not in CONVENTIONS
    ]


def _size(divergence: Divergence, report: Report) -> str:
    """How large a divergence is, in the units in which it was judged."""
    error, tolerance = divergence.error, report.tolerance
    if tolerance is not None and error is not None:
        bounds = f"rtol={tolerance.rtol:g}, atol={tolerance.atol:g}"
        return f", {error.mismatched} of {error.size} values beyond {bounds}"
    if tolerance is not None or not math.isfinite(divergence.score):
        return ""
    return f", {_WORDS[report.scale].score.format(score_words(divergence.score))}"


def _error(error: Comparison, first: Divergence, report: Report) -> list[str]:
    shape = "x".join(map(str, error.a.shape)) or "scalar"
    floor = f", {_WORDS[report.scale].floor} {first.noise.rms:.3g}" if report.tolerance is None else ""
    lines = [
        f"  error      {error.a.dtype} {shape}: rms {error.rmse:.3g}, relative {error.rel_l2:.3g}{floor}"
    ]
    if error.max_index is not None and error.max_a is not None and error.max_b is not None:
        place = f" at [{', '.join(map(str, error.max_index))}]" if error.max_index else ""
        values = f"reference {error.max_b:.9g}, port {error.max_a:.9g}"
        lines.append(f"  worst      {error.max_abs:.3g}{place}: {values}")
    if error.nonfinite_disagreeing:
        lines.append(f"  not finite on one side only: {_count(error.nonfinite_disagreeing, 'element')}")
    return lines


def _others(report: Report, verbose: bool) -> list[str]:
    """Every further mistake with its cause; the same mistake in several places once."""
    rest = report.divergences[1:]
    own = [d for d in rest if not d.inherited]
    lines: list[str] = []
    groups = by_mistake([*report.divergences[:1], *own])
    for number, (first, *more) in enumerate(groups):
        if number > SHOWN and not verbose:
            lines.append(f"also: ... and {len(groups) - number} more")
            break
        if number:
            lines.append(f"also: {in_one_line(first, report)}")
            if first.cause is not None:
                lines += [f"  cause      {first.cause.message}", f"{_FIX}{first.cause.fix}"]
        elsewhere = [each for each in more if place_of(each) != place_of(first)]
        if elsewhere:
            lines.append(f"also: the same in {_paths(elsewhere, verbose)}")
    inherited = len(rest) - len(own)
    if inherited:
        verb, cause = ("follows" if inherited == 1 else "follow"), ("this" if len(groups) == 1 else "these")
        lines.append(f"inherited: {_count(inherited, 'further difference')} {verb} from {cause}")
    return lines


def _paths(divergences: Sequence[Divergence], verbose: bool) -> str:
    paths = list(dict.fromkeys(place_of(each) for each in divergences))
    return some(paths, len(paths) if verbose else SHOWN)


def in_one_line(divergence: Divergence, report: Report) -> str:
    place = f", {place_of(divergence)}" if report.has_calls else ""
    numbered = bool(divergence.step or report.coverage.count("steps"))
    step = f"step {divergence.step}, " if numbered else ""
    rank = f"rank {divergence.rank}, " if divergence.rank else ""
    detail = f" ({divergence.message})" if divergence.message else ""
    return f"{step}{rank}{divergence.phase}{place}: {divergence.what}{_size(divergence, report)}{detail}"


def _bar() -> str:
    """The levels of a bar, as characters that can be printed here."""
    try:
        _BARS[0].encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return _BARS[1]
    return _BARS[0]


def _depth(steps: Sequence[Step], limit: float, width: int) -> list[str]:
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
    return [f"drift      {bar} up to {largest:.1e}", *([f"made here  {marks}"] if marks else [])]


def _compared(report: Report, verbose: bool) -> list[str]:
    coverage = report.coverage
    own = [score for pair in report.pairs for score in (pair.forward, pair.backward) if score is not None]
    finite = [score for score in own if math.isfinite(score)]
    largest = _WORDS[report.scale].largest.format(score_words(max(finite))) if finite else ""
    worst = (
        [f"           {largest}, allowed {report.limit:g}x"] if largest and report.tolerance is None else []
    )
    mode = f" in {coverage.mode} mode" if coverage.mode else ""
    how = [" and ".join(coverage.directions) + mode] if coverage.directions else []
    lines = [f"compared   {', '.join([*map(amount, coverage.compared), *how]) or 'nothing'}", *worst]
    for side, sites in (("reference", report.unpaired_reference), ("port", report.unpaired_port)):
        if sites:
            lines.append(
                f"           unpaired in the {side}: {_kinds(sites)}; {_WORDS[report.scale].unpaired}"
            )
            if verbose:
                lines += [f"             {_site(site)}" for site in sites]
    if coverage.left_out:
        lines.append(f"not compared  {', '.join(map(words_of, coverage.left_out))}")
    return lines


def _kinds(sites: Sequence[Site]) -> str:
    kinds = Counter(site.kind for site in sites)
    named = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(SHOWN))
    return named + (f" and {len(kinds) - SHOWN} more kinds" if len(kinds) > SHOWN else "")


def amount(compared: Compared) -> str:
    """``4 of 4 calls (100%)``, ``20 tensors``."""
    noun = compared.what.removesuffix("es" if compared.what.endswith("sses") else "s")
    if compared.of is None:
        return _counted(compared.count, noun, compared.what)
    share = f" ({compared.count / compared.of:.0%})" if compared.of else ""
    return f"{compared.count} of {_counted(compared.of, noun, compared.what)}{share}"


def _notes(report: Report) -> list[str]:
    """What is worth knowing and is not said above already."""
    own = [each for each in report.divergences if not each.inherited]
    told = tuple(f" {line}" for each in own for line in differing_settings(each))
    return [finding.message for finding in report.findings if not finding.message.endswith(told)]


def _listed(label: str, items: Sequence[str], verbose: bool) -> list[str]:
    if verbose:
        return [f"{label}: {item}" for item in items]
    shown = list(items[:SHOWN])
    if len(items) > SHOWN:
        shown.append(f"... and {len(items) - SHOWN} more")
    return [f"{label}: {item}" for item in shown]


def _count(number: int, noun: str) -> str:
    return _counted(number, noun, f"{noun}s")


def _counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def score_words(score: float) -> str:
    return f"{score:.3g}x" if score < 1e3 else f"{score:,.0f}x" if score < 1e6 else f"{score:.1e}x"


def _next_step(report: Report) -> str:
    first = report.first
    again = "align again" if report.scale == "noise" else "record and compare again"
    if not report.has_calls:
        again = "compare again"
    if first is None:
        return "next: nothing to mend here"
    if first.cause is not None:
        several = len(by_mistake([each for each in report.divergences if not each.inherited])) > 1
        return f"next: make the {'fixes' if several else 'fix'} above, then {again}"
    if first.phase == "weights":
        return f"next: make the weights correspond (see the plan: report.transfer), then {again}"
    site = first.port or first.reference
    where = f"{short_path(site.file)}:{site.line}" if site and site.file else "the place named above"
    if report.scale == "growth" and not report.coverage.count(
        "parameters"
    ):  # what the two runs started from was not recorded with them
        start = "see that both runs are of one model with one set of weights"
        return f"next: {start}, look at {where}, then {again}"
    return f"next: look at {where}, mend it, then {again}"
