"""A fused layer, which does in one call what the other side does in two: examined piece by piece.

A norm that also activates is compared as a whole with a norm and the activation after it. Where that
whole is wrong, the ops of both sides are compared with the fused layer opened: the result of its first
half is then one of the values to compare, and shows which half is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from parfocal.attribution.divisions import DividedWork
from parfocal.backends.building import LayerBuilder
from parfocal.backends.vocabulary import ACTIVATIONS
from parfocal.explain.case import Case
from parfocal.explain.case_facts import CallGroup, Check
from parfocal.explain.causes import OpLine, PortLine, ProvenChange
from parfocal.explain.layers.mirror import solved_setting
from parfocal.explain.layers.settings import differing_settings, rebuilt
from parfocal.explain.ops.explaining import comparison_of, ops, place
from parfocal.explain.ops.log import Op
from parfocal.explain.ops.mismatches import Mismatch, ways_through
from parfocal.explain.ops.names import name_of_kind
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.judge.floors import coarser
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.spans import starts_of_runs
from parfocal.phrases import phrase
from parfocal.replay.follow import Binding
from parfocal.replay.repeat import Place, ReplayScript
from parfocal.replay.trace import Node, Trace

_OPENED = "fused layer opened"  # in what hypotheses of one case share


class CallGroups:
    """The groups of one pairing."""

    def __init__(self, pairing: Pairing, reference: Trace, port: Trace) -> None:
        self._reference = reference
        self._port = port
        self._pairs: dict[int, CallPair] = {pair.port: pair for pair in pairing.pairs}
        self._starts = starts_of_runs(pairing)

    def of(self, order: int) -> CallGroup | None:
        """The group of a call of the port; None for a plain pair of calls."""
        pair = self._pairs.get(order)
        if pair is None:
            return None
        start = self._starts.get(order, order)
        port = _leaves_between(self._port, start, order)
        last = pair.reference if pair.gives is None else pair.gives
        reference = _leaves_between(self._reference, pair.reference, last)
        if len(port) == len(reference) == 1 and not self._is_opened(port[0], reference[0]):
            return None
        return CallGroup(port, reference)

    def _is_opened(self, port: int, reference: int) -> bool:
        """Whether one of two layers with the same weights is more than the framework's own."""
        nodes = self._port.nodes[port], self._reference.nodes[reference]
        return any(not node.framework_layer for node in nodes) and any(node.is_leaf for node in nodes)


def unjudged(pairing: Pairing, divided: DividedWork) -> dict[int, int]:
    """The port's calls that have a partner and give something else than it does."""
    return {
        pair.port: pair.reference
        for pair in pairing.pairs
        if pair.gives is None and (pair.whole or pair.port in divided.giving)
    }


def _leaves_between(trace: Trace, first: int, last: int) -> tuple[int, ...]:
    """A call, and the leaf calls after it up to another call."""
    end = trace.nodes[first].finished
    return (first, *(order for order in range(end, last + 1) if trace.nodes[order].is_leaf))


def piece_by_piece(case: Case) -> Iterator[ProvenChange]:
    """The ops of both sides with the fused layer opened."""
    opened = opened_case(case)
    if opened is not None:
        yield from (replace(proof, port=_in(opened, proof.port)) for proof in ops(opened))


def other_activation(case: Case) -> Iterator[ProvenChange]:
    """A layer with an activation as a setting, where the reference applies another one after it."""
    other = _activation_behind(case)
    builder = case.backend
    if other is None or not isinstance(builder, LayerBuilder) or not builder.can_build(case.module):
        return
    own, settings = case.node.settings["activation"], dict(case.node.settings)
    told = {**settings, "activation": name_of_kind(other.kind)}
    without = {**settings, "activation": None}

    def named(twin: Any) -> Any:
        return rebuilt(case.backend, twin, told)

    def followed(twin: Any) -> Any:
        new, layer = rebuilt(case.backend, twin, without), builder.layer(other.kind, other.settings)
        forward = new.forward
        new.forward = lambda x: layer(forward(x))
        return new

    norm, layer = builder.spell(case.node.kind, without), builder.spell(other.kind, other.settings)
    library = layer.partition("(")[0].rpartition(".")[0]
    for made, line in (
        (named, builder.spell(case.node.kind, told, ["activation"])),
        (followed, f"{library}.Sequential({norm}, {layer})"),
    ):
        score = case.tried(made, direction="forward")
        if score <= case.limit:
            message = phrase(
                "{path} is {reference} in the reference; the port's {kind} {place} applies {own}",
                path=other.path,
                reference=other.kind,
                kind=case.node.kind,
                place=case.node.path or phrase("of the model"),
                own=own,
            )
            facts = (case.node.kind, str(own), other.kind)
            fix = PortLine.layer(case.node.path, line)
            yield ProvenChange("op.activation", message, fix, score, facts=facts)
            return


def _activation_behind(case: Case) -> Node | None:
    """The reference's activation that ends a run, where the port's layer has one of its own."""
    if case.group is None or len(case.group.reference) < 2 or not case.node.settings.get("activation"):
        return None
    last = case.precise.reference.trace.nodes[case.group.reference[-1]]
    return last if last.kind in ACTIVATIONS else None


def first_half(case: Case) -> Iterator[ProvenChange]:
    """The layer that does the first half alone, compared with the other side's value there."""
    comparison = comparison_of(opened_case(case) or case)
    halves = dict(case.unjudged)
    if case.group is not None:
        halves[case.group.port[0]] = case.group.reference[0]
    for mismatch in [] if comparison is None else ways_through(comparison)[0]:
        mine = mismatch.made
        if comparison is None or mine is None or mine.call not in halves or comparison.knows(mismatch.port):
            continue
        half = _half(case, mine, halves[mine.call], mismatch, comparison)
        for hypothesis in (differing_settings, solved_setting):
            found = [replace(proof, port=_in(half, proof.port)) for proof in hypothesis(half)]
            yield from found
            if found:
                return


def _half(case: Case, mine: Op, counterpart: int, mismatch: Mismatch, comparison: OpComparison) -> Case:
    """The layer by itself, and what the reference's code makes in its place."""
    assert mine.call is not None
    node = case.precise.reference.trace.nodes[counterpart]
    slot = next(slot for slot, key in mine.outputs.items() if key == mismatch.port)
    expected: Place = (counterpart, "output", next(iter(node.outputs)), "forward")
    return replace(
        case,
        call=mine.call,
        counterpart=counterpart,
        checks=(Check((mine.call, "output", slot, "forward"), expected, case.checks[0].floor),),
        instead={expected: comparison.reference.values[mismatch.reference]},
        group=None,
        looked_up={},
        _baseline=None,
    )


def place_in_pieces(case: Case) -> OpLine | None:
    """The line of the half that is wrong, whatever the cause."""
    opened = opened_case(case)
    where = None if opened is None else place(opened)
    return None if opened is None or where is None else _in(opened, where)


def _in(opened: Case, where: OpLine | None) -> OpLine:
    """The proof with the module whose code it is about: by default the one around the calls."""
    node = opened.node
    where = where or OpLine(None, node.file, node.line)
    return where if where.module is not None else replace(where, module=node.path, kind=node.kind)


def opened_case(case: Case) -> Case | None:
    """The code around the calls of a group; None where nothing is fused."""
    if _OPENED not in case.looked_up:
        case.looked_up[_OPENED] = None if case.group is None else _opened(case, case.group)
    found: Case | None = case.looked_up[_OPENED]
    return found


def _opened(case: Case, group: CallGroup) -> Case | None:
    ours, theirs = case.precise.reference.trace, case.precise.port.trace
    call, counterpart = _around(theirs, group.port), _around(ours, group.reference)
    if call is None or counterpart is None or case.direction != "forward":
        return None
    divided = DividedWork(
        case.divided.reference_giving | set(group.reference),
        case.divided.giving | set(group.port),
        case.divided.taking,
    )
    script = case.precise.port.script
    inside = [order for order in group.port if order != call]
    check = _where_it_is_handed_on(case, call) if inside else case.checks[0]
    return replace(
        case,
        call=call,
        counterpart=counterpart,
        precise=case.precise.with_port(
            case.precise.port.led_by(ReplayScript(_untied(script.ties, inside), script.layouts))
        ),
        checks=(check,),
        divided=divided,
        group=None,
        looked_up={},
        _baseline=None,
    )


def _where_it_is_handed_on(case: Case, call: int) -> Check:
    """The wrong value where the code around gives it to the next call, or back; else where it is made.

    Where it is made the reference's value takes its place, and nothing shows what becomes of it.
    """
    check = case.checks[0]
    order, _, slot, direction = check.port
    nodes, bindings = case.precise.port.trace.nodes, case.precise.port.script.ties
    made = nodes[order].outputs[slot].data
    for node in nodes[nodes[order].finished : nodes[call].finished]:
        binding = bindings.get(node.order)
        for taken, value in node.inputs.items():
            if binding is not None and value.data is made and taken in binding.inputs:
                return replace(check, port=(node.order, "input", taken, direction))
    for given, value in nodes[call].outputs.items():
        if value.data is made:
            return replace(check, port=(call, "output", given, direction))
    return _at_the_end(case, call) or check


def _at_the_end(case: Case, call: int) -> Check | None:
    """What the code around makes of it and gives back, where that is compared."""
    binding = case.precise.port.script.ties.get(call)
    for slot, value in () if binding is None else binding.outputs.items():
        for node in case.precise.reference.trace.nodes:
            for other, given in node.outputs.items():
                if given is value:
                    floor = value.data.size * coarser(value.data.dtype)
                    theirs: Place = (node.order, "output", other, "forward")
                    return Check((call, "output", slot, "forward"), theirs, floor, rough=True)
    return None


def _around(trace: Trace, orders: tuple[int, ...]) -> int | None:
    """The innermost call whose code makes all of these calls; a single call of user code is meant itself."""
    first: Node = trace.nodes[orders[0]]
    if len(orders) == 1 and not first.framework_layer:
        return first.order
    around = first.parent
    while around is not None and trace.nodes[around].finished <= orders[-1]:
        around = trace.nodes[around].parent
    return around


def _untied(bindings: Mapping[int, Binding], orders: list[int]) -> dict[int, Binding]:
    """The script where outputs of these calls are not replaced, and inputs still are."""
    left = {order: replace(bindings[order], outputs={}) for order in orders if order in bindings}
    return {
        order: left.get(order, binding)
        for order, binding in bindings.items()
        if order not in left or left[order].inputs
    }
