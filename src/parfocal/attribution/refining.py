"""Measured errors against their full floors, in the order in which one error leads to another.

Going forward comes first. A gradient at a call that is guilty already, and one that comes back from such
a call, can only follow from that: no call is repeated for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from parfocal.attribution.excuses import Excuses
from parfocal.attribution.inheritance import TensorUsers, moment
from parfocal.attribution.measures import LIMIT, Measure, refined, with_summed_floors
from parfocal.replay.noise_floors import NoiseFloors


def refine(measures: Sequence[Measure], precise: NoiseFloors, excuses: Excuses) -> list[Measure]:
    """The same measures with the full floor where the scale floor alone would accuse, unless they follow."""
    trace = precise.port.trace
    found = with_summed_floors(measures, precise.reference.trace)
    users = TensorUsers(trace)
    guilty: set[str] = set()
    for index in _in_order(found, precise):
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


def _in_order(measures: Sequence[Measure], precise: NoiseFloors) -> Iterable[int]:
    """Those above the cheapest floor: forward as the tensors were made, then backward as they came back."""
    above = [index for index, measure in enumerate(measures) if measure.score > LIMIT]
    forward = [index for index in above if measures[index].direction == "forward"]
    yield from sorted(forward, key=lambda index: moment(measures[index], precise.port.trace))
    yield from (index for index in above if measures[index].direction == "backward")
