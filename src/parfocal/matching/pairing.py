"""Pair the calls of two traces, without a map.

Calls of modules that own weights are anchored by the weight transfer. Calls without weights are
paired by the values they give, and where values do not help (after the first divergence, or
where several are equal) by kind and order between their neighbours. Containers are paired by
what was paired inside them, so names, nesting and definition order do not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from parfocal.matching.anchors import Anchor
from parfocal.matching.containers import (
    containers_above,
    pair_containers,
    part_packed,
    part_unlike_containers,
)
from parfocal.matching.dividing import find_fused, healed_calls
from parfocal.matching.table import PairReason, PairTable, same_kind
from parfocal.matching.values import SAME, UNLIKE, nearest
from parfocal.matching.weightless import align, pair_by_order, pair_by_value
from parfocal.replay.trace import Node, Trace


@dataclass(frozen=True, slots=True)
class CallPair:
    """Two calls that stand for each other.

    ``gives`` is the reference's call whose output the port's output is compared with: the same
    call, or the last of a run that the port's call fuses; None when the port's run goes on.
    ``takes`` is False for the end of such a run: its input has no counterpart. ``whole`` is False
    when the two only share work with others: they take the same, but give parts.
    """

    reference: int
    port: int
    gives: int | None
    takes: bool
    why: PairReason
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Pairing:
    pairs: tuple[CallPair, ...]
    unpaired_reference: tuple[int, ...]
    unpaired_port: tuple[int, ...]


def pair_calls(
    reference: Trace,
    port: Trace,
    anchors: Iterable[Anchor],
    layers: Mapping[str, str] | None = None,
    splits: Iterable[tuple[str, str]] = (),
) -> Pairing:
    """``layers``: the user's own word, path of the reference's module -> path of the port's."""
    table = PairTable()
    if "" not in (layers or {}):
        _pair_wholes(table, reference, port)
    _pair_anchors(table, reference, port, anchors, layers or {})
    fused = find_fused(table, reference, port)
    pair_by_value(table, reference, port, fused)
    splits = list(splits)
    split_paths = {split[0] for split in splits}, {split[1] for split in splits}
    pair_by_order(table, reference, port, fused, split_paths)
    pair_containers(table, reference, port)
    part_unlike_containers(table, reference, port)
    part_packed(table, reference, port)
    healed = healed_calls(table, reference, port)
    going_on = set(fused.goes_on.values())
    pairs = tuple(
        CallPair(
            ours,
            order,
            None if order in healed and ours not in fused.ends else fused.gives(ours, order),
            order not in going_on,
            why,
        )
        for order, why in sorted(table.why.items())
        for ours in (table.to_reference[order],)
    )
    parts = _pair_parts(table, reference, port, splits)
    # of several calls that one call of the other side stands for, all are spoken for
    shared = [
        {node.order for node in trace.nodes if node.path in paths}
        for paths, trace in zip(split_paths, (reference, port), strict=True)
    ]
    return Pairing(
        tuple(sorted((*pairs, *parts), key=lambda pair: pair.port)),
        _left_over(reference, table.to_port, fused.reference_inside | shared[0]),
        _left_over(port, table.to_reference, fused.port_inside | shared[1]),
    )


def _pair_parts(
    table: PairTable, reference: Trace, port: Trace, splits: Iterable[tuple[str, str]]
) -> list[CallPair]:
    """Calls that do parts of the same work, as far as they take the same tensor."""
    ours, theirs = reference.calls_by_path(), port.calls_by_path()
    found: dict[int, CallPair] = {}
    paired = [
        pair
        for path, other_path in splits
        for pair in zip(ours.get(path, []), theirs.get(other_path, []), strict=False)
    ]
    in_port, in_reference = _fed_inside(paired), _fed_inside((other, call) for call, other in paired)
    for call, other in paired:
        if (call.order, other.order) in in_port or (other.order, call.order) in in_reference:
            continue
        free = call.order not in table.to_port and other.order not in table.to_reference
        if free and other.order not in found and nearest(call.inputs, other.inputs) < UNLIKE:
            found[other.order] = CallPair(
                call.order, other.order, None, True, PairReason.SHARED_WEIGHTS, whole=False
            )
    return list(found.values())


def _fed_inside(paired: Iterable[tuple[Node, Node]]) -> set[tuple[int, int]]:
    """Of several calls that one call stands for, those that take what others of them made.

    The one call takes some tensors of a size; as many different tensors of that size, the first to be
    taken, are the same on the other side. What is taken later is made in between.
    """
    several: dict[int, list[tuple[Node, Node]]] = {}
    for one, part in paired:
        several.setdefault(one.order, []).append((one, part))
    found: set[tuple[int, int]] = set()
    for pairs in several.values():
        taken: dict[int, set[int]] = {}
        for one, part in sorted(pairs, key=lambda pair: pair[1].order):
            sizes = Counter(value.data.fingerprint.size for value in one.inputs.values())
            for value in part.inputs.values():
                size = value.data.fingerprint.size
                seen = taken.setdefault(size, set())
                seen.add(id(value.data))
                if sizes[size] and len(seen) > sizes[size]:
                    seen.discard(id(value.data))
                    found.add((one.order, part.order))
    return found


def with_parts(pairing: Pairing, port: Trace, paths: Collection[str]) -> Pairing:
    """The same, but for layers of these paths: they give the reference's values in another order."""
    return replace(
        pairing,
        pairs=tuple(
            replace(pair, gives=None, whole=False) if port.nodes[pair.port].path in paths else pair
            for pair in pairing.pairs
        ),
    )


def _left_over(trace: Trace, paired: Mapping[int, int], fused: set[int]) -> tuple[int, ...]:
    """Calls without a partner, except those inside a paired layer of the framework."""
    return tuple(
        node.order
        for node in trace.nodes
        if node.order not in paired
        and node.order not in fused
        and not any(
            trace.nodes[a].framework_layer and a in paired for a in containers_above(trace, node.order)
        )
    )


def _pair_wholes(table: PairTable, reference: Trace, port: Trace) -> None:
    """The models themselves are a pair, however they nest their layers.

    A model that is a single layer stands for the layer that has its weights.
    """
    wholes = [[node for node in trace.nodes if node.parent is None] for trace in (reference, port)]
    if len(wholes[0]) == len(wholes[1]):
        for call, other in zip(*wholes, strict=True):
            if not (call.is_leaf or other.is_leaf):
                table.add(call, other, PairReason.WHOLE)


def _pair_anchors(
    table: PairTable, reference: Trace, port: Trace, anchors: Iterable[Anchor], layers: Mapping[str, str]
) -> None:
    ours, theirs = reference.calls_by_path(), port.calls_by_path()
    said = [(path, other, PairReason.LAYERS) for path, other in layers.items()]
    found = [(*pair, PairReason.WEIGHTS) for anchor in anchors for pair in _decide(anchor, ours, theirs)]
    for path, other_path, why in (*said, *found):
        calls = table.free(ours.get(path, []), table.to_port)
        others = table.free(theirs.get(other_path, []), table.to_reference)
        for call, other in align(calls, others, _closeness):
            if why is PairReason.LAYERS or not _is_part_of(call, other):
                table.add(call, other, why)


def _is_part_of(a: Node, b: Node) -> bool:
    """Whether a layer does only the first part of the other side's block."""
    return a.is_leaf != b.is_leaf and nearest(a.outputs, b.outputs) == UNLIKE


def _decide(
    anchor: Anchor, ours: Mapping[str, list[Node]], theirs: Mapping[str, list[Node]]
) -> list[tuple[str, str]]:
    """Which of several modules around the same weights is which: by what their first calls give and take."""
    called = [path for path in anchor.reference if path in ours]
    others = [path for path in anchor.port if path in theirs]
    ranked = sorted(
        # of equals the innermost, which own the weights
        (*_unlike_calls(ours[path][0], theirs[other][0]), depth + other_depth, path, other)
        for depth, path in enumerate(reversed(called))
        for other_depth, other in enumerate(reversed(others))
    )
    pairs: list[tuple[str, str]] = []
    for *_, path, other in ranked:
        if all(path != a and other != b for a, b in pairs):
            pairs.append((path, other))
    return pairs


def _unlike_calls(a: Node, b: Node) -> tuple[bool, bool, bool]:
    return (
        nearest(a.outputs, b.outputs) > SAME,
        nearest(a.inputs, b.inputs) > SAME,
        not same_kind(a, b),
    )


def _closeness(a: Node, b: Node) -> float:
    """For calls of two modules that correspond: any may pair, the nearest values are worth most."""
    return 2.0 - min(nearest(a.outputs, b.outputs), 1.0)
