"""Calls without weights: paired by the values they give, and else by kind and order between neighbours.

Values do not help after the first divergence, nor where several are equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from parfocal.matching.dividing import FusedRuns
from parfocal.matching.shelves import Shelves, sizes_of
from parfocal.matching.table import PairReason, PairTable, same_kind
from parfocal.matching.values import SAME, UNLIKE, distance, nearest
from parfocal.replay.trace import Node, Trace


def pair_by_value(table: PairTable, reference: Trace, port: Trace, fused: FusedRuns) -> None:
    """Leaves that give the same values; of several equal ones the same kind, then the order decides."""
    ours = [n for n in _free(table.to_port, reference) if n.order not in fused.reference_inside]
    theirs = _free(table.to_reference, port)
    shelves = Shelves()
    for node in ours:
        shelves.put(node)
    for other in theirs:
        best = _best(shelves.like(other), other)
        if best is not None:
            shelves.take(best)
            table.add(best, other, PairReason.VALUES)


def _best(candidates: Iterable[Node], other: Node) -> Node | None:
    """The first that gives the same and is of the same kind, else the first that takes the same too."""
    second = None
    for node in candidates:
        alike = same_kind(node, other)
        if (second is not None and not alike) or _output_distance(node, other) > SAME:
            continue
        if alike:
            return node
        if nearest(node.inputs, other.inputs) <= SAME:
            second = node
    return second


def _output_distance(a: Node, b: Node) -> float:
    pairs = zip(a.outputs.values(), b.outputs.values(), strict=False)
    return max((distance(x.data.fingerprint, y.data.fingerprint) for x, y in pairs), default=UNLIKE)


def _free(side: Mapping[int, int], trace: Trace) -> list[Node]:
    return [node for node in trace.nodes if node.is_leaf and node.outputs and node.order not in side]


def pair_by_order(
    table: PairTable,
    reference: Trace,
    port: Trace,
    fused: FusedRuns,
    sharing: tuple[Collection[str], Collection[str]],
) -> None:
    """What is left between two paired neighbours: the same kind, or the only one there.

    ``sharing``: paths of layers that do parts of the same work, of either side.
    """
    ours = [n for n in reference.nodes if n.is_leaf and n.outputs and n.order not in fused.reference_inside]
    theirs = [n for n in port.nodes if n.is_leaf and n.outputs and n.order not in fused.port_inside]
    windows = _windows(ours, theirs, table)
    spoilt = _first_of_other_size(table, reference, port) if windows else math.inf
    for window, others in windows:
        likeness = _likeness_where_sizes_are(spoilt < others[0].order, sharing)
        for call, other in align(window, others, likeness):
            table.add(call, other, PairReason.PLACE)
            if _of_other_size(call, other):
                spoilt = min(spoilt, other.order)


def _first_of_other_size(table: PairTable, reference: Trace, port: Trace) -> float:
    """The first call of the port that gives another size than its partner; infinite: none does."""
    return min(
        (
            order
            for order, partner in table.to_reference.items()
            if _of_other_size(reference.nodes[partner], port.nodes[order])
        ),
        default=math.inf,
    )


def _windows(
    ours: Sequence[Node], theirs: Sequence[Node], table: PairTable
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
    spoilt: bool, sharing: tuple[Collection[str], Collection[str]]
) -> Callable[[Node, Node], float]:
    """For calls whose values do not agree; positive means they may stand for each other.

    A layer that makes another size of the same input has a wrong window; so may one that comes after
    such a layer, where all sizes are ``spoilt``. Layers that share their weights with others stand for none.
    """

    def likeness(a: Node, b: Node) -> float:
        if a.path in sharing[0] or b.path in sharing[1]:
            return 0.0
        if sizes_of(a) == sizes_of(b):
            return 2.0 if same_kind(a, b) else _may_stand_for(a, b)
        if not (same_kind(a, b) and a.framework_layer and b.framework_layer):
            return 0.0
        apart = nearest(a.inputs, b.inputs)
        return 1.5 if apart <= SAME else 1.0 if spoilt and apart == UNLIKE else 0.0

    return likeness


def _may_stand_for(a: Node, b: Node) -> float:
    """Layers of other kinds; one that gives what it was given, like a dropout that is off, only on the
    same values: there something was forgotten, elsewhere it is one layer more.
    """
    if _hands_on(a) == _hands_on(b):
        return 0.75
    return 0.5 if nearest(a.inputs, b.inputs) <= SAME else 0.0


def _hands_on(node: Node) -> bool:
    return nearest(node.inputs, node.outputs) == 0.0


def _of_other_size(a: Node, b: Node) -> bool:
    """Leaves that give tensors no two of which have the same number of elements."""
    given = bool(a.outputs) and bool(b.outputs) and a.is_leaf and b.is_leaf
    return given and nearest(a.outputs, b.outputs) == UNLIKE


def align(
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
