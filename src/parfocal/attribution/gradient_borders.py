"""Calls that give the same values and get other gradients for them, because work is divided otherwise.

A ReLU on values that are not negative changes none of them, and still stops the gradient where they are 0. A
norm that also activates then gives what the other side's plain norm gives, so values do not tell that the
activation belongs to it; gradients do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from parfocal.attribution.divisions import ALONE, left_apart
from parfocal.attribution.experiment import Change, Expected, Experiment
from parfocal.attribution.measures import LIMIT, Measure
from parfocal.attribution.reach import Spot
from parfocal.matching.dividing import may_divide_differently
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.replay.follow import Binding
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.repeat import Place, ReplayScript
from parfocal.replay.trace import TensorData, Trace, Value


def activated_elsewhere(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing without outputs whose gradients differ only because one side activates inside of the call.

    Such an output is left as the port makes it: then the call must send back what the reference's does.
    """
    found: set[int] = set()
    groups: dict[int, list[CallPair]] = {}
    for pair in _suspects(pairing, list(measures), precise):
        around = _around(pair.port, precise)
        if around is not None:
            groups.setdefault(around, []).append(pair)
    for around, group in groups.items():
        if _is_right(around, group, precise):
            found.update(pair.port for pair in group)
            continue
        for pair in group[:ALONE] if len(group) > 1 else ():
            if _is_right(around, [pair], precise):
                found.add(pair.port)
    if not found:
        return pairing
    return replace(
        pairing, pairs=tuple(replace(p, gives=None) if p.port in found else p for p in pairing.pairs)
    )


def without_absorbed(
    measures: list[Measure], pairing: Pairing, reference: Trace, port: Trace, *, gradients_agree: bool
) -> list[Measure]:
    """Measures of two natural runs, without gradients of such outputs where the call makes up for it.

    It does if every gradient that comes after it in the backward pass is the same: those of the calls before
    and those of the parameters (``gradients_agree``).
    """
    wrong = {m.port for m in measures if m.score > 1.0 and m.direction == "forward"}
    parted = [m for m in measures if m.score > 1.0 and m.direction == "backward"]
    loose = {
        pair.port
        for pair in pairing.pairs
        if may_divide_differently(reference.nodes[pair.reference], port.nodes[pair.port])
    } - wrong
    if not gradients_agree or not {m.port for m in parted} <= loose:
        return measures
    absorbed = {id(m) for m in parted if not (m.absent or m.unwanted)}
    return [m for m in measures if id(m) not in absorbed]


def _suspects(pairing: Pairing, measures: list[Measure], precise: NoiseFloors) -> list[CallPair]:
    """Calls that give the same as their partners and get another gradient for it."""
    outputs = [m for m in measures if m.side == "output" and not (m.absent or m.unwanted)]
    wrong = {m.port for m in outputs if m.direction == "forward" and m.score > LIMIT}
    apart = {m.port for m in outputs if m.direction == "backward" and m.score > LIMIT} - wrong
    ours, theirs = precise.reference.trace.nodes, precise.port.trace.nodes
    return [
        pair
        for pair in pairing.pairs
        if pair.port in apart
        and pair.gives is not None
        and pair.whole
        and may_divide_differently(ours[pair.reference], theirs[pair.port])
    ]


def _around(order: int, precise: NoiseFloors) -> int | None:
    """The innermost call around that can be repeated along the reference's values."""
    nodes, script = precise.port.trace.nodes, precise.port.script
    parent = nodes[order].parent
    while parent is not None and not (script.feeds(nodes[parent]) and script.ties[parent].outputs):
        parent = nodes[parent].parent
    return parent


def _is_right(around: int, group: list[CallPair], precise: NoiseFloors) -> bool:
    """Whether all these calls send back what the reference's do, once what they give is left to the port."""
    script = precise.port.script
    spots: set[Spot] = {
        (pair.port, "output", slot) for pair in group for slot in script.ties[pair.port].outputs
    }
    expected: dict[Place, Expected] = {}
    for pair in group:
        sent_back = _sent_back(pair.port, script.ties[pair.port], script, precise)
        if not sent_back:
            return False  # nothing to see it by
        expected.update(sent_back)
    # nor is anything led along inside of them: the gradient must find its way from what they give
    inside = {node.order for pair in group for node in precise.port.trace.subtree(pair.port)}
    inside -= {pair.port for pair in group}
    ties = {order: binding for order, binding in script.ties.items() if order not in inside}
    repeater = precise.port.led_by(replace(script, ties=left_apart(ties, spots)))
    experiment = Experiment(repeater, [around], Change(), expected)
    return experiment.is_right(precise.recorded)


def _sent_back(
    order: int, binding: Binding, script: ReplayScript, precise: NoiseFloors
) -> dict[Place, Expected]:
    """The reference's gradients of what a call takes, as they lie in the port."""

    def laid_out(slot: str, value: Value, gradient: TensorData) -> Expected:
        layout = script.layout(order, "input", slot, value)
        return lambda _: layout.apply(precise.recorded(gradient))

    return {
        (order, "input", slot, "backward"): laid_out(slot, value, value.gradient)
        for slot, value in binding.inputs.items()
        if value.gradient is not None
    }
