"""What the page shows on demand, as JSON: details of rows and differences, and the series of the plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from parfocal.backends.vocabulary import CONVENTIONS
from parfocal.brief import brief
from parfocal.judge.comparison import Comparison
from parfocal.judge.verdict import Cause, Divergence, Site
from parfocal.report.page.labels import LABELS, say
from parfocal.report.page.rows import PageRow
from parfocal.report.report import Report
from parfocal.report.wording import cause_label, proof_label, proof_words, short_path

Plain = dict[str, Any]
DETAILED = 400  # differences told in full; of more the own ones come first anyway


def facts_of(report: Report, rows: Sequence[PageRow]) -> Plain:
    settings = _Settings()
    return {
        "labels": LABELS,
        "limit": report.limit,
        "rows": [_row(row, settings) for row in rows],
        "settings": settings.known,
        "differences": [_difference(each) for each in report.divergences[:DETAILED]],
        "depth": depth_of(report, rows),
        "curves": [
            {
                "name": say(each.name),
                "reference": each.reference,
                "port": each.port,
                "along": each.along,
                "horizon": each.horizon,
            }
            for each in report.curves
        ],
    }


class _Settings:
    """Settings of layers, each kept once: a model has few kinds of layers and many layers."""

    def __init__(self) -> None:
        self.known: list[dict[str, str]] = []
        self._places: dict[tuple[tuple[str, str], ...], int] = {}

    def place(self, settings: Mapping[str, Any]) -> int:
        words = {str(name): brief(value) for name, value in settings.items() if name not in CONVENTIONS}
        key = tuple(words.items())
        if key not in self._places:
            self._places[key] = len(self.known)
            self.known.append(words)
        return self._places[key]


def _row(row: PageRow, settings: _Settings) -> Plain:
    pair = row.pair
    return {
        "sides": [_site(site, settings) for site in (row.reference, row.port)],
        "why": None if pair is None else say(pair.why),
        "scores": [None, None] if pair is None else [pair.forward, pair.backward],
        "errors": [
            None if each is None else [each.error, each.floor]
            for each in ((None, None) if pair is None else (pair.forward_error, pair.backward_error))
        ],
        "differences": [number for number in row.divergences if number < DETAILED],
    }


def _site(site: Site | None, settings: _Settings) -> Plain | None:
    if site is None:
        return None
    return {
        "path": site.path,
        "kind": site.kind,
        "at": where(site),
        "settings": settings.place(site.settings),
    }


def where(site: Site) -> str:
    """The line that makes the call."""
    return f"{short_path(site.file)}:{site.line}" if site.file else ""


def _difference(each: Divergence) -> Plain:
    return {
        "phase": say(each.phase),
        "step": each.step,
        "rank": each.rank,
        "what": say(each.what),
        "message": say(each.message),
        "score": each.score,
        "noise": each.noise.rms,
        "inherited": each.inherited,
        "error": None if each.error is None else _error(each.error),
        "cause": None if each.cause is None else _cause(each.cause),
    }


def _cause(cause: Cause) -> Plain:
    return {
        "code": cause.code,
        "message": say(cause.message),
        "fix": say(cause.fix),
        "label": say(cause_label(cause)),
        "proof": [say(proof_label(cause)), say(proof_words(cause))],
        "alternatives": [_cause(each) for each in cause.alternatives],
    }


def _error(error: Comparison) -> Plain:
    picture = error.picture
    return {
        "dtype": error.a.dtype,
        "shape": list(error.a.shape),
        "largest": error.max_abs,
        "index": error.max_index,
        "values": [_number(error.max_b), _number(error.max_a)],
        "rms": error.rmse,
        "relative": error.rel_l2,
        "cosine": error.cosine,
        "differing": error.mismatched,
        "size": error.size,
        "not finite": error.nonfinite_disagreeing,
        "histogram": None
        if picture is None or picture.histogram is None
        else [picture.histogram.low, picture.histogram.high, picture.histogram.counts],
        "maps": []
        if picture is None
        else [
            {
                "axes": [each.row_axes, each.column_axes],
                "lengths": each.lengths,
                "peak": each.peak,
                "levels": each.levels,
            }
            for each in picture.maps
        ],
    }


def _number(value: Any) -> str | None:
    return None if value is None else f"{value:.9g}"


def depth_of(report: Report, rows: Sequence[PageRow]) -> Plain:
    """Along the innermost paired calls: what each makes itself, its floor, and what was carried so far."""
    carried: dict[str, list[float]] = {}
    for step in report.along:
        carried.setdefault(step.path, []).append(step.carried)
    inner = [(number, row) for number, row in enumerate(rows) if row.pair is not None and not row.around]
    series: Plain = {"rows": [], "paths": [], "carried": [], "forward": [], "backward": []}
    for number, row in inner:
        assert row.pair is not None
        series["rows"].append(number)
        series["paths"].append(row.pair.port.path)
        waiting = carried.get(row.pair.port.path)
        series["carried"].append(waiting.pop(0) if waiting else None)
        for name, error in (("forward", row.pair.forward_error), ("backward", row.pair.backward_error)):
            series[name].append(None if error is None else [error.error, error.floor])
    return series


def plain(value: Any) -> Any:
    """JSON has no infinity and no NaN: those become texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
