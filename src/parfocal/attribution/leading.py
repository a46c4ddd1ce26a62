"""The script of a led run: which tensor of the reference replaces which tensor of the port."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from parfocal.attribution.mask_encodings import Places
from parfocal.backends.vocabulary.kinds import family
from parfocal.matching.pairing import Pairing
from parfocal.matching.values import tie_slots
from parfocal.replay.follow import Binding, InputOrOutput
from parfocal.replay.repeat import without_gradients
from parfocal.replay.trace import Node, TensorData, Trace, Value

Partners = dict[tuple[int, InputOrOutput, str], tuple[int, str]]


def script_for(
    pairing: Pairing, reference: Trace, port: Trace, apart: Places, *, other_shapes: bool = True
) -> tuple[dict[int, Binding], Partners]:
    """The tensors that replace the port's, and for each of the port's the reference's call and slot.

    ``apart``: what stays as the port makes it. ``other_shapes``: also along values of another shape
    than the port's own.
    """
    script: dict[int, Binding] = {}
    partners: Partners = {}
    for pair in pairing.pairs:
        own, other = port.nodes[pair.port], reference.nodes[pair.reference]
        taken: Mapping[str, Value] = other.inputs if pair.whole else without_gradients(other.inputs)
        replaces = other_shapes and _same_layers(own, other)
        every = own.parent is None or replaces
        tied = _tied if other_shapes else _tied_by_shape
        inputs = tied(own.inputs, taken, own.parent is None) if pair.takes else {}
        inputs = {slot: value for slot, value in inputs.items() if (pair.port, "input", slot) not in apart}
        given = {} if pair.gives is None else reference.nodes[pair.gives].outputs
        outputs = tied(own.outputs, given, every)
        outputs = {slot: value for slot, value in outputs.items() if (pair.port, "output", slot) not in apart}
        inputs, taken = _own_shares(inputs, taken, _not_among(given, outputs))
        script[pair.port] = Binding(inputs, outputs, own.in_place, replaces=replaces)
        _note_partners(partners, pair.port, "input", inputs, pair.reference, taken)
        if pair.gives is not None:
            _note_partners(partners, pair.port, "output", outputs, pair.gives, given)
    return script, partners


def weighted(script: Mapping[int, Binding], port: Trace) -> dict[int, Binding]:
    """The same script for a run without a loss: gradients at the model's outputs are not compared.

    They are sent by us, the same on both sides. They differ only where one output is made from another.
    """
    return {
        order: replace(binding, outputs=without_gradients(binding.outputs))
        if port.nodes[order].parent is None
        else binding
        for order, binding in script.items()
    }


def _own_shares(
    inputs: dict[str, Value], taken: Mapping[str, Value], handed: Collection[TensorData]
) -> tuple[dict[str, Value], Mapping[str, Value]]:
    """Both without gradients of inputs that the reference's call returns and the port's does not.

    The gradient of such an input also has the share of whoever uses the returned tensor later.
    """
    shares = {
        id(value): Value(value.data)
        for value in inputs.values()
        if value.gradient is not None and any(_are_one(value.data, data) for data in handed)
    }
    return (
        {slot: shares.get(id(value), value) for slot, value in inputs.items()},
        {slot: shares.get(id(value), value) for slot, value in taken.items()},
    )


def _not_among(given: Mapping[str, Value], outputs: Mapping[str, Value]) -> list[TensorData]:
    """What the reference's call gives that nothing of the port's is tied to."""
    known = {id(value) for value in outputs.values()}
    return [value.data for value in given.values() if id(value) not in known]


def _are_one(one: TensorData, other: TensorData) -> bool:
    return one is other or (one.shape == other.shape and one.fingerprint == other.fingerprint)


def _tied(port: Mapping[str, Value], reference: Mapping[str, Value], every: bool) -> dict[str, Value]:
    """Slots whose tensors can stand for each other; where none can, those in the same place.

    After a layer that gives another shape all natural shapes are others; led along the reference's
    values they are not. ``every``: of the whole model, and of the same layers, each counts.
    """
    tied = tie_slots(port, reference)
    if tied and not every:
        return tied
    found = {id(value) for value in tied.values()}
    left = [slot for slot in port if slot not in tied]
    wanted = [value for value in reference.values() if id(value) not in found]
    return {**tied, **dict(zip(left, wanted, strict=False))}


def _tied_by_shape(
    port: Mapping[str, Value], reference: Mapping[str, Value], every: bool
) -> dict[str, Value]:
    """Slots whose tensors have the same numbers of axes and elements; of the whole model every slot."""
    if every:
        return _tied(port, reference, every)
    tied = tie_slots(port, reference)
    return {
        slot: value for slot, value in tied.items() if len(value.data.shape) == len(port[slot].data.shape)
    }


def _same_layers(own: Node, other: Node) -> bool:
    """Whether two layers of the frameworks, or layers derived from such, do the same.

    Then the output of the one can replace the output of the other.
    """
    known = all(node.framework_layer or (node.is_leaf and node.settings) for node in (own, other))
    return known and own.kind != "Sequential" and family(own.kind) == family(other.kind)


def _note_partners(
    partners: Partners,
    order: int,
    side: InputOrOutput,
    tied: Mapping[str, Value],
    reference: int,
    values: Mapping[str, Value],
) -> None:
    names: dict[int, str] = {}
    for slot, value in values.items():
        names.setdefault(id(value), slot)  # a tensor that is taken twice is seen at the first place
    for slot, value in tied.items():
        partners[order, side, slot] = (reference, names[id(value)])
