"""All measurements of a pair of models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from parfocal.attribution.divisions import Division
from parfocal.attribution.measures import END_LIMIT, LIMIT, Measure
from parfocal.attribution.whole_model import WholeModelResult
from parfocal.backends.protocol import Array
from parfocal.matching.pairing import Pairing
from parfocal.replay.noise_floors import NoiseFloors


@dataclass(slots=True)
class Observation:
    """``precise`` can repeat any call as long as the alignment is open."""

    pairing: Pairing
    measures: list[Measure]  # of paired calls, each its own error
    parameters: list[WholeModelResult]  # gradients of parameters, each its own error
    ends: list[WholeModelResult]
    unfed: set[int]  # calls of the port that could not be given all of the reference's inputs
    buffers: dict[str, Array]  # of the port, after the led run
    precise: NoiseFloors
    gradients: dict[str, Array] = field(default_factory=dict)  # of the port's parameters, led
    overlooked: list[Measure] = field(default_factory=list)  # above the noise, of what is to be ignored
    hidden: tuple[int, ...] = ()  # calls of the port with a gradient that could not be observed
    divided: Sequence[Division] = ()  # borders that are not compared

    def has_more_than(self, limits: tuple[float, float]) -> bool:
        """Whether anything is above the limit of calls, or of whole models."""
        own, whole = limits
        calls = (*self.measures, *(end.measure for end in self.parameters))
        return any(each.score > own for each in calls) or any(end.measure.score > whole for end in self.ends)


def limits_of(fixed: bool) -> tuple[float, float]:
    """What a score may be at most: for single calls, and for the whole model."""
    return (1.0, 1.0) if fixed else (LIMIT, END_LIMIT)
