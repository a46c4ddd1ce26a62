"""Containers are paired by what was paired inside them, whatever they are called and however they nest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from parfocal.judge import limits
from parfocal.matching.table import PairReason, PairTable
from parfocal.matching.values import SAME, UNLIKE, nearest, tie_slots
from parfocal.replay.observe import FLOATING
from parfocal.replay.trace import Node, Trace

PACKED = "batch_sizes"  # the part by which a packed sequence is known
MIN_SHARE = limits.pairing.COMMON_SHARE.value


def pair_containers(table: PairTable, reference: Trace, port: Trace) -> None:
    """By the calls paired inside; of equals the same values, the same class, the same depth."""
    inside = Counter(
        (above, other_above)
        for ours, theirs in table.to_port.items()
        for above in containers_above(reference, ours)
        for other_above in containers_above(port, theirs)
    )
    ours_total = Counter(above for ours in table.to_port for above in containers_above(reference, ours))
    theirs_total = Counter(above for theirs in table.to_reference for above in containers_above(port, theirs))
    ranked = sorted(
        (
            (
                -count / (ours_total[a] + theirs_total[b] - count),
                *_unlikeness(reference.nodes[a], port.nodes[b]),
                a,
                b,
            )
            for (a, b), count in inside.items()
        ),
    )
    weighty = [
        (order, other)
        for other, order in table.to_reference.items()
        if table.why[other] is PairReason.WEIGHTS
    ]
    for share, *_, a, b in ranked:
        if -share < MIN_SHARE or a in table.to_port or b in table.to_reference:
            continue
        call, other = reference.nodes[a], port.nodes[b]
        if _do_the_same(call, other) or _hold_the_same(call, other, weighty):
            table.add(call, other, PairReason.INSIDE)


def _do_the_same(call: Node, other: Node) -> bool:
    """Blocks that take and give the same values, whatever they are made of, and neither gives more."""
    given = [v for node in (call, other) for v in node.outputs.values() if v.data.dtype in FLOATING]
    tied = tie_slots(other.outputs, call.outputs)
    shared = {*(id(other.outputs[slot]) for slot in tied), *(id(value) for value in tied.values())}
    return (
        nearest(call.inputs, other.inputs) <= SAME
        and nearest(call.outputs, other.outputs) <= SAME
        and all(id(value) in shared for value in given)
    )


def _hold_the_same(call: Node, other: Node, weighty: Iterable[tuple[int, int]]) -> bool:
    """Whether every layer with weights inside the one has its partner inside the other."""
    return all(_is_inside(call, mine) == _is_inside(other, theirs) for mine, theirs in weighty)


def _is_inside(container: Node, order: int) -> bool:
    return container.order < order < container.finished


def part_unlike_containers(table: PairTable, reference: Trace, port: Trace) -> None:
    """Blocks that give tensors of another size do different jobs (one may concatenate, say): not a pair."""
    for order in [order for order in table.to_reference if not port.nodes[order].is_leaf]:
        call, other = reference.nodes[table.to_reference[order]], port.nodes[order]
        if other.parent is not None and nearest(call.outputs, other.outputs) == UNLIKE and not call.is_leaf:
            table.part(order)


def _unlikeness(a: Node, b: Node) -> tuple[bool, bool, int]:
    return nearest(a.outputs, b.outputs) > SAME, a.class_name != b.class_name, abs(a.depth - b.depth)


def part_packed(table: PairTable, reference: Trace, port: Trace) -> None:
    """A packed sequence and a padded one share no tensor, so the calls around them are compared instead."""
    for order, ours in list(table.to_reference.items()):
        if _is_packed(reference.nodes[ours]) != _is_packed(port.nodes[order]):
            table.part(order)


def _is_packed(call: Node) -> bool:
    return any(slot.rpartition(".")[2] == PACKED for slot in (*call.inputs, *call.outputs))


def containers_above(trace: Trace, order: int) -> list[int]:
    """The calls around a call, the innermost first."""
    found = []
    above = trace.nodes[order].parent
    while above is not None:
        found.append(above)
        above = trace.nodes[above].parent
    return found
