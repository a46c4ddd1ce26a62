"""The words for the parts of a report: places, sizes, amounts, the verdict; by every form it is shown in."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from parfocal.judge.verdict import (
    Cause,
    Divergence,
    Grounds,
    InheritanceReason,
    ProvenBy,
    SettingDifference,
    Site,
)
from parfocal.phrases import joined, phrase
from parfocal.report.coverage import NOUNS, Compared, Coverage
from parfocal.report.report import PARTIAL, Report
from parfocal.weights.settings import setting_differences, setting_words

SHOWN = 5  # of a list, before it is summed up


@dataclass(frozen=True, slots=True)
class ScoreWords:
    """How scores are told: those of calls that were run again, and those of recorded ones."""

    score: Callable[[str], str]
    floor: Callable[[str], str]
    largest: Callable[[str, str], str]
    unpaired: str  # what becomes of calls without a partner


SCORES = {
    "noise": ScoreWords(
        lambda score: phrase("{score} the noise", score=score),
        lambda size: phrase("noise {size}", size=size),
        lambda score, limit: phrase(
            "largest own error {score} the noise, allowed {limit}x", score=score, limit=limit
        ),
        phrase("judged with the code around them"),
    ),
    "growth": ScoreWords(
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


WAYS = {
    ProvenBy.REPLAYED: phrase("run again with it removed"),
    ProvenBy.RECOMPUTED: phrase("computed again with it removed"),
    ProvenBy.RELATED: phrase("made of the reference's values by it"),
}
GROUNDS = {
    Grounds.SETTINGS: phrase("read from the settings of both sides; not run"),
    Grounds.STRUCTURE: phrase("read from the layers and weights of both sides; not run"),
    Grounds.CODE: phrase("read from the ops of both sides; not run again"),
    Grounds.VALUES: phrase("seen in the values; not computed again with it removed"),
    Grounds.NOT_SAID: phrase("the report does not say whether it was proven"),
}


def cause_label(cause: Cause) -> str:
    """A cause only with a proof."""
    return phrase("likely") if cause.proof is None else phrase("cause")


def proof_label(cause: Cause) -> str:
    return phrase("rests on") if cause.proof is None else phrase("proof")


def proof_words(cause: Cause) -> str:
    """How it was proven, with the error before and after; or what it rests on."""
    if cause.proof is None:
        return GROUNDS[cause.rests_on or Grounds.NOT_SAID]
    return phrase(
        "{way}: error {before} before, {after} after",
        way=WAYS[cause.proof.way],
        before=score_words(cause.proof.before),
        after=score_words(cause.proof.after),
    )


def headline(report: Report) -> str:
    return phrase("{verdict}: {names}", verdict=verdict(report), names=names(report))


def verdict(report: Report) -> str:
    if not report.ok:
        return phrase("DIFFERENT")
    if any(each.code in PARTIAL for each in report.findings):
        return phrase("SAME as far as recorded")
    return phrase("SAME")


def names(report: Report) -> str:
    return phrase("{port} against {reference}", port=report.port_name, reference=report.reference_name)


def in_one_line(divergence: Divergence, report: Report) -> str:
    numbered = bool(divergence.step or report.coverage.count("steps"))
    where = [
        *([phrase("step {step}", step=divergence.step)] if numbered else []),
        *([phrase("rank {rank}", rank=divergence.rank)] if divergence.rank else []),
        PHASES.get(divergence.phase, divergence.phase),
        *([place_of(divergence)] if report.has_calls else []),
    ]
    size = size_words(divergence, report)
    line: str = phrase("{where}: {what}", where=joined(", ", where), what=divergence.what)
    if size:
        line = phrase("{line}, {size}", line=line, size=size)
    return phrase("{line} ({detail})", line=line, detail=divergence.message) if divergence.message else line


def path_of(divergence: Divergence) -> str:
    """Of the module it is in; empty for the model as a whole."""
    return (divergence.port or divergence.reference or Site("", "")).path


def place_of(divergence: Divergence) -> str:
    return path_of(divergence) or phrase("the model")


def size_words(divergence: Divergence, report: Report) -> str:
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
    return SCORES[report.scale].score(score_words(divergence.score))


def score_words(score: float) -> str:
    return phrase(
        "{number}x",
        number=f"{score:.3g}" if score < 1e3 else f"{score:,.0f}" if score < 1e6 else f"{score:.1e}",
    )


def site_words(site: Site) -> str:
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


def kind_words(sites: Sequence[Site]) -> str:
    kinds = Counter(site.kind for site in sites)
    named = joined(", ", (f"{count} {kind}" for kind, count in kinds.most_common(SHOWN)))
    if len(kinds) <= SHOWN:
        return named
    return phrase("{kinds} and {count} more kinds", kinds=named, count=len(kinds) - SHOWN)


def differing_settings(first: Divergence) -> list[str]:
    return [setting_words(each) for each in settings_of(first)]


def settings_of(divergence: Divergence) -> list[SettingDifference]:
    """Those that differ."""
    if divergence.reference is None or divergence.port is None:
        return []
    return setting_differences(divergence.reference.settings, divergence.port.settings)


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


def direction_words(coverage: Coverage) -> str:
    words = joined(" and ", (PHASES.get(each, each) for each in coverage.directions))
    if not coverage.mode:
        return words
    return phrase("{directions} in {mode} mode", directions=words, mode=coverage.mode)


def notes_of(report: Report) -> list[str]:
    """What is worth knowing and is not said above already."""
    own = [each for each in report.divergences if not each.inherited]
    settings = {difference for each in own for difference in settings_of(each)}
    return [
        finding.message
        for finding in report.findings
        if finding.setting not in settings and not finding.diverged
    ]
