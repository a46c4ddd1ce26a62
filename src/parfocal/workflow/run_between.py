"""What the code between recorded calls made: a call whose input is wrong while all before it was right.

The reverse holds going backward. Whatever carries an error on raises what counts as right, so only
the first place of each direction is named.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from parfocal.judge.floors import Size
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Divergence, Site, made_by_the_code_of
from parfocal.replay.trace import Node, Trace


@dataclass(frozen=True, slots=True)
class Arrived:
    """The worst tensor that reached a call: an input, or the gradient of an output."""

    error: float = 0.0
    slot: str = ""
    comparison: Comparison | None = None


NOTHING_ARRIVED = Arrived()


@dataclass(frozen=True, slots=True)
class Passage:
    """A pair of calls: what reached it going forward and backward, and what it sent on."""

    reference: Node
    port: Node
    taken: Arrived
    made: float
    returned: Arrived
    sent_back: float


def forward(
    passages: Sequence[Passage], traces: tuple[Trace, Trace], unit: float, limit: float
) -> Iterator[tuple[Passage, Divergence]]:
    """The call whose input is wrong, and whose output is wrong for it, with nothing wrong before."""
    for each in sorted(passages, key=lambda passage: passage.port.order):
        before = [p for p in passages if p.port.order < each.port.order]
        right = max(
            [
                unit,
                *(_finite(p.taken.error) for p in before),
                *(_finite(p.made) for p in before if p.port.finished <= each.port.order),
            ]
        )
        if each.port.parent is not None and min(each.made, _finite(each.taken.error)) > limit * right:
            what = f"input {each.taken.slot}"
            yield each, _divergence("forward", each, _around(each, traces), what, each.taken, right)
            return


def backward(
    passages: Sequence[Passage], traces: tuple[Trace, Trace], unit: float, limit: float
) -> Iterator[tuple[Passage, Divergence]]:
    """The call whose output's gradient is wrong, with nothing wrong in those that came back before."""
    for each in sorted(passages, key=lambda passage: -passage.port.finished):
        later = [p for p in passages if p is not each and p.port.finished >= each.port.finished]
        right = max(
            [
                unit,
                *(_finite(p.returned.error) for p in later),
                *(_finite(p.sent_back) for p in later if p.port.order >= each.port.finished),
            ]
        )
        if each.port.parent is not None and _finite(each.returned.error) > limit * right:
            what = f"gradient of output {each.returned.slot}"
            yield each, _divergence("backward", each, _around(each, traces), what, each.returned, right)
            return


def _around(passage: Passage, traces: tuple[Trace, Trace]) -> tuple[Node, Node]:
    ours, theirs = traces
    return (
        ours.nodes[ours.around(passage.reference.order, 1)],
        theirs.nodes[theirs.around(passage.port.order, 1)],
    )


def _finite(error: float) -> float:
    """Shapes that cannot be compared say nothing here."""
    return error if math.isfinite(error) else 0.0


def _divergence(
    phase: str, passage: Passage, around: tuple[Node, Node], what: str, arrived: Arrived, right: float
) -> Divergence:
    """Blames the enclosing calls, at the lines that call the layer whose tensor is wrong."""
    comparison = arrived.comparison
    size = 1.0 if comparison is None or not comparison.rel_l2 else comparison.rmse / comparison.rel_l2
    sites = [
        Site(outer.path, outer.kind, None, inner.file, inner.line)
        for outer, inner in zip(around, (passage.reference, passage.port), strict=True)
    ]
    return Divergence(
        phase,
        sites[0],
        sites[1],
        f"{what} of {passage.port.path}, {made_by_the_code_of(around[1].path)}",
        comparison,
        Size(right * size, right * size),
        arrived.error / right,
    )
