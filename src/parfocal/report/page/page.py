"""``report.html``: one file that needs nothing else, for a browser, a phone or a printer.

The verdict, the mistakes and the rows are in the file as plain HTML; details and plots are made when someone
asks for them. Everything that users named is escaped: by the template in HTML, as ``\\u003c`` in JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from parfocal.judge.verdict import PHASES, Divergence
from parfocal.report.coverage import Compared, words_of
from parfocal.report.mistakes import own_mistakes
from parfocal.report.page.facts import DETAILED, facts_of, plain, where
from parfocal.report.page.labels import Label, say
from parfocal.report.page.plotting import library
from parfocal.report.page.rows import PageRow, rows_of
from parfocal.report.report import PARTIAL, Curve, Report
from parfocal.report.wording import (
    cause_label,
    notes_of,
    path_of,
    place_of,
    proof_label,
    proof_words,
    settings_of,
)
from parfocal.weights.plan import Plan, crossed_words, presumptions

COLUMNS = 80  # of the table of steps; more steps share a column
# What is counted in a training -> the phase it belongs to.
PHASE_OF = {
    "parameters": "weights",
    "batches": "data",
    "outputs": "forward",
    "losses": "loss",
    "gradients": "gradient",
    "updates of parameters": "optimizer",
    "buffers": "buffer",
    "learning rates": "lr",
}
BLOCK = 40  # rows that a browser lays out together, or not at all while they are out of sight


def to_html(report: Report) -> str:
    """The whole page."""
    rows = rows_of(report)
    facts = facts_of(report, rows)
    return _template().render(
        report=report,
        verdict=_verdict(report),
        tiles=[_tile(each) for each in report.coverage.compared],
        largest=_largest(report),
        left_out=[say(words_of(each)) for each in report.coverage.left_out],
        mistakes=[_mistake(group, report, rows) for group in own_mistakes(report.divergences)],
        inherited=sum(each.inherited for each in report.divergences),
        blocks=[rows[at : at + BLOCK] for at in range(0, len(rows), BLOCK)],
        block_length=BLOCK,
        row_count=len(rows),
        kinds=sorted({row.site.kind for row in rows if row.site.kind and not row.around}),
        phases=_phases(report.divergences),
        steps=_steps(report),
        plan=None if report.transfer is None else _plan(report.transfer),
        notes=[say(each) for each in notes_of(report)],
        facts=embedded(facts),
        plots=_has_plots(report, facts),
        library=library() if _has_plots(report, facts) else "",
    )


def embedded(value: Any) -> Markup:
    """JSON inside of a script element: nothing in it can end the element or begin another."""
    text = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


@cache
def _template() -> Template:
    environment = Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["say"] = say
    environment.filters["score"] = lambda value: "" if value is None else score_of(value)
    environment.globals.update(level=level, where=where, gap=_gap)
    environment.globals["style"] = Markup(source("report.css"))
    environment.globals["script"] = Markup(source("report.js"))
    return environment.get_template("report.html")


def source(name: str) -> str:
    """A file of this room."""
    return (files(__package__) / "parts" / name).read_text(encoding="utf-8")


def score_of(value: float) -> str:
    """A score as the page's script writes it too."""
    if not math.isfinite(value):
        return "∞"
    if value < 1e3:
        return f"{float(f'{value:.3g}'):g}×"
    if value < 1e6:
        return f"{value:,.0f}×"
    return f"{value / 1e6:.1f}M×" if value < 1e9 else f"{value:.0e}×".replace("+", "")


def level(score: float | None, limit: float) -> int:
    """How dark a score is: 0 none, 1 and 2 within the limit, 3 to 5 beyond it."""
    if score is None:
        return 0
    bounds = (limit / 2, limit, 25 * limit, 2500 * limit)
    return 1 + sum(score > bound for bound in bounds)


def _verdict(report: Report) -> Label:
    said = say("SAME" if report.ok else "DIFFERENT")
    if any(each.code in PARTIAL for each in report.findings):
        so_far = say("as far as recorded")
        return Label(f"{said.en} {so_far.en}", f"{said.zh}（{so_far.zh}）")
    return said


def _tile(each: Compared) -> dict[str, Any]:
    return {
        "what": say(each.what),
        "count": f"{each.count:,}",
        "of": None if each.of is None else f"{each.of:,}",
        "share": None if not each.of else round(100 * each.count / each.of),
    }


def _largest(report: Report) -> str:
    """The largest finite score of a call."""
    scores = [score for pair in report.pairs for score in (pair.forward, pair.backward) if score is not None]
    finite = [score for score in scores if math.isfinite(score)]
    return score_of(max(finite)) if finite and report.tolerance is None else ""


def _mistake(group: Sequence[Divergence], report: Report, rows: Sequence[PageRow]) -> dict[str, Any]:
    first = group[0]
    number = report.divergences.index(first)
    shown = next((index for index, row in enumerate(rows) if number in row.divergences), None)
    places = list(dict.fromkeys(place_of(each) for each in group[1:] if place_of(each) != place_of(first)))
    return {
        "first": first,
        "place": place_of(first) if report.has_calls or path_of(first) else "",
        "what": say(first.what),
        "message": say(first.message) if first.message else None,
        "score": score_of(first.score) if report.tolerance is None and math.isfinite(first.score) else "",
        "settings": [(each.name, each.reference, each.port) for each in settings_of(first)],
        "cause": None if first.cause is None else say(first.cause.message),
        "proof": None
        if first.cause is None
        else [say(told(first.cause)) for told in (cause_label, proof_label, proof_words)],
        "row": shown,
        "places": places,
        "number": number if number < DETAILED else None,
        "steps": bool(first.step or report.coverage.count("steps")),
    }


def _phases(divergences: Sequence[Divergence]) -> list[str]:
    found = {each.phase for each in divergences}
    return [phase for phase in PHASES if phase in found]


def _gap(curve: Curve) -> str:
    """The largest finite difference of two curves, and where it is."""
    gaps = [abs(a - b) for a, b in zip(curve.reference, curve.port, strict=False)]
    finite = [(gap, -step) for step, gap in enumerate(gaps) if math.isfinite(gap)]
    largest, at = max(finite, default=(0.0, 0))
    return f"{largest:.3g} @ {-at}" if largest else "0"


def _steps(report: Report) -> dict[str, Any] | None:
    """Which phase first parts at which step; None where there are no steps to tell apart."""
    count = max(report.coverage.count("steps"), *(each.step + 1 for each in report.divergences), 0, 0)
    if count < 2:
        return None
    columns = min(count, COLUMNS)
    lines = []
    compared = {PHASE_OF[each.what] for each in report.coverage.compared if each.what in PHASE_OF}
    compared |= {each.phase for each in report.divergences}
    for phase in (each for each in PHASES if each in compared):
        cells: list[dict[str, Any]] = [{"state": "", "title": ""} for _ in range(columns)]
        for each in report.divergences:
            if each.phase != phase:
                continue
            cell = cells[each.step * columns // count]
            title = f"{each.step}: {place_of(each)}: {each.what}"
            if cell["state"] != "own":
                cell.update(state="inherited" if each.inherited else "own", title=title)
        lines.append({"phase": say(phase), "cells": cells})
    return {"lines": lines, "columns": columns, "count": count}


def _plan(plan: Plan) -> dict[str, Any]:
    verified = {
        True: "the outputs agree on the inputs",
        False: "the outputs differ on the inputs",
        None: "not verified by running",
    }[plan.verified]
    return {
        "entries": plan.entries,
        "copies": len(plan.entries),
        "complete": say("complete" if plan.complete else "incomplete"),
        "verified": say(verified),
        "left": [
            (say(side), item, say(title))
            for title, sides in (
                (
                    "without a counterpart",
                    (("reference", plan.unmatched_reference), ("port", plan.unmatched_port)),
                ),
                ("without a part in the run", (("reference", plan.idle_reference), ("port", plan.idle_port))),
            )
            for side, items in sides
            for item in items
        ],
        "lines": [
            *((say("ambiguous"), say(f"{', '.join(a.targets)}: {a.reason}")) for a in plan.ambiguous),
            *((say("presumed"), say(line)) for line in presumptions(plan.presumed)),
            *((say("presumed"), say(crossed_words(item))) for item in plan.permuted),
        ],
    }


def _has_plots(report: Report, facts: dict[str, Any]) -> bool:
    pictures = any(each["error"] and each["error"]["maps"] for each in facts["differences"])
    return bool(report.curves or len(facts["depth"]["rows"]) > 1 or pictures)
