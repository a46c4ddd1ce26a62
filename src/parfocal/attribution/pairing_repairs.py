"""A second look at layers that seem guilty: was the pairing wrong, and not the layer?

Fused calls are first found by the values of the natural runs. After a mistake these values agree nowhere.
A led layer has exact inputs. So it gives what its partner gives, or what the reference gives a call or two
later (then it is fused), or it is wrong. And a square tensor that seems transposed may come from a mistake
in the code before the layer: then the layer is right when the tensor is left as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from parfocal.attribution.experiment import Change, Expected, Experiment, is_accepted
from parfocal.attribution.gradient_borders import activated_elsewhere
from parfocal.attribution.mask_encodings import Places, Wording, inputs_of, masked_elsewhere, said_otherwise
from parfocal.attribution.measures import LIMIT, Measure
from parfocal.judge.layouts import Layout, crosses, fitted
from parfocal.judge.moments import Fingerprint
from parfocal.matching.dividing import may_divide_differently, run_after
from parfocal.matching.pairing import CallPair, Pairing
from parfocal.matching.values import SAME, distance, tie_slots
from parfocal.replay.follow import InputOrOutput
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Layouts, Place, ReplayScript
from parfocal.replay.trace import Node, TensorData, Value


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
            if is_accepted(observed, fitted(recorded, observed)):
                return following.order
    return None


def _gone_on_with_another(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing without outputs that both calls give, and that only one side uses afterwards.

    Example: one router gives logits and the weights made from them. The other gives logits only, and the code
    around makes the weights. Then no gradient comes back to the first router's logits, which is correct.
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
    """The pairing without calls where one side takes an image and the other takes windows of it.

    One side may cut the image inside of an attention, the other before it. No layout of axes makes the two
    the same, so the code around both is judged as one piece.
    """
    parted = {
        measure.port
        for measure in measures
        if _is_rearranged(measure, precise) and crosses(*_shapes(measure, precise))
    }
    return _without(pairing, parted) if parted else pairing


def arranged_otherwise(pairing: Pairing, measures: Iterable[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing without calls that correctly take the reference's values in another arrangement.

    One side may rotate an image before a call. Then the enclosing call is correct, forward and backward, when
    nothing is led along inside it. The two sides only divide the work differently, and the code around is
    judged as one piece.
    """
    right: dict[int, bool] = {}
    first: dict[int, Fingerprint] = {}  # what is taken in another arrangement first, by the call around
    parted: set[int] = set()
    for measure in measures:
        around = _tied_around(measure.port, precise) if _is_rearranged(measure, precise) else None
        if around is None or crosses(*_shapes(measure, precise)):
            continue
        own, other = inputs_of(measure, precise)
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
    own, other = inputs_of(measure, precise)
    return other.shape, own.shape


def _without(pairing: Pairing, parted: set[int]) -> Pairing:
    gone = [pair for pair in pairing.pairs if pair.port in parted]
    return Pairing(
        tuple(pair for pair in pairing.pairs if pair.port not in parted),
        tuple(sorted((*pairing.unpaired_reference, *(pair.reference for pair in gone)))),
        tuple(sorted((*pairing.unpaired_port, *(pair.port for pair in gone)))),
    )


def _tied_around(order: int, precise: NoiseFloors) -> int | None:
    """The next call around that is led along the reference's values."""
    trace, bindings = precise.port.trace, precise.port.script.ties
    parent = trace.nodes[order].parent
    while parent is not None and not (parent in bindings and bindings[parent].outputs):
        parent = trace.nodes[parent].parent
    return parent


def _is_right_by_itself(order: int, precise: NoiseFloors) -> bool:
    """Whether a call on the reference's values gives, and sends back, what the reference's does."""
    script = precise.port.script
    binding = script.ties[order]
    places: list[tuple[Place, Value, TensorData | None]] = [
        *(((order, "output", slot, "forward"), value, value.data) for slot, value in binding.outputs.items()),
        *(
            ((order, "input", slot, "backward"), value, value.gradient)
            for slot, value in binding.inputs.items()
        ),
    ]

    def laid_out(place: Place, value: Value, data: TensorData) -> Expected:
        return lambda _: script.layout(*place[:3], value).apply(precise.recorded(data))

    expected = {place: laid_out(place, value, data) for place, value, data in places if data is not None}
    experiment = Experiment(precise.port, [order], Change(inside=False), expected, partial=True)
    return experiment.is_right(precise.recorded)


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


def _is_right(order: int, suspect: Measure, script: ReplayScript, precise: NoiseFloors) -> bool:
    """Whether the call gives what the reference's gives when its inputs lie as the script says."""
    node = precise.reference.trace.nodes[suspect.reference]
    given = (node.outputs if suspect.side == "output" else node.inputs).get(suspect.reference_slot)
    if given is None:
        return False
    place: Place = (suspect.port, suspect.side, suspect.slot, "forward")
    expected: dict[Place, Expected] = {place: partial(fitted, precise.recorded(given.data))}
    repeater = precise.port.led_by(script)
    return Experiment(repeater, [order], Change(backward=False), expected).is_right(precise.recorded)


PAIRING_REPAIRS = (_fused_after_all, _gone_on_with_another, _taken_across_axes, activated_elsewhere)


def paired_otherwise(pairing: Pairing, measures: Collection[Measure], precise: NoiseFloors) -> Pairing:
    """The pairing, corrected where two calls divide the work differently."""
    for repair in PAIRING_REPAIRS:
        pairing = repair(pairing, measures, precise)
    return pairing


def laid_out_otherwise(measures: Collection[Measure], precise: NoiseFloors) -> LayoutOverrides:
    """Layouts of tensors and encodings of masks with which a call is correct."""
    return LayoutOverrides(
        unmoved=lying_as_recorded(measures, precise),
        words=said_otherwise(measures, precise),
        apart=masked_elsewhere(measures, precise),
    )
