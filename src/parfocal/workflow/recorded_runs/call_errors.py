"""How far two recorded calls are apart: what they were given, what they made of it and sent back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.metrics import Comparison
from parfocal.matching.pairing import CallPair
from parfocal.matching.table import PairReason
from parfocal.phrases import phrase
from parfocal.replay.trace import Node, Trace, Value
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.tensors import Distances, tie_values

JUMP = limits.recorded.JUMP.value
GIVEN = limits.recorded.GIVEN.value


@dataclass(frozen=True, slots=True)
class WorstArrival:
    """The worst tensor that reached a call: an input, or the gradient of an output."""

    error: float = 0.0
    slot: str = ""
    comparison: Comparison | None = None
    stopped: str = ""  # the side in which no gradient arrives


NOTHING_ARRIVED = WorstArrival()


@dataclass(slots=True)
class CallErrors:
    """Relative errors of one pair, forward and backward."""

    pair: CallPair
    given: float = 0.0
    weights: float = 0.0  # relative error of the parameters that it uses
    taken: WorstArrival = NOTHING_ARRIVED  # the input that is furthest off
    returned: WorstArrival = NOTHING_ARRIVED  # the gradient of an output that is
    made: float = 0.0
    comparison: Comparison | None = None
    what: str = ""
    backward_given: float = 0.0
    backward_made: float | None = None
    backward_comparison: Comparison | None = None
    stopped: str = ""  # the side in which no gradient goes on
    problems: list[str] = field(default_factory=list)


def errors_of(
    pair: CallPair, reference: RecordedStep, port: RecordedStep, distances: Distances
) -> CallErrors:
    errors = CallErrors(pair)
    own, other = port.trace.nodes[pair.port], reference.trace.nodes[pair.reference]
    given = {} if pair.gives is None else reference.trace.nodes[pair.gives].outputs
    for slot, value in tie_values(own.inputs, other.inputs).items():
        apart = distances.between(own.inputs[slot].data, value.data)
        if apart.error > errors.given:
            errors.given, errors.taken = apart.error, WorstArrival(apart.error, slot, apart.comparison)
    tied = tie_values(own.outputs, given)
    for slot, value in tied.items():
        apart = distances.between(own.outputs[slot].data, value.data, judged=True)
        if apart.error >= errors.made:
            errors.made, errors.comparison, errors.what = (
                apart.error,
                apart.comparison,
                phrase("output {slot}", slot=slot),
            )
    if given and own.outputs and not tied:
        errors.made, errors.what = math.inf, "output"
        errors.problems.append(_other_shapes(own.outputs, given))
    if reference.went_back and port.went_back:
        _add_backward(errors, own, other, tied, (reference, port), distances)
    return errors


def likely(found: list[CallErrors], reference: Trace, port: Trace) -> list[CallErrors]:
    """Without pairs that only their place speaks for, where the block around them agrees all the same.

    An attention in one piece stands where the first of another's projections stands. Nor is a layer
    compared with one of another size that has more of its kind beside it, which have no partner.
    """
    agrees = {each.pair.port: jump(each.given, each.made) <= JUMP for each in found}

    def block_agrees(order: int | None) -> bool:
        while order is not None and (order := port.nodes[order].parent) is not None:
            if order in agrees:
                return agrees[order]
        return False

    paired = {each.pair.reference for each in found}, {each.pair.port for each in found}

    def is_a_part(each: CallErrors) -> bool:
        sides = zip((reference, port), (each.pair.reference, each.pair.port), paired, strict=True)
        return math.isinf(each.made) and any(
            other.parent == trace.nodes[order].parent
            and other.kind == trace.nodes[order].kind
            and other.order not in known
            for trace, order, known in sides
            for other in trace.nodes
        )

    return [
        each
        for each in found
        if agrees[each.pair.port]
        or each.pair.why is not PairReason.PLACE
        or not (block_agrees(each.pair.port) or is_a_part(each))
    ]


def give_what_is_inside(found: list[CallErrors], port: Trace) -> None:
    """A container is also given what its inner calls made: it answers for its own code only."""
    by_order = {errors.pair.port: errors for errors in found}
    for errors in found:
        inside = [by_order[node.order] for node in port.subtree(errors.pair.port) if node.order in by_order]
        for inner in inside[1:]:
            errors.given = max(errors.given, inner.made)
            errors.backward_given = max(errors.backward_given, inner.backward_made or 0.0)


def jump(given: float, made: float, epsilon: float = EPSILON["float32"]) -> float:
    """How many times larger an error became, one of a few units in the last place counted as given."""
    if made == 0.0:
        return 0.0
    return made / max(given, GIVEN * epsilon) if math.isfinite(given) else 1.0


def _other_shapes(own: Mapping[str, Value], given: Mapping[str, Value]) -> str:
    shapes = [[list(value.data.shape) for value in values.values()] for values in (own, given)]
    return phrase(
        "shapes {port} in the port, {reference} in the reference", port=shapes[0], reference=shapes[1]
    )


def _add_backward(
    errors: CallErrors,
    own: Node,
    other: Node,
    tied: Mapping[str, Value],
    sides: tuple[RecordedStep, RecordedStep],
    distances: Distances,
) -> None:
    for slot, value in tied.items():
        if own.outputs[slot].hidden or value.hidden:
            continue
        mine = own.outputs[slot].gradient
        if mine is not None and value.gradient is not None:
            apart = distances.between(mine, value.gradient)
            if apart.error > errors.backward_given:
                errors.backward_given = apart.error
                errors.returned = WorstArrival(apart.error, slot, apart.comparison)
        elif mine is not value.gradient:  # cut off further on
            errors.backward_given = math.inf
            errors.returned = WorstArrival(math.inf, slot, stopped="port" if mine is None else "reference")
    # as large a share of the values may be on the other side of a kink (a ReLU that flips)
    errors.backward_given = max(errors.backward_given, math.sqrt(errors.given))
    for slot, value in tie_values(own.inputs, other.inputs).items():
        if own.inputs[slot].hidden or value.hidden:
            continue
        mine = own.inputs[slot].gradient
        if mine is not None and value.gradient is not None:
            apart = distances.between(mine, value.gradient, judged=True)
            error, comparison = apart.error, apart.comparison
        elif mine is not value.gradient and own.inputs[slot].data.fingerprint not in sides[1].given:
            error, comparison = math.inf, None
            errors.stopped = "port" if mine is None else "reference"
        else:
            continue
        if errors.backward_made is None or error > errors.backward_made:
            errors.backward_made, errors.backward_comparison = error, comparison
