"""Runs of calls on one side that are a single call on the other.

Examples: an activation inside or after a layer, padding by a layer or by the code around it. The outputs of
such calls cannot be compared one by one; what comes later agrees again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

from parfocal.backends.vocabulary.kinds import ACTIVATIONS
from parfocal.judge import limits
from parfocal.matching.table import PairReason, PairTable, same_kind
from parfocal.matching.values import SAME, UNLIKE, nearest
from parfocal.replay.trace import Node, Trace

HEALING = limits.pairing.HEALING.value
CLEARLY = limits.pairing.CLEARLY_OTHER.value * SAME
FUSED_STEPS = limits.pairing.FUSED_STEPS.value


@dataclass(slots=True)
class FusedRuns:
    """Runs of calls that the other side does in one."""

    ends: dict[int, int] = field(default_factory=dict)  # reference call -> last call of its run
    goes_on: dict[int, int] = field(default_factory=dict)  # port call -> last call of its run
    reference_inside: set[int] = field(default_factory=set)
    port_inside: set[int] = field(default_factory=set)

    def gives(self, reference: int, port: int) -> int | None:
        if port in self.goes_on:
            return None
        return self.ends.get(reference, reference)


def find_fused(table: PairTable, reference: Trace, port: Trace) -> FusedRuns:
    """One call against a run: the fused output equals the last of the run."""
    fused = FusedRuns()
    for ours, theirs in list(table.to_port.items()):
        call, other = reference.nodes[ours], port.nodes[theirs]
        apart = nearest(call.outputs, other.outputs)
        if not (SAME < apart < UNLIKE and may_divide_differently(call, other)):
            continue
        run = _run_that_ends_alike(port, other, reference, call, table.to_reference)
        run = run or _run_that_activates(port, other, call, table.to_reference)
        if run:
            _goes_on(fused, table, call, other, run)
            continue
        run = _run_that_ends_alike(reference, call, port, other, table.to_port)
        run = run or _run_that_activates(reference, call, other, table.to_port)
        if run:
            _is_done_in_one(fused, ours, run)
            continue
        if not (same_kind(call, other) or (call.is_leaf and other.is_leaf)):
            continue
        run = _run_that_gives(reference, call, other, apart, table.to_port)
        if run:
            _is_done_in_one(fused, ours, run)
            continue
        run = _run_that_gives(port, other, call, apart, table.to_reference)
        if run:
            _goes_on(fused, table, call, other, run)
    return fused


def _is_done_in_one(fused: FusedRuns, first: int, run: list[Node]) -> None:
    fused.ends[first] = run[-1].order
    fused.reference_inside |= {node.order for node in run}


def _goes_on(fused: FusedRuns, table: PairTable, call: Node, other: Node, run: list[Node]) -> None:
    fused.goes_on[other.order] = run[-1].order
    fused.port_inside |= {node.order for node in run[:-1]}
    table.to_reference[run[-1].order] = call.order
    table.why[run[-1].order] = PairReason.RUN_END


def _run_that_ends_alike(
    trace: Trace, first: Node, other_trace: Trace, whole: Node, paired: Mapping[int, int]
) -> list[Node]:
    """The calls after a layer, up to one of the kind with which a block of the other side ends.

    That tells also where the layer does something else, so that no value is the same. An activation may
    stand for another one, unless it stands for the one that the other side has after the block.
    """
    given = [value.data for value in whole.outputs.values()]
    ends = [
        node
        for node in other_trace.nodes[whole.order + 1 : whole.finished]
        if node.is_leaf and any(value.data is data for value in node.outputs.values() for data in given)
    ]
    run: list[Node] = []
    for following in run_after(trace, first, paired) if ends and first.is_leaf else ():
        run.append(following)
        if same_kind(ends[0], following):
            return run
    after = next(run_after(other_trace, whole, ()), None)
    for index, following in enumerate(run):
        if after is not None and same_kind(after, following):
            return []
        if {ends[0].kind, following.kind} <= ACTIVATIONS - {"Identity"}:
            return run[: index + 1]
    return []


def _run_that_activates(trace: Trace, first: Node, whole: Node, paired: Mapping[int, int]) -> list[Node]:
    """The calls after a layer up to an activation, where the other side's layer says that it has one."""
    run: list[Node] = []
    says_so = bool(whole.settings.get("activation")) and not first.settings.get("activation")
    for following in run_after(trace, first, paired) if says_so and same_kind(first, whole) else ():
        run.append(following)
        if following.kind in ACTIVATIONS - {"Identity"}:
            return run
    return []


def _run_that_gives(
    trace: Trace, first: Node, wanted: Node, apart: float, paired: Mapping[int, int]
) -> list[Node]:
    """The calls after ``first``, each fed by the one before, up to one that gives what is wanted."""
    run: list[Node] = []
    for following in run_after(trace, first, paired):
        run.append(following)
        if nearest(following.outputs, wanted.outputs) <= max(SAME, apart / 3):
            return run
    return []


def run_after(trace: Trace, first: Node, paired: Container[int]) -> Iterator[Node]:
    """The next few calls without a partner, each fed by the one before."""
    last = first
    for _ in range(FUSED_STEPS):
        given = {id(value.data) for value in last.outputs.values()}
        later = (trace.nodes[order] for order in range(last.order + 1, len(trace.nodes)))
        following = next((node for node in later if _takes(node, given) and node.is_leaf), None)
        if following is None or following.order in paired:
            return
        yield following
        last = following


def _takes(node: Node, given: set[int]) -> bool:
    """Whether a call takes one of the tensors with these identities."""
    return any(id(value.data) in given for value in node.inputs.values())


def healed_calls(table: PairTable, reference: Trace, port: Trace) -> set[int]:
    """Calls of the port that do more or less than their partners, where later calls agree again.

    There the two divide the work differently (an activation inside or after the layer), and only
    the next tie can be judged. Two plain layers of the framework with the same activation do the
    same work: between those a difference is a mistake, whatever comes later.
    """
    pairs = {
        theirs: (reference.nodes[ours], port.nodes[theirs])
        for theirs, ours in sorted(table.to_reference.items())
        if port.nodes[theirs].is_leaf
    }
    apart = {order: nearest(a.outputs, b.outputs) for order, (a, b) in pairs.items()}
    loose = {order for order, (a, b) in pairs.items() if may_divide_differently(a, b)}
    strict = [order for order in pairs if order not in loose]
    healed = set()
    for order in loose:
        first = bisect_right(strict, order)
        later = strict[first : first + HEALING]
        if CLEARLY < apart[order] < UNLIKE and later and all(apart[other] <= SAME for other in later):
            healed.add(order)
    return healed | _cut_to_size(table, reference, port, apart)


def _cut_to_size(table: PairTable, reference: Trace, port: Trace, apart: Mapping[int, float]) -> set[int]:
    """Calls whose outputs have another size, where later outputs of the same size agree.

    There the code around pads or crops, where the other side's layer does it itself.
    """
    whole = reference.nodes[0], port.nodes[0]
    alike = (nearest({slot: value}, whole[1].outputs) <= SAME for slot, value in whole[0].outputs.items())
    if table.to_port.get(0) != 0 or not all(alike):
        return set()
    unlike = {order for order in apart if apart[order] == UNLIKE and port.nodes[order].outputs}
    last_apart = max((order for order in apart if order not in unlike and apart[order] > SAME), default=-1)
    return {order for order in unlike if order > last_apart}


def may_divide_differently(a: Node, b: Node) -> bool:
    activations = {a.settings.get("activation"), b.settings.get("activation")}
    if len(activations) > 1 and None in activations:
        return True
    return not (a.framework_layer and b.framework_layer)
