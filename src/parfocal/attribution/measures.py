"""Turn what a followed run shows into measured errors, and measured errors into scores.

Every sighting is measured at once and its arrays are let go; all figures are computed only where the
scale floor, which is free, would accuse. There the calls are repeated for the other floors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

import numpy as np

from parfocal.backends.vocabulary.kinds import LINEAR
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size, difference, judge_arrays, judge_fully, score
from parfocal.judge.metrics import Comparison
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.replay.follow import Direction, InputOrOutput, Sighting
from parfocal.replay.noise_floors import NoiseFloors, Remainder
from parfocal.replay.repeat import Place, Repeater
from parfocal.replay.trace import Trace

LIMIT = limits.verdicts.CALL.value
LARGE = limits.verdicts.LARGE.value
BEYOND_ANY_SUM = limits.verdicts.BEYOND_ANY_SUM.value
END_LIMIT = limits.verdicts.WHOLE_MODEL.value
# Accused tensors of a run with a picture of their error: more than a person looks at.
PICTURES = 64
CHANCE = phrase("on the same values the reference gives something else each time: it draws random numbers")


class Remark(Enum):
    """What is known of a tensor besides numbers, where others go by it; its words are in the message."""

    NO_GRADIENT_IN_PORT = "port"
    NO_GRADIENT_IN_REFERENCE = "reference"
    SPELLING = "spelling"  # it differs, and what is done with it is the same

    @property
    def words(self) -> str:
        if self is Remark.SPELLING:
            return phrase(
                "differs from the reference's and makes no difference: what is done with it is the same"
            )
        return phrase("no gradient arrives in the {side}", side=side_name(self.value))


@dataclass(frozen=True, slots=True)
class Measure:
    """One tensor of one paired call: how far it is from the reference's."""

    port: int  # order of the port's call
    reference: int  # order of the reference's call it is compared with
    side: InputOrOutput
    slot: str
    reference_slot: str
    direction: Direction
    comparison: Comparison | None  # only where the scale floor would accuse
    error: Size
    floor: Size
    message: str = ""
    outside: int = 0  # how many enclosing calls only hand it on
    tied: bool = False  # it shows only as long as equal values stay equal
    relative: float | None = None  # the error's norm over the reference's; None: nothing to compare
    remark: Remark | None = None
    # What follows from the above, worked out once: all of it is asked for many times.
    score: float = field(init=False, compare=False, repr=False)
    levels: int = field(init=False, compare=False, repr=False)  # how many enclosing calls up it is made
    own: bool = field(init=False, compare=False, repr=False)  # made by the call itself, not by code around it
    given: bool = field(init=False, compare=False, repr=False)  # no call of the model made it
    absent: bool = field(init=False, compare=False, repr=False)  # the port has no gradient there at all
    unwanted: bool = field(init=False, compare=False, repr=False)  # the reference has none

    def __post_init__(self) -> None:
        levels = self.outside + ((self.side == "output") != (self.direction == "forward"))
        work_out = partial(object.__setattr__, self)  # the fields are frozen
        work_out("score", score(self.error, self.floor))
        work_out("levels", levels)
        work_out("own", levels == 0)
        work_out("given", self.port == 0 and levels > 0)
        work_out("absent", self.remark is Remark.NO_GRADIENT_IN_PORT)
        work_out("unwanted", self.remark is Remark.NO_GRADIENT_IN_REFERENCE)


class MeasuredSighting(NamedTuple):
    """What a sighting comes to."""

    comparison: Comparison | None
    error: Size
    floor: Size
    message: str = ""
    relative: float | None = None
    remark: Remark | None = None


class Collector:
    """Takes sightings of the followed port and measures them."""

    def __init__(
        self, partners: Mapping[tuple[int, InputOrOutput, str], tuple[int, str]], tolerance: Tolerance | None
    ) -> None:
        self.partners = partners  # port's place -> reference's call and slot
        self.tolerance = tolerance
        self.measures: list[Measure] = []
        self._beyond = False  # the last one was beyond the tolerance: the next one will be too
        self._pictures = 0  # that were made

    def __call__(self, sighting: Sighting) -> bool | None:
        """Measures it; whether both arrays are equal, unless only a tolerance was asked about."""
        reference, slot = self.partners[sighting.order, sighting.side, sighting.slot]
        place = sighting.order, reference, sighting.side, sighting.slot, slot, sighting.direction
        comparison, error, floor, message, relative, remark = self.judged(sighting)
        self.measures.append(
            Measure(*place, comparison, error, floor, message=message, relative=relative, remark=remark)
        )
        return error.peak == 0.0 if self.tolerance is None else None

    def judged(self, sighting: Sighting) -> MeasuredSighting:
        observed, expected = sighting.observed, sighting.expected
        infinite = Size(math.inf, math.inf)
        if observed is None or expected is None:
            present = expected if observed is None else observed
            assert present is not None
            if not np.any(present):
                return MeasuredSighting(None, NOTHING, NOTHING)  # absent and all zero mean the same
            lacking = Remark.NO_GRADIENT_IN_PORT if observed is None else Remark.NO_GRADIENT_IN_REFERENCE
            return MeasuredSighting(None, infinite, NOTHING, lacking.words, remark=lacking)
        if sighting.layout is None:
            message = phrase(
                "shape {port} in the port, {reference} in the reference",
                port=list(observed.shape),
                reference=list(expected.shape),
            )
            return MeasuredSighting(None, infinite, NOTHING, message)
        if self._beyond:
            judged = judge_fully(observed, expected, self.tolerance)
        else:
            judged = judge_arrays(observed, expected, self.tolerance, picture=self._pictures < PICTURES)
            self._pictures += judged.comparison is not None
        self._beyond = self.tolerance is not None and judged.error != NOTHING
        return MeasuredSighting(judged.comparison, judged.error, judged.floor, relative=judged.relative)


def with_summed_floors(measures: Sequence[Measure], trace: Trace) -> list[Measure]:
    """Gradients of one tensor that a call takes several times (query and key, say) are added up.

    So the noise of each is that of the largest.
    """
    groups: dict[tuple[int, int], list[int]] = {}
    for index, measure in enumerate(measures):
        if measure.side == "input" and measure.direction == "backward":
            data = trace.nodes[measure.reference].inputs[measure.reference_slot].data
            groups.setdefault((measure.port, id(data)), []).append(index)
    summed = list(measures)
    for indices in groups.values():
        floor = NOTHING
        for index in indices:
            floor |= measures[index].floor
        for index in indices:
            if measures[index].score > LIMIT:
                summed[index] = replace(measures[index], floor=floor)
    return summed


def refined(measure: Measure, precise: NoiseFloors) -> Measure:
    """One question after the other, the cheap ones first, until the error is accounted for."""
    if measure.score <= LIMIT or not math.isfinite(measure.error.rms):
        return measure
    far = measure.error.rms > LARGE * measure.floor.rms
    if measure.given and (far or measure.direction == "forward"):  # no call made it, so none can be asked
        return measure
    if not measure.outside and not measure.own:
        measure = replace(measure, outside=handed_on(measure, precise.port.trace))
    asked = Responsible.about(measure, precise)
    acquitted = _acquitted(measure, asked, precise)
    large = acquitted.floor.rms > LARGE * measure.floor.rms
    if acquitted.score > LIMIT or not large:
        return acquitted
    if measure.direction == "backward":
        return _reconsidered(measure, acquitted, asked, precise)
    if measure.own and _is_right_alone(measure, asked, precise):  # it was given something else
        return refined(replace(measure, outside=measure.outside + 1), precise)
    # what hangs on random numbers is chance, not noise
    if _repeats_itself(measure, asked, precise) or not precise.draws(asked.calls, asked.place):
        return acquitted
    return replace(measure, message=CHANCE, remark=None)


def handed_on(measure: Measure, trace: Trace) -> int:
    """How many enclosing containers only pass the tensor on."""
    node, levels = trace.nodes[measure.port], 0
    value = (node.inputs if measure.side == "input" else node.outputs).get(measure.slot)
    while (
        value is not None
        and node.parent is not None
        and (around := trace.nodes[node.parent]).kind == "Sequential"
    ):
        values = around.inputs if measure.side == "input" else around.outputs
        if all(each.data is not value.data for each in values.values()):
            break
        node, levels = around, levels + 1
    return levels


@dataclass(frozen=True, slots=True)
class Responsible:
    """The calls that answer for a measure, and where in them it shows, on both sides."""

    calls: list[int]
    place: Place
    port_calls: list[int]
    port_place: Place

    @classmethod
    def about(cls, measure: Measure, precise: NoiseFloors) -> Responsible:
        place = measure.reference, measure.side, measure.reference_slot, measure.direction
        port_place = measure.port, measure.side, measure.slot, measure.direction
        ours, theirs = precise.reference.trace, precise.port.trace
        made = _maker(ours, ours.around(measure.reference, measure.levels), place, measure.own)
        port_made = _maker(theirs, theirs.around(measure.port, measure.levels), port_place, measure.own)
        return cls([made], place, [_repeatable(precise.port, port_made)], port_place)


def _maker(trace: Trace, order: int, place: Place, own: bool) -> int:
    """The call, or the next around it that was not itself given what it hands on there."""
    given, side, slot, direction = place
    value = trace.nodes[given].inputs.get(slot) if (side, direction) == ("input", "forward") else None
    parent = trace.nodes[order].parent
    while not own and value is not None and parent is not None:
        if all(each.data is not value.data for each in trace.nodes[order].inputs.values()):
            break
        order, parent = parent, trace.nodes[parent].parent
    return order


def _repeatable(port: Repeater, order: int) -> int:
    """The call, or the next around it that was given all of the reference's values.

    What only the port puts around a layer (a convolution with its activation, say) is not led along.
    """
    bindings, nodes = port.script.ties, port.trace.nodes
    while (parent := nodes[order].parent) is not None:
        if (
            order in bindings
            and bindings[order].outputs
            and nodes[order].inputs.keys() <= bindings[order].inputs.keys()
        ):
            break
        order = parent
    return order


def _acquitted(measure: Measure, asked: Responsible, precise: NoiseFloors) -> Measure:
    """The measure with as much of a floor as it takes, if any is enough."""
    for question in (precise.moved, precise.exact):
        measure = replace(measure, floor=measure.floor | question(asked.calls, asked.place))
        if measure.score <= LIMIT or _is_no_rounded_sum(measure, asked, precise):
            return measure
    left = _remainder(measure, asked, precise)
    if left is Remainder.GONE:
        return replace(measure, floor=measure.floor | measure.error)
    if left is Remainder.STAYS:
        return measure
    return replace(measure, floor=measure.floor | precise.port_floor(asked.port_calls, asked.port_place))


def _is_no_rounded_sum(measure: Measure, asked: Responsible, precise: NoiseFloors) -> bool:
    """Whether two sums of products, also when run by themselves, are so far apart that it is no rounding."""
    bound = BEYOND_ANY_SUM * measure.floor.rms
    kinds = {
        precise.reference.trace.nodes[asked.calls[0]].kind,
        precise.port.trace.nodes[asked.port_calls[0]].kind,
    }
    if measure.error.rms <= bound or not kinds <= LINEAR:
        return False
    alone = _alone(asked, precise)
    return alone is not None and alone.rms > bound


def _remainder(measure: Measure, asked: Responsible, precise: NoiseFloors) -> Remainder:
    return precise.remainder(asked.calls, asked.place, asked.port_calls, asked.port_place, measure.error)


def _reconsidered(measure: Measure, acquitted: Measure, asked: Responsible, precise: NoiseFloors) -> Measure:
    """Whether so large a floor is one: the call may not be alone in making it, or a tie was broken.

    A hook on a tensor changes a gradient outside of the call whose gradient it is; such a call,
    repeated alone, shows another one than was seen.
    """
    trace = precise.port.trace
    alone = _alone(asked, precise)
    stays = alone is None or score(alone, measure.floor) > LIMIT
    if not (stays and _repeats_itself(measure, asked, precise)):
        if trace.nodes[asked.port_calls[0]].parent is None:
            return acquitted
        return refined(replace(measure, outside=measure.outside + 1), precise)
    tied = replace(measure, floor=measure.floor | precise.exact(asked.calls, asked.place), tied=True)
    if tied.score <= LIMIT or _remainder(measure, asked, precise) is Remainder.GONE:
        return acquitted
    alike = precise.moved_alike(asked.calls, asked.place, asked.port_calls, asked.port_place)
    tied = replace(tied, floor=tied.floor | alike)
    return acquitted if tied.score <= LIMIT else tied


def _repeats_itself(measure: Measure, asked: Responsible, precise: NoiseFloors) -> bool:
    """Whether the reference's call, repeated as it was, gives what was recorded."""
    return score(precise.still(asked.calls, asked.place), measure.floor) <= LIMIT


def _is_right_alone(measure: Measure, asked: Responsible, precise: NoiseFloors) -> bool:
    """Whether the port's call gives what the reference's gives when it is given the same."""
    alone = _alone(asked, precise)
    return alone is not None and score(alone, measure.floor) <= LIMIT


def _alone(asked: Responsible, precise: NoiseFloors) -> Size | None:
    """The error when the port's call runs by itself; None when that cannot be known."""
    observed = precise.port_result(asked.port_calls, asked.port_place)
    if observed is None:
        return None
    recorded = precise.at(asked.place)
    layout = precise.port.script.layouts.get(asked.port_place[:3])
    return difference(observed, recorded if layout is None else layout.apply(recorded))
