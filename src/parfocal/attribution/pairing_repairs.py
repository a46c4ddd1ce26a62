"""A second look at layers that seem guilty: do they only do more than their partner?

Which calls are done in one is first told by the values of the natural runs. Behind a mistake those
agree nowhere; but a layer that was given exact inputs either gives what its partner gives, or what
comes out a call or two later in the reference, or it is wrong. And what looks like another layout
of a square tensor may be a mistake in the code that made it: then the layer is right without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isclose, prod

import numpy as np

from parfocal.attribution.measures import LIMIT, Measure, judge_arrays
from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.floors import score
from parfocal.judge.layouts import Layout, MaskEncoding, crosses, fit
from parfocal.judge.sketch import Fingerprint
from parfocal.matching.dividing import may_divide_differently, run_after
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.values import SAME, distance, tie_slots
from parfocal.replay.follow import InputOrOutput
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Layouts, Place, ReplayScript
from parfocal.replay.trace import Node, TensorData, Value

Places = frozenset[tuple[int, InputOrOutput, str]]
Wording = Mapping[tuple[int, InputOrOutput, str], MaskEncoding]
MUCH_LESS = limits.pairing.REPAIR_LEFT.value
SHUT = limits.pairing.MASKED_SCORE.value
NEAR = limits.pairing.REPAIR_NEAR.value * LIMIT


@dataclass(frozen=True, slots=True)
class LayoutOverrides:
    """What is known of how tensors lie in the port: ``unmoved`` by identity, ``words`` of masks by place.

    ``apart``: places that are not compared, nor led along: one side's tensor has a mask in it and the
    other's does not, or the two sides divide the work otherwise.
    """

    unmoved: frozenset[int] = frozenset()
    words: Wording = field(default_factory=dict)
    apart: Places = frozenset()

    def without(self, places: Places) -> LayoutOverrides:
        """The same with more places that are not compared."""
        return replace(self, apart=self.apart | places)


AS_SEEN = LayoutOverrides()


def paired_otherwise(pairing: Pairing, measures: Collection[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing as it should have been, where two calls divide the work differently; else the same."""
    for look in (_fused_after_all, _gone_on_with_another, _taken_across_axes):
        pairing = look(pairing, measures, precise)
    return pairing


def _fused_after_all(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
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


def _real_end(pair: CallPair, suspect: Measure, precise: NoiseFloors, paired: set[int]) -> int | None:
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


def _gone_on_with_another(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing without outputs that both calls give and one side goes on without, taking another one.

    A router gives logits and the weights made from them, where the other side's layer gives the logits
    and the code around makes the weights: no gradient comes back to the former's logits, and rightly so.
    """
    traces = precise.reference.trace, precise.port.trace
    found = set()
    for measure in measures:
        if (
            measure.side == "output"
            and measure.direction == "backward"
            and (measure.absent or measure.unwanted)
        ):
            side, order = (1, measure.port) if measure.absent else (0, measure.reference)
            call, other = traces[0].nodes[measure.reference], traces[1].nodes[measure.port]
            if _others_go_on(traces[side].nodes[order], (call, other)[1 - side]):
                found.add(measure.port)
    if not found:
        return pairing
    return replace(
        pairing, pairs=tuple(replace(p, gives=None) if p.port in found else p for p in pairing.pairs)
    )


def _others_go_on(call: Node, partner: Node) -> bool:
    """Whether gradients may come back to outputs that the partner does not give."""
    shared = {id(value) for value in tie_slots(partner.outputs, call.outputs).values()}
    rest = [value for value in call.outputs.values() if id(value) not in shared]
    return may_divide_differently(call, partner) and any(v.data.dtype in FLOATING for v in rest)


def _taken_across_axes(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing without calls of which one takes an image and the other windows of it.

    One side may divide an image inside of an attention, the other before it: no layout of axes makes the
    two the same. What is around is judged as one.
    """
    parted = {
        measure.port
        for measure in measures
        if _is_rearranged(measure, precise) and crosses(*_shapes(measure, precise))
    }
    return _without(pairing, parted) if parted else pairing


def arranged_otherwise(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing without calls that take the reference's values in another arrangement, and rightly so.

    Where one side turns an image before a call, the call around, not led along inside, is right all the
    same, forward and backward. Then the two only divide the work differently, and what is around is
    judged as one.
    """
    right: dict[int, bool] = {}
    first: dict[int, Fingerprint] = {}  # what is taken in another arrangement first, by the call around
    parted: set[int] = set()
    for measure in measures:
        around = _tied_around(measure.port, precise) if _is_rearranged(measure, precise) else None
        if around is None or crosses(*_shapes(measure, precise)):
            continue
        own, other = _inputs(measure, precise)
        if distance(own.fingerprint, other.fingerprint) <= SAME:
            if around not in right:
                right[around] = _is_right_by_itself(around, precise)
            # what comes later is led along values in that arrangement: it may be right as it is
            if right[around] and first.setdefault(around, own.fingerprint) == own.fingerprint:
                parted |= {node.order for node in precise.port.trace.subtree(measure.port)}
    return _without(pairing, parted) if parted else pairing


def _is_rearranged(measure: Measure, precise: NoiseFloors) -> bool:
    """Whether a call takes something else than the reference's, of the same size."""
    if measure.side != "input" or measure.direction != "forward" or measure.given or measure.score <= LIMIT:
        return False
    other, own = _shapes(measure, precise)
    return prod(own) == prod(other)


def _shapes(measure: Measure, precise: NoiseFloors) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Of an input, in the reference and in the port."""
    own, other = _inputs(measure, precise)
    return other.shape, own.shape


def _without(pairing: Pairing, parted: set[int]) -> Pairing:
    gone = [pair for pair in pairing.pairs if pair.port in parted]
    return Pairing(
        tuple(pair for pair in pairing.pairs if pair.port not in parted),
        tuple(sorted((*pairing.unpaired_reference, *(pair.reference for pair in gone)))),
        tuple(sorted((*pairing.unpaired_port, *(pair.port for pair in gone)))),
    )


def _inputs(measure: Measure, precise: NoiseFloors) -> tuple[TensorData, TensorData]:
    """What the call takes there, in the port and in the reference."""
    own = precise.port.trace.nodes[measure.port].inputs[measure.slot]
    other = precise.reference.trace.nodes[measure.reference].inputs[measure.reference_slot]
    return own.data, other.data


def _tied_around(order: int, precise: NoiseFloors) -> int | None:
    """The next call around that is led along the reference's values."""
    trace, ties = precise.port.trace, precise.port.script.ties
    parent = trace.nodes[order].parent
    while parent is not None and not (parent in ties and ties[parent].outputs):
        parent = trace.nodes[parent].parent
    return parent


def _is_right_by_itself(order: int, precise: NoiseFloors) -> bool:
    """Whether a call on the reference's values gives, and sends back, what the reference's does."""
    script = precise.port.script
    tie = script.ties[order]
    try:
        repeated = precise.port.repeat([order], None, precise.recorded, inside=False)
    except Exception:  # noqa: BLE001  whatever a framework raises for a trial
        return False
    places: list[tuple[Place, Value, TensorData | None]] = [
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


def lying_as_recorded(measures: Iterable[Measure], precise: NoiseFloors) -> frozenset[int]:
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
        moved: dict[tuple[int, InputOrOutput, str], TensorData] = {
            (order, "input", slot): value.data
            for slot, value in (script.ties[order].inputs if order in script.ties else {}).items()
            if (layout := script.layouts.get((order, "input", slot))) and layout.keeps(value.data.shape)
        }
        plain: Layouts = {place: Layout(None, data.shape) for place, data in moved.items()}
        if plain and _is_right(
            order, suspect, ReplayScript(script.ties, {**script.layouts, **plain}), precise
        ):
            found |= {id(data) for data in moved.values()}
    return frozenset(found)


def said_otherwise(measures: Iterable[Measure], precise: NoiseFloors) -> Wording:
    """Masks that are said otherwise in the port, where that is what the call there wants to be told.

    What one side keeps may be what the other drops, and what is true or false, or one or zero, for
    the one may be nothing or minus infinity to be added for the other.
    """
    script = precise.port.script
    found: dict[tuple[int, InputOrOutput, str], MaskEncoding] = {}
    for measure in measures:
        place: tuple[int, InputOrOutput, str] = (measure.port, "input", measure.slot)
        wrong = measure.side == "input" and measure.direction == "forward" and measure.score > LIMIT
        if not wrong or place not in script.layouts or measure.given:
            continue
        own, other = _inputs(measure, precise)
        off = {
            words: _off(
                measure.port, {**script.layouts, place: replace(script.layouts[place], words=words)}, precise
            )
            for words in _wordings(own, other)
        }
        best = min(off, key=lambda words: off[words], default=None)
        # a mask to be added is none where ones and zeros are meant: whatever else is wrong in the call
        foreign = _to_be_added(own) != _to_be_added(other)
        limit = inf if foreign else MUCH_LESS * _off(measure.port, script.layouts, precise)
        if best is not None and off[best] < limit:
            found.update(dict.fromkeys(_handed_on(measure, precise), best))
    return found


def _wordings(own: TensorData, other: TensorData) -> Iterator[MaskEncoding]:
    """How the other side's mask can be said in the words of this one."""
    word, said = _shutting(own), _shutting(other)
    if word is None or said is None:
        return
    if word != said:
        yield MaskEncoding(0.0, word, own.dtype)
    yield MaskEncoding(word, 0.0, own.dtype)


def _to_be_added(mask: TensorData) -> bool:
    word = _shutting(mask)
    return word is not None and word < 0


def _shutting(data: TensorData) -> float | None:
    """What stands in a mask where no zero does; None for what is no mask."""
    mark = data.fingerprint
    if mark.minimum is None or mark.maximum is None:
        return None
    if data.dtype == "bool":
        return 1.0
    if mark.minimum == mark.maximum == 0.0:  # fingerprints know of finite values only
        return -inf if data.dtype in FLOATING else 1.0
    largest = max(abs(mark.minimum), abs(mark.maximum))
    if not isclose(mark.l1 * largest, mark.l2**2, rel_tol=1e-6):
        return None  # something is neither zero nor the largest
    if mark.minimum >= 0.0 and largest == 1.0:
        return 1.0
    return mark.minimum if mark.maximum <= 0.0 and mark.minimum <= SHUT else None


def masked_elsewhere(measures: Iterable[Measure], precise: NoiseFloors) -> Places:
    """Inputs that have a mask added in one side only, where the call is right: the other adds it inside."""
    script = precise.port.script
    found: set[tuple[int, InputOrOutput, str]] = set()
    for measure in measures:
        place: tuple[int, InputOrOutput, str] = (measure.port, "input", measure.slot)
        wrong = measure.side == "input" and measure.direction == "forward" and measure.score > LIMIT
        if not wrong or place not in script.layouts or measure.given:
            continue
        made = precise.port_made(precise.port.trace.nodes[measure.port].parent, (*place, "forward"))
        other = precise.at((measure.reference, "input", measure.reference_slot, "forward"))
        if made is None or not _differ_by_a_mask(made, script.layouts[place].apply(other)):
            continue
        own = {each: layout for each, layout in script.layouts.items() if each != place}
        if _off(measure.port, own, precise) < SAME:
            found.update(_handed_on(measure, precise))
    return frozenset(found)


def _handed_on(measure: Measure, precise: NoiseFloors) -> Iterator[tuple[int, InputOrOutput, str]]:
    """Where the input is taken: by the call, and by those inside that both sides hand it on to."""
    own, other = (data.fingerprint for data in _inputs(measure, precise))
    ties = precise.port.script.ties
    for node in precise.port.trace.subtree(measure.port):
        for slot, value in (ties[node.order].inputs if node.order in ties else {}).items():
            if (node.inputs[slot].data.fingerprint, value.data.fingerprint) == (own, other):
                yield node.order, "input", slot


def _differ_by_a_mask(own: Array, other: Array) -> bool:
    """Whether two arrays are the same but where one of them shuts out."""
    if own.dtype.kind != "f" or other.dtype.kind != "f" or own.shape != other.shape:
        return False
    shut = (own <= SHUT) != (other <= SHUT)
    return bool(shut.any()) and bool(np.allclose(own[~shut], other[~shut], rtol=1e-4, atol=1e-6))


def _off(order: int, layouts: Layouts, precise: NoiseFloors) -> float:
    """How far what the call gives by itself is from what the reference's gives, as a share of that.

    A call that takes what the reference's does not is run within the next one around that does not.
    """
    ties, nodes = precise.port.script.ties, precise.port.trace.nodes
    around: int | None = order
    while around is not None and any((around, "input", slot) not in layouts for slot in nodes[around].inputs):
        around = nodes[around].parent
    if around is None:
        return inf
    fed = {slot: value for slot, value in ties[order].inputs.items() if (order, "input", slot) in layouts}
    script = ReplayScript({around: ties[around], order: replace(ties[order], inputs=fed)}, layouts)
    try:
        repeated = precise.port.led_by(script).repeat([around], None, precise.recorded, backward=False)
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


def _is_right(order: int, suspect: Measure, script: ReplayScript, precise: NoiseFloors) -> bool:
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
