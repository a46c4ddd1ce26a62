"""Pair the calls of two traces, without a map.

Calls of modules that own weights are anchored by the weight transfer. Calls without weights are
paired by the values they give, and where values do not help (after the first divergence, or
where several are equal) by kind and order between their neighbours. Containers are paired by
what was paired inside them, so names, nesting and definition order do not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from parfocal.matching.anchors import Anchor
from parfocal.matching.dividing import Fused, find_fused, healed_calls
from parfocal.matching.table import Table, same_kind
from parfocal.matching.values import SAME, UNLIKE, distance, nearest
from parfocal.replay.trace import Node, Trace

PACKED = "batch_sizes"  # the part by which torch's PackedSequence is known
BY_PLACE = "order and kind"  # why two calls were paired that neither weights nor values speak for
MIN_SHARE = 0.5  # of the paired calls inside two containers that must be common to both


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
    why: str
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
    table = Table()
    if "" not in (layers or {}):
        _pair_wholes(table, reference, port)
    _pair_anchors(table, reference, port, anchors, layers or {})
    fused = find_fused(table, reference, port)
    _pair_by_value(table, reference, port, fused)
    splits = list(splits)
    _pair_by_order(table, reference, port, fused, splits)
    _pair_containers(table, reference, port)
    _part_unlike_containers(table, reference, port)
    _part_packed(table, reference, port)
    healed = healed_calls(table, reference, port)
    pairs = tuple(
        CallPair(
            ours,
            order,
            None if order in healed and ours not in fused.ends else fused.gives(ours, order),
            order not in fused.goes_on.values(),
            why,
        )
        for order, why in sorted(table.why.items())
        for ours in (table.to_reference[order],)
    )
    parts = _pair_parts(table, reference, port, splits)
    # of several calls that one call of the other side stands for, all are spoken for
    shared = [
        {node.order for node in trace.nodes if node.path in {split[side] for split in splits}}
        for side, trace in enumerate((reference, port))
    ]
    return Pairing(
        tuple(sorted((*pairs, *parts), key=lambda pair: pair.port)),
        _left_over(reference, table.to_port, fused.reference_inside | shared[0]),
        _left_over(port, table.to_reference, fused.port_inside | shared[1]),
    )


def _pair_parts(
    table: Table, reference: Trace, port: Trace, splits: Iterable[tuple[str, str]]
) -> list[CallPair]:
    """Calls that do parts of the same work, as far as they take the same tensor."""
    ours, theirs = _by_path(reference.nodes), _by_path(port.nodes)
    found: dict[int, CallPair] = {}
    for path, other_path in splits:
        for call, other in zip(ours.get(path, []), theirs.get(other_path, []), strict=False):
            free = call.order not in table.to_port and other.order not in table.to_reference
            if free and other.order not in found and nearest(call.inputs, other.inputs) < UNLIKE:
                found[other.order] = CallPair(
                    call.order, other.order, None, True, "shared weights", whole=False
                )
    return list(found.values())


def _left_over(trace: Trace, paired: Mapping[int, int], fused: set[int]) -> tuple[int, ...]:
    """Calls without a partner; what a paired layer of the framework does inside is its own business."""
    return tuple(
        node.order
        for node in trace.nodes
        if node.order not in paired
        and node.order not in fused
        and not any(
            trace.nodes[a].framework_layer and a in paired for a in _containers_above(trace, node.order)
        )
    )


def _pair_wholes(table: Table, reference: Trace, port: Trace) -> None:
    """The models themselves stand for each other, however deep the one has its work and the other not.

    A model that is a single layer stands for the layer that has its weights.
    """
    wholes = [[node for node in trace.nodes if node.parent is None] for trace in (reference, port)]
    if len(wholes[0]) == len(wholes[1]):
        for call, other in zip(*wholes, strict=True):
            if not (call.is_leaf or other.is_leaf):
                table.add(call, other, "the whole model")


def _pair_anchors(
    table: Table, reference: Trace, port: Trace, anchors: Iterable[Anchor], layers: Mapping[str, str]
) -> None:
    ours, theirs = _by_path(reference.nodes), _by_path(port.nodes)
    said = [(path, other, "layers") for path, other in layers.items()]
    found = [(*pair, "weights") for anchor in anchors for pair in _decide(anchor, ours, theirs)]
    for path, other_path, why in (*said, *found):
        calls = table.free(ours.get(path, []), table.to_port)
        others = table.free(theirs.get(other_path, []), table.to_reference)
        for call, other in _align(calls, others, _closeness):
            if why == "layers" or not _is_part_of(call, other):
                table.add(call, other, why)


def _is_part_of(a: Node, b: Node) -> bool:
    """A layer that does in one what several inside of a block do, and the block goes on from there."""
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


def _by_path(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = {}
    for node in nodes:
        found.setdefault(node.path, []).append(node)
    return found


def _pair_by_value(table: Table, reference: Trace, port: Trace, fused: Fused) -> None:
    """Leaves that give the same values; of several equal ones the same kind, then the order decides."""
    ours = [n for n in _free_leaves(table.to_port, reference) if n.order not in fused.reference_inside]
    theirs = _free_leaves(table.to_reference, port)
    by_size: dict[tuple[int, ...], list[Node]] = {}
    for node in ours:
        by_size.setdefault(_sizes(node), []).append(node)
    for other in theirs:
        candidates = [
            node
            for node in by_size.get(_sizes(other), [])
            if node.order not in table.to_port
            and _output_distance(node, other) <= SAME
            and (same_kind(node, other) or nearest(node.inputs, other.inputs) <= SAME)
        ]
        if candidates:
            best = min(candidates, key=lambda node: (not same_kind(node, other), node.order))
            table.add(best, other, "values")


def _output_distance(a: Node, b: Node) -> float:
    pairs = zip(a.outputs.values(), b.outputs.values(), strict=False)
    return max((distance(x.data.fingerprint, y.data.fingerprint) for x, y in pairs), default=UNLIKE)


def _sizes(node: Node) -> tuple[int, ...]:
    return tuple(value.data.fingerprint.size for value in node.outputs.values())


def _free_leaves(side: Mapping[int, int], trace: Trace) -> list[Node]:
    return [node for node in trace.nodes if node.is_leaf and node.outputs and node.order not in side]


def _pair_by_order(
    table: Table, reference: Trace, port: Trace, fused: Fused, splits: Sequence[tuple[str, str]]
) -> None:
    """What is left between two paired neighbours: the same kind, or the only one there."""
    ours = [n for n in reference.nodes if n.is_leaf and n.outputs and n.order not in fused.reference_inside]
    theirs = [n for n in port.nodes if n.is_leaf and n.outputs and n.order not in fused.port_inside]
    for window, others in _windows(ours, theirs, table):
        spoilt = any(
            order < others[0].order and _of_other_size(reference.nodes[partner], port.nodes[order])
            for order, partner in table.to_reference.items()
        )
        for call, other in _align(window, others, _likeness_where_sizes_are(spoilt, splits)):
            table.add(call, other, BY_PLACE)


def _windows(
    ours: Sequence[Node], theirs: Sequence[Node], table: Table
) -> list[tuple[list[Node], list[Node]]]:
    """The unpaired stretches between neighbours that are paired with each other, in order."""
    position = {node.order: index for index, node in enumerate(ours)}
    fixed: list[tuple[int, int]] = []
    for index, node in enumerate(theirs):
        partner = position.get(table.to_reference.get(node.order, -1))
        if partner is not None and (not fixed or partner > fixed[-1][0]):
            fixed.append((partner, index))
    borders = [(-1, -1), *fixed, (len(ours), len(theirs))]
    windows = []
    for (left, below), (right, above) in pairwise(borders):
        free = table.free(ours[left + 1 : right], table.to_port)
        others = table.free(theirs[below + 1 : above], table.to_reference)
        if free and others:
            windows.append((free, others))
    return windows


def _likeness_where_sizes_are(
    spoilt: bool, splits: Sequence[tuple[str, str]]
) -> Callable[[Node, Node], float]:
    """For calls whose values do not agree; positive means they may stand for each other.

    A layer that makes another size of the same input has a wrong window; so may one that comes after
    such a layer, where all sizes are ``spoilt``. Layers that share work with others do so rightly.
    """
    sharing = [{split[side] for split in splits} for side in (0, 1)]

    def likeness(a: Node, b: Node) -> float:
        if _sizes(a) == _sizes(b):
            return 2.0 if same_kind(a, b) else 0.5 * _may_stand_for(a, b)
        if not (same_kind(a, b) and a.framework_layer and b.framework_layer):
            return 0.0
        if a.path in sharing[0] or b.path in sharing[1]:
            return 0.0
        apart = nearest(a.inputs, b.inputs)
        return 1.5 if apart <= SAME else 1.0 if spoilt and apart == UNLIKE else 0.0

    return likeness


def _may_stand_for(a: Node, b: Node) -> bool:
    """Layers of other kinds; one that gives what it was given, like a dropout that is off, only on the
    same values: there something was forgotten, elsewhere it is one layer more.
    """
    return _hands_on(a) == _hands_on(b) or nearest(a.inputs, b.inputs) <= SAME


def _hands_on(node: Node) -> bool:
    return nearest(node.inputs, node.outputs) == 0.0


def _of_other_size(a: Node, b: Node) -> bool:
    """Leaves that give tensors no two of which have the same number of elements."""
    given = bool(a.outputs) and bool(b.outputs) and a.is_leaf and b.is_leaf
    return given and nearest(a.outputs, b.outputs) == UNLIKE


def _align(
    ours: Sequence[Node], theirs: Sequence[Node], likeness: Callable[[Node, Node], float]
) -> list[tuple[Node, Node]]:
    """The order-keeping pairs with the greatest total likeness; 0 keeps two calls apart."""
    worth = [[likeness(a, b) for b in theirs] for a in ours]
    best = [[0.0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in range(len(ours) - 1, -1, -1):
        for j in range(len(theirs) - 1, -1, -1):
            best[i][j] = max(best[i + 1][j + 1] + worth[i][j], best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(ours) and j < len(theirs):
        if worth[i][j] and best[i][j] == best[i + 1][j + 1] + worth[i][j]:
            pairs.append((ours[i], theirs[j]))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def _pair_containers(table: Table, reference: Trace, port: Trace) -> None:
    """By the calls paired inside; of equals the same values, the same class, the same depth."""
    inside = Counter(
        (above, other_above)
        for ours, theirs in table.to_port.items()
        for above in _containers_above(reference, ours)
        for other_above in _containers_above(port, theirs)
    )
    ours_total = Counter(above for ours in table.to_port for above in _containers_above(reference, ours))
    theirs_total = Counter(
        above for theirs in table.to_reference for above in _containers_above(port, theirs)
    )
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
    weighty = [(order, other) for other, order in table.to_reference.items() if table.why[other] == "weights"]
    for share, *_, a, b in ranked:
        if -share < MIN_SHARE or a in table.to_port or b in table.to_reference:
            continue
        call, other = reference.nodes[a], port.nodes[b]
        if _do_the_same(call, other) or _hold_the_same(call, other, weighty):
            table.add(call, other, "what is inside")


def _do_the_same(call: Node, other: Node) -> bool:
    """Blocks that take and give the same values, whatever they are made of."""
    return all(
        nearest(*each) <= SAME for each in ((call.inputs, other.inputs), (call.outputs, other.outputs))
    )


def _hold_the_same(call: Node, other: Node, weighty: Iterable[tuple[int, int]]) -> bool:
    """Whether no layer that the one calls has its partner outside of the other: that is another cut."""
    return all(_is_inside(call, mine) == _is_inside(other, theirs) for mine, theirs in weighty)


def _is_inside(container: Node, order: int) -> bool:
    return container.order < order < container.finished


def _part_unlike_containers(table: Table, reference: Trace, port: Trace) -> None:
    """Blocks that give tensors of another size do different jobs (one may concatenate, say): not a pair."""
    for order in [order for order in table.to_reference if not port.nodes[order].is_leaf]:
        call, other = reference.nodes[table.to_reference[order]], port.nodes[order]
        if other.parent is not None and nearest(call.outputs, other.outputs) == UNLIKE and not call.is_leaf:
            table.part(order)


def _part_packed(table: Table, reference: Trace, port: Trace) -> None:
    """Of a packed sequence and a padded one no tensor is the other's: what is around them is compared."""
    for order, ours in list(table.to_reference.items()):
        if _is_packed(reference.nodes[ours]) != _is_packed(port.nodes[order]):
            table.part(order)


def _is_packed(call: Node) -> bool:
    return any(slot.rpartition(".")[2] == PACKED for slot in (*call.inputs, *call.outputs))


def _unlikeness(a: Node, b: Node) -> tuple[bool, bool, int]:
    return nearest(a.outputs, b.outputs) > SAME, a.class_name != b.class_name, abs(a.depth - b.depth)


def _containers_above(trace: Trace, order: int) -> list[int]:
    found = []
    above = trace.nodes[order].parent
    while above is not None:
        found.append(above)
        above = trace.nodes[above].parent
    return found
