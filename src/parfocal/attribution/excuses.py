"""Differences that are no fault of the call they are seen at, told by running it again.

A call that uses a weight which is known to be wrong is right with the right one. An input that
differs and makes no difference (a mask of -1e9 for one of -inf) is another spelling of the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from parfocal.attribution.broken_ties import acquitted_of_chance
from parfocal.attribution.experiment import Change, Experiment, Refused, is_accepted, repeated
from parfocal.attribution.measures import LIMIT, Measure, Remark, Responsible
from parfocal.attribution.sides import ModelSide
from parfocal.backends.protocol import Array
from parfocal.judge.floors import NOTHING, coarser, size_of
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.repeat import RepeatResult
from parfocal.replay.trace import TensorData
from parfocal.weights.plan import Entry
from parfocal.weights.writer import WritableModel, write


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
        return acquitted_of_chance(measure, self.precise, self.sides[0])

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
        tie = self.precise.port.script.ties.get(measure.port)
        layout = self.precise.port.script.layouts.get(asked.port_place[:3])
        if given is None or tie is None or layout is None or not layout.is_identity:
            return False
        data = tie.inputs[measure.slot].data
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
