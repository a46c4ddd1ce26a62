"""A plan in a notebook: a table between two cells."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from parfocal.weights.plan import Plan
from parfocal.weights.views import Shape

SHOWN = 200  # rows


def to_cell(plan: Plan) -> str:
    """HTML for the output of a cell."""
    rows = [
        _row(
            (
                *(entry.source, _size(entry.source_shape), entry.target, _size(entry.target_shape)),
                *(entry.rule, ", ".join(entry.evidence)),
            )
        )
        for entry in plan.entries
    ]
    more = f"<p>... and {len(rows) - SHOWN} more</p>" if len(rows) > SHOWN else ""
    head = _row(("reference", "", "port", "", "rule", "because"), cell="th")
    verdict, *rest = plan.summary()
    lines = "".join(f"<li>{escape(line)}</li>" for line in rest)
    return (
        f'<div class="parfocal"><p><b>{escape(verdict)}</b></p>{f"<ul>{lines}</ul>" if lines else ""}'
        f"<table><thead>{head}</thead><tbody>{''.join(rows[:SHOWN])}</tbody></table>{more}</div>"
    )


def _row(cells: Iterable[str], cell: str = "td") -> str:
    inner = "".join(f'<{cell} style="text-align:left">{escape(text)}</{cell}>' for text in cells)
    return f"<tr>{inner}</tr>"


def _size(shape: Shape) -> str:
    return "×".join(map(str, shape))
