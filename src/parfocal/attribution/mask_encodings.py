"""Masks that the two sides encode differently, or add at different places, without a mistake.

One side may mark what is kept, the other what is dropped. One may use booleans, the other 0 and minus
infinity to be added. Each encoding is an experiment: the call is repeated with the mask written that way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf, isclose

import numpy as np

from parfocal.attribution.experiment import Change, repeated
from parfocal.attribution.measures import LIMIT, Measure
from parfocal.backends.protocol import Array
from parfocal.judge import limits
from parfocal.judge.floors import judge_arrays
from parfocal.judge.layouts import MaskEncoding, fitted
from parfocal.matching.values import SAME
from parfocal.replay.follow import InputOrOutput
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Layouts, ReplayScript
from parfocal.replay.trace import TensorData

Places = frozenset[tuple[int, InputOrOutput, str]]
Wording = Mapping[tuple[int, InputOrOutput, str], MaskEncoding]
MUCH_LESS = limits.pairing.REPAIR_LEFT.value
SHUT = limits.pairing.MASKED_SCORE.value


def said_otherwise(measures: Iterable[Measure], precise: NoiseFloors) -> Wording:
    """Masks that the port encodes differently, where its call is correct with that encoding."""
    script = precise.port.script
    found: dict[tuple[int, InputOrOutput, str], MaskEncoding] = {}
    for measure in measures:
        place: tuple[int, InputOrOutput, str] = (measure.port, "input", measure.slot)
        wrong = measure.side == "input" and measure.direction == "forward" and measure.score > LIMIT
        if not wrong or place not in script.layouts or measure.given:
            continue
        own, other = inputs_of(measure, precise)
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
    """How the other side's mask is written in the encoding of this one."""
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
    """Inputs to which only one side has added a mask, where the call is correct: the other adds it inside."""
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
    own, other = (data.fingerprint for data in inputs_of(measure, precise))
    bindings = precise.port.script.ties
    for node in precise.port.trace.subtree(measure.port):
        for slot, value in (bindings[node.order].inputs if node.order in bindings else {}).items():
            if (node.inputs[slot].data.fingerprint, value.data.fingerprint) == (own, other):
                yield node.order, "input", slot


def _differ_by_a_mask(own: Array, other: Array) -> bool:
    """Whether two arrays are the same, except where one of them masks."""
    if own.dtype.kind != "f" or other.dtype.kind != "f" or own.shape != other.shape:
        return False
    shut = (own <= SHUT) != (other <= SHUT)
    return bool(shut.any()) and bool(np.allclose(own[~shut], other[~shut], rtol=1e-4, atol=1e-6))


def _off(order: int, layouts: Layouts, precise: NoiseFloors) -> float:
    """How far what the call gives by itself is from what the reference's gives, as a share of that.

    A call that takes what the reference's does not is run within the next one around that does not.
    """
    bindings, nodes = precise.port.script.ties, precise.port.trace.nodes
    around: int | None = order
    while around is not None and any((around, "input", slot) not in layouts for slot in nodes[around].inputs):
        around = nodes[around].parent
    if around is None:
        return inf
    fed = {slot: value for slot, value in bindings[order].inputs.items() if (order, "input", slot) in layouts}
    script = ReplayScript({around: bindings[around], order: replace(bindings[order], inputs=fed)}, layouts)
    result = repeated(precise.port.led_by(script), [around], precise.recorded, Change(backward=False))
    if result is None:
        return inf
    shares = []
    for slot, value in script.ties[order].outputs.items():
        observed = result.places.get((order, "output", slot, "forward"))
        expected = None if observed is None else fitted(precise.recorded(value.data), observed)
        if observed is None or expected is None:
            return inf
        shares.append(judge_arrays(observed, expected, None).relative)
    return max(shares, default=inf)


def inputs_of(measure: Measure, precise: NoiseFloors) -> tuple[TensorData, TensorData]:
    """What the call takes there, in the port and in the reference."""
    own = precise.port.trace.nodes[measure.port].inputs[measure.slot]
    other = precise.reference.trace.nodes[measure.reference].inputs[measure.reference_slot]
    return own.data, other.data
