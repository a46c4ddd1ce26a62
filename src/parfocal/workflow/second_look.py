"""A second look at layers that seem guilty: do they only do more than their partner?

Which calls are done in one is first told by the values of the natural runs. Behind a mistake those
agree nowhere; but a layer that was given exact inputs either gives what its partner gives, or what
comes out a call or two later in the reference, or it is wrong. And what looks like another layout
of a square tensor may be a mistake in the code that made it: then the layer is right without.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf, prod

from parfocal.judge.floors import score
from parfocal.matching.dividing import may_divide_differently, run_after
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.values import SAME, distance
from parfocal.replay.follow import Side
from parfocal.replay.layouts import Layout, crosses, fit
from parfocal.replay.precise import Precise
from parfocal.replay.repeat import Layouts, Place, Script
from parfocal.replay.trace import Data, Value
from parfocal.workflow.measures import LIMIT, Measure, judge_arrays

Places = frozenset[tuple[int, Side, str]]
MUCH_LESS = 0.1  # of an error that is gone, but for others in the same call
NEAR = 8 * LIMIT  # by the cheapest floor alone; the pair is measured properly afterwards


@dataclass(frozen=True, slots=True)
class Lying:
    """What is known of how tensors lie in the port: ``unmoved`` by identity, ``turned`` masks by place."""

    unmoved: frozenset[int] = frozenset()
    turned: Places = frozenset()


AS_SEEN = Lying()


def fused_after_all(pairing: Pairing, measures: Iterable[Measure], precise: Precise) -> Pairing:
    """The pairing with such layers tied to the call whose output they really give."""
    suspects = {m.port: m for m in measures if m.own and m.direction == "forward" and m.score > LIMIT}
    paired = {pair.reference for pair in pairing.pairs}
    ends: dict[int, int] = {}
    for pair in pairing.pairs:
        if pair.port in suspects and pair.gives == pair.reference and pair.whole:
            end = _real_end(pair, suspects[pair.port], precise, paired)
            if end is not None:
                ends[pair.port] = end
    if not ends:
        return pairing
    pairs = tuple(replace(p, gives=ends[p.port]) if p.port in ends else p for p in pairing.pairs)
    left = tuple(order for order in pairing.unpaired_reference if order not in ends.values())
    return replace(pairing, pairs=pairs, unpaired_reference=left)


def _real_end(pair: CallPair, suspect: Measure, precise: Precise, paired: set[int]) -> int | None:
    """The reference's call that gives what the port's layer gives on the same inputs."""
    trace = precise.reference.trace
    call, other = trace.nodes[pair.reference], precise.port.trace.nodes[pair.port]
    if not (other.is_leaf and may_divide_differently(call, other)):
        return None
    observed = precise.port_result([pair.port], (pair.port, "output", suspect.slot, "forward"))
    if observed is None:
        return None
    for following in run_after(trace, call, paired):
        for value in following.outputs.values():
            recorded = precise.recorded(value.data)
            layout = fit(recorded, observed)
            if layout is not None:
                judged = judge_arrays(observed, layout.apply(recorded), None)
                if score(judged.error, judged.floor) <= NEAR:
                    return following.order
    return None


def arranged_otherwise(pairing: Pairing, measures: Iterable[Measure], precise: Precise) -> Pairing:
    """The pairing without calls that take the reference's values in another arrangement, and rightly so.

    One side may divide an image into windows inside of an attention, the other before it: then one takes
    an image and the other windows, which no layout of axes makes the same. And where one side turns the
    image before, the call around, not led along inside, is right all the same, forward and backward.
    Then the two only divide the work differently, and what is around is judged as one.
    """
    right: dict[int, bool] = {}
    parted: set[int] = set()
    for measure in measures:
        if measure.side != "input" or measure.direction != "forward" or measure.given:
            continue
        own, other = _inputs(measure, precise)
        if measure.score <= LIMIT or prod(own.shape) != prod(other.shape):
            continue
        around = _tied_around(measure.port, precise)
        if crosses(other.shape, own.shape):
            parted.add(measure.port)
        elif around is not None and distance(own.fingerprint, other.fingerprint) <= SAME:
            if around not in right:
                right[around] = _is_right_by_itself(around, precise)
            if right[around]:
                parted.add(measure.port)
    return _without(pairing, parted) if parted else pairing


def _without(pairing: Pairing, parted: set[int]) -> Pairing:
    left = [pair.reference for pair in pairing.pairs if pair.port in parted]
    return Pairing(
        tuple(pair for pair in pairing.pairs if pair.port not in parted),
        tuple(sorted((*pairing.unpaired_reference, *left))),
        tuple(sorted((*pairing.unpaired_port, *parted))),
    )


def _inputs(measure: Measure, precise: Precise) -> tuple[Data, Data]:
    """What the call takes there, in the port and in the reference."""
    own = precise.port.trace.nodes[measure.port].inputs[measure.slot]
    other = precise.reference.trace.nodes[measure.reference].inputs[measure.reference_slot]
    return own.data, other.data


def _tied_around(order: int, precise: Precise) -> int | None:
    """The next call around that is led along the reference's values."""
    trace, ties = precise.port.trace, precise.port.script.ties
    parent = trace.nodes[order].parent
    while parent is not None and not (parent in ties and ties[parent].outputs):
        parent = trace.nodes[parent].parent
    return parent


def _is_right_by_itself(order: int, precise: Precise) -> bool:
    """Whether a call on the reference's values gives, and sends back, what the reference's does."""
    script = precise.port.script
    tie = script.ties[order]
    try:
        repeated = precise.port.repeat([order], None, precise.recorded, inside=False)
    except Exception:  # noqa: BLE001  whatever a framework raises for a trial
        return False
    places: list[tuple[Place, Value, Data | None]] = [
        *(((order, "output", slot, "forward"), value, value.data) for slot, value in tie.outputs.items()),
        *(((order, "input", slot, "backward"), value, value.gradient) for slot, value in tie.inputs.items()),
    ]
    compared = [
        (repeated.places[place], script.layout(*place[:3], value).apply(precise.recorded(data)))
        for place, value, data in places
        if data is not None and place in repeated.places
    ]
    judged = [judge_arrays(observed, expected, None) for observed, expected in compared]
    return bool(judged) and all(score(each.error, each.floor) <= NEAR for each in judged)


def lying_as_recorded(measures: Iterable[Measure], precise: Precise) -> frozenset[int]:
    """Identities of tensors that were taken to lie otherwise, where a call is right if they do not."""
    script, nodes = precise.port.script, precise.port.trace.nodes
    suspects: dict[int, Measure] = {}
    for measure in measures:
        parent = nodes[measure.port].parent
        guilty = measure.port if measure.own or parent is None else parent
        if measure.direction == "forward" and measure.score > LIMIT:
            suspects.setdefault(guilty, measure)
    found: set[int] = set()
    for order, suspect in suspects.items():
        moved: dict[tuple[int, Side, str], Data] = {
            (order, "input", slot): value.data
            for slot, value in (script.ties[order].inputs if order in script.ties else {}).items()
            if (layout := script.layouts.get((order, "input", slot))) and layout.keeps(value.data.shape)
        }
        plain: Layouts = {place: Layout(None, data.shape) for place, data in moved.items()}
        if plain and _is_right(order, suspect, Script(script.ties, {**script.layouts, **plain}), precise):
            found |= {id(data) for data in moved.values()}
    return frozenset(found)


def turned_round(measures: Iterable[Measure], precise: Precise) -> Places:
    """Masks that say the opposite in the port, where that is what the call there wants to be told."""
    script, nodes = precise.port.script, precise.port.trace.nodes
    found: set[tuple[int, Side, str]] = set()
    for measure in measures:
        place: tuple[int, Side, str] = (measure.port, "input", measure.slot)
        wrong = measure.side == "input" and measure.direction == "forward" and measure.score > LIMIT
        if not wrong or place not in script.layouts or measure.given:
            continue
        if nodes[measure.port].inputs[measure.slot].data.dtype == "bool":
            turned = {**script.layouts, place: replace(script.layouts[place], turned=True)}
            before, after = (_off(measure.port, layouts, precise) for layouts in (script.layouts, turned))
            if after < MUCH_LESS * before:
                found.add(place)
    return frozenset(found)


def _off(order: int, layouts: Layouts, precise: Precise) -> float:
    """How far what the call gives by itself is from what the reference's gives, as a share of that."""
    script = Script(precise.port.script.ties, layouts)
    try:
        repeated = precise.port.led_by(script).repeat(
            [order], None, precise.recorded, backward=False, inside=False
        )
    except Exception:  # noqa: BLE001  what a framework raises for inputs that cannot be
        return inf
    shares = []
    for slot, value in script.ties[order].outputs.items():
        observed = repeated.places.get((order, "output", slot, "forward"))
        recorded = precise.recorded(value.data)
        layout = None if observed is None else fit(recorded, observed)
        if observed is None or layout is None:
            return inf
        shares.append(judge_arrays(observed, layout.apply(recorded), None).relative)
    return max(shares, default=inf)


def _is_right(order: int, suspect: Measure, script: Script, precise: Precise) -> bool:
    """Whether the call gives what the reference's gives when its inputs lie as the script says."""
    repeater = precise.port.led_by(script)
    try:
        repeated = repeater.repeat([order], None, precise.recorded, backward=False)
    except Exception:  # noqa: BLE001  what a framework raises for inputs that cannot be
        return False
    observed = repeated.places.get((suspect.port, suspect.side, suspect.slot, "forward"))
    node = precise.reference.trace.nodes[suspect.reference]
    given = (node.outputs if suspect.side == "output" else node.inputs).get(suspect.reference_slot)
    if observed is None or given is None:
        return False
    recorded = precise.recorded(given.data)
    layout = fit(recorded, observed)
    if layout is None:
        return False
    judged = judge_arrays(observed, layout.apply(recorded), None)
    return score(judged.error, judged.floor) <= NEAR
