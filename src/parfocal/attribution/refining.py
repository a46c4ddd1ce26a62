"""Measured errors against their full floors and excuses, in the order in which one error leads to another.

Going forward comes first. A gradient at a call that is guilty already, and one that comes back from such
a call, can only follow from that: no call is repeated for it. An error that the floors do not account for may
be excused by running the call again. A call that uses a weight which is known to be wrong is right with the
right one. An input that differs and makes no difference (a mask of -1e9 for one of -inf) is another spelling
of the same. ``Responsible`` says which calls are asked and repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parfocal.attribution.broken_ties import acquitted_of_chance
from parfocal.attribution.experiment import Change, Experiment, Refused, is_accepted, repeated
from parfocal.attribution.measures import LARGE, LIMIT, Measure, Remark, TensorUsers, moment
from parfocal.attribution.sides import ModelSide
from parfocal.backends.protocol import Array
from parfocal.backends.vocabulary.kinds import LINEAR
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size, coarser, difference, score, size_of
from parfocal.phrases import phrase
from parfocal.replay.noise_floors import NoiseFloors, Remainder
from parfocal.replay.repeat import Place, RepeatResult
from parfocal.replay.trace import Node, TensorData, Trace
from parfocal.weights.plan import Entry
from parfocal.weights.writer import WritableModel, write

BEYOND_ANY_SUM = limits.verdicts.BEYOND_ANY_SUM.value
CHANCE = phrase("on the same values the reference gives something else each time: it draws random numbers")


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
        return cls([made], place, [precise.port.repeatable(port_made)], port_place)


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


def refine(measures: Sequence[Measure], precise: NoiseFloors, excuses: Excuses) -> list[Measure]:
    """The same measures with the full floor where the scale floor alone would accuse, unless they follow."""
    trace = precise.port.trace
    found = with_summed_floors(measures, precise.reference.trace)
    users = TensorUsers(trace)
    guilty: set[str] = set()
    for index in _in_order(found, trace.nodes):
        measure = found[index]
        if measure.direction == "backward" and (
            trace.nodes[trace.around(measure.port, measure.levels)].path in guilty
            or (not measure.own and users.of(measure) & guilty)
        ):
            continue
        measure = found[index] = excuses.applied(refined(measure, precise))
        if measure.score > LIMIT:
            guilty.add(trace.nodes[trace.around(measure.port, measure.levels)].path)
    return found


def _in_order(measures: Sequence[Measure], nodes: Sequence[Node]) -> Iterable[int]:
    """Those above the cheapest floor: forward as the tensors were made, then backward as they came back."""
    above = [index for index, measure in enumerate(measures) if measure.score > LIMIT]
    forward = [index for index in above if measures[index].direction == "forward"]
    yield from sorted(forward, key=lambda index: moment(measures[index], nodes))
    yield from (index for index in above if measures[index].direction == "backward")


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


class Excuses:
    """Asks of one alignment; what a framework refuses to repeat excuses nothing."""

    def __init__(
        self, precise: NoiseFloors, sides: tuple[ModelSide, ModelSide], entries: Sequence[Entry]
    ) -> None:
        """``entries``: what the port's weights should be."""
        self.precise = precise
        self.sides = sides
        self.entries = entries

    def applied(self, measure: Measure) -> Measure:
        """The measure, made harmless by the first excuse that holds."""
        for applies, excuse in EXCUSES:
            if applies(measure):
                return excuse(self, measure)
        return measure

    def of_chance(self, measure: Measure) -> Measure:
        """Harmless where it shows only as long as equal values stay equal."""
        asked = Responsible.about(measure, self.precise)
        observed = self.precise.port_result(asked.port_calls, asked.port_place)
        return acquitted_of_chance(measure, observed, self.precise, self.sides[0])

    def as_spelling(self, measure: Measure) -> Measure:
        """Harmless where the input is only another spelling of the same."""
        if not self.of_spelling(measure):
            return measure
        return replace(
            measure, error=NOTHING, floor=NOTHING, message=Remark.SPELLING.words, remark=Remark.SPELLING
        )

    def of_weights(self, measure: Measure) -> bool:
        """Whether the call is right once its weights are the reference's."""
        asked = Responsible.about(measure, self.precise)
        path = self.precise.port.trace.nodes[asked.port_calls[0]].path
        experiment = Experiment(
            self.precise.port,
            asked.port_calls,
            Change(prepare=self._right_weights(path)),
            {asked.port_place: lambda _: self._expected(asked)},
            floor=measure.floor,
        )
        return experiment.is_right(self.precise.recorded, self._refused(asked.port_calls))

    def of_spelling(self, measure: Measure) -> bool:
        """Whether the call gives the same on the port's own input, forward and backward."""
        if measure.side != "input" or measure.direction != "forward" or measure.own:
            return False
        asked = Responsible.about(measure, self.precise)
        given = self.precise.port_made(asked.port_calls[0], asked.port_place)
        binding = self.precise.port.script.ties.get(measure.port)
        layout = self.precise.port.script.layouts.get(asked.port_place[:3])
        if given is None or binding is None or layout is None or not layout.is_identity:
            return False
        data = binding.inputs[measure.slot].data
        if given.size != np.prod(data.shape, dtype=int):
            return False

        def supply(wanted: TensorData) -> Array:
            return given.reshape(data.shape) if wanted is data else self.precise.recorded(wanted)

        # not led along inside: what becomes of the input there must come out
        usual = self._repeat(measure.port, Change(inside=False))
        own = self._repeat(measure.port, Change(supply=supply, inside=False))
        if usual is None or own is None:
            return False
        if not any(place[1] == "output" and place[3] == "forward" for place in own.places):
            return False  # what is handed through as it is makes all the difference
        for result in (usual, own):
            result.places.pop((measure.port, "input", measure.slot, "forward"), None)
        return _same(usual, own)

    def _expected(self, asked: Responsible) -> Array:
        recorded = self.precise.at(asked.place)
        layout = self.precise.port.script.layouts.get(asked.port_place[:3])
        return recorded if layout is None else layout.apply(recorded)

    def _right_weights(self, path: str) -> Callable[[Any], None]:
        reference, port = self.sides
        prefix = f"{path}." if path else ""

        def prepare(twin: Any) -> None:
            side = WritableModel(port.backend, twin)
            local = [
                replace(entry, target=entry.target.removeprefix(prefix))
                for entry in self.entries
                if entry.target.startswith(prefix) and entry.target.removeprefix(prefix) in side.tensors
            ]
            write(local, WritableModel(reference.backend, reference.model), side)

        return prepare

    def _repeat(self, call: int, change: Change) -> RepeatResult | None:
        return repeated(self.precise.port, [call], self.precise.recorded, change, self._refused([call]))

    def _refused(self, calls: Sequence[int]) -> Refused:
        path = self.precise.port.trace.nodes[calls[0]].path
        return lambda reason: self.precise.problems.append(f"{path or 'the model'}: {reason}")


def _may_be_spelling(measure: Measure) -> bool:
    return measure.score > LIMIT and not measure.given


# To which measures an excuse may apply, and what it makes of one: the first that applies is asked.
EXCUSES: tuple[tuple[Callable[[Measure], bool], Callable[[Excuses, Measure], Measure]], ...] = (
    (lambda measure: measure.tied, Excuses.of_chance),
    (_may_be_spelling, Excuses.as_spelling),
)


def _same(usual: RepeatResult, own: RepeatResult) -> bool:
    """Whether two repetitions did the same everywhere but for rounding."""
    if usual.places.keys() != own.places.keys() or usual.parameters.keys() != own.parameters.keys():
        return False
    pairs = [(usual.places[place], own.places[place]) for place in usual.places]
    pairs += [(usual.parameters[path], own.parameters[path]) for path in usual.parameters]
    return all(_close(before, after) for before, after in pairs)


def _close(before: Array, after: Array) -> bool:
    return is_accepted(after, before, size_of(before) * coarser(before.dtype.name, after.dtype.name))
