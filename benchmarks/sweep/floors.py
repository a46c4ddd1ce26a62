"""The score of every tensor of a correct port, in units of all its floors.

An alignment computes the dearer floors only where the cheapest would accuse. Here they are computed for
every call: the scale of the values, the movement of the result when everything moves by one unit in the
last place, and the distance of either side from its own result in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from benchmarks.sweep.results import CODE, Scored
from parfocal.attribution.measures import LIMIT, Measure
from parfocal.attribution.observation import Observation
from parfocal.attribution.refining import Responsible, handed_on
from parfocal.attribution.whole_model import WholeModelResult, are_led
from parfocal.judge.floors import Size, coarser, score, size_of
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.trace import Node


def scores_of(observation: Observation) -> Iterator[Scored]:
    """Of every compared tensor and of every parameter's gradient, as long as the alignment is open."""
    precise = observation.precise
    trace = precise.port.trace
    todo: list[tuple[list[int], str, Callable[[], Scored]]] = []
    for measure in observation.measures:
        if math.isfinite(measure.error.rms) and not measure.given:
            placed = measure if measure.own else replace(measure, outside=handed_on(measure, trace))
            asked = Responsible.about(placed, precise)
            todo.append((asked.port_calls, measure.direction, partial(_scored, placed, asked, precise)))
    for end in observation.parameters:
        if math.isfinite(end.measure.error.rms):
            calls = trace.calls_of_owner(end.port)
            todo.append((calls, "backward", partial(_scored_parameter, end, precise)))
    # one call after the other: a call that is repeated with its gradients shows what it gives as well
    for _, _, score_it in sorted(todo, key=lambda each: each[:2]):
        yield score_it()


def _scored(measure: Measure, asked: Responsible, precise: NoiseFloors) -> Scored:
    node = precise.reference.trace.nodes[asked.calls[0]]
    kind = node.kind if measure.own and _is_layer(node) else CODE
    found = 0.0
    if measure.error.peak:
        recorded = precise.at(asked.place)
        floor = size_of(recorded) * coarser(recorded.dtype.name)
        floor |= precise.moved(asked.calls, asked.place) | precise.exact(asked.calls, asked.place)
        floor |= precise.port_exact(asked.port_calls, asked.port_place)
        found = score(measure.error, floor)
    return Scored(kind, measure.direction, found, measure.reference, node.path)


def _scored_parameter(end: WholeModelResult, precise: NoiseFloors) -> Scored:
    trace = precise.reference.trace
    calls = trace.calls_of_owner(end.reference)
    port_calls = precise.port.trace.calls_of_owner(end.port)
    node = trace.nodes[calls[0] if calls else 0]
    kind = node.kind if _is_layer(node) else CODE
    found = 0.0
    if end.measure.error.peak and end.arrays is not None:
        floor = size_of(end.arrays[1]) * coarser(end.arrays[1].dtype.name)
        if calls and port_calls:
            floor |= _parameter_floor(end, precise, calls, port_calls)
        if score(end.measure.error, floor) > LIMIT and not are_led(precise, port_calls):
            floor |= _parameter_floor(end, precise, [0], [0])  # the gradient that comes in is the port's own
        found = score(end.measure.error, floor)
    return Scored(kind, "parameter", found, node.order, end.reference)


def _parameter_floor(
    end: WholeModelResult, precise: NoiseFloors, calls: list[int], port_calls: list[int]
) -> Size:
    floor = precise.moved(calls, end.reference) | precise.exact(calls, end.reference)
    return floor | precise.port_exact(port_calls, end.port)


def _is_layer(node: Node) -> bool:
    return node.framework_layer or node.is_leaf
