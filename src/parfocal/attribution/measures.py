"""Turn what a followed run shows into measured errors.

Every sighting is measured at once and its arrays are let go; all figures are computed only where the
scale floor, which is free, would accuse. There ``refining.py`` repeats the calls for the other floors.

The rest is what can be read off measures beside the trace: their order, who uses a tensor, and where a
gradient is missing. One that is cut off somewhere is missing everywhere before it: the last place in order of
execution where it is missing is where it was cut.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import NamedTuple

import numpy as np

from parfocal.judge import limits
from parfocal.judge.floors import NOTHING, Size, judge_arrays, judge_fully, score
from parfocal.judge.metrics import Comparison
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import side_name
from parfocal.phrases import phrase
from parfocal.replay.follow import Direction, InputOrOutput, Sighting
from parfocal.replay.trace import Node, Trace

LIMIT = limits.verdicts.CALL.value
LARGE = limits.verdicts.LARGE.value
END_LIMIT = limits.verdicts.WHOLE_MODEL.value
# Accused tensors of a run with a picture of their error: more than a person looks at.
PICTURES = 64


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


def in_backward_order(measures: Iterable[Measure], limit: float, nodes: Sequence[Node]) -> list[Measure]:
    """As they came back; those that never came back from the end of the model to its beginning.

    Last come calls in which something sends nothing back: what they send themselves lacks that part.
    """
    backward = [m for m in measures if m.direction == "backward" and m.score > limit]
    silent = silent_calls(backward)
    arrived: list[Measure] = []
    absent: list[Measure] = []
    lacking: list[Measure] = []
    for measure in backward:
        kind = lacking if lacks_a_part(measure, silent, nodes) else absent if measure.absent else arrived
        kind.append(measure)
    return [*arrived, *sorted(absent, key=lambda m: moment(m, nodes), reverse=True), *lacking]


def moment(measure: Measure, nodes: Sequence[Node]) -> tuple[float, int]:
    """When a tensor was there: an input when its call began, an output when it ended, inner calls first."""
    node = nodes[measure.port]
    return (node.order, node.depth) if measure.side == "input" else (node.finished - 0.5, -node.depth)


def silent_calls(measures: Iterable[Measure]) -> list[int]:
    """Calls that send nothing back."""
    return [measure.port for measure in measures if measure.absent and measure.own]


def lacks_a_part(measure: Measure, silent: Sequence[int], nodes: Sequence[Node]) -> bool:
    """Whether a call inside of this one sends nothing back."""
    end = nodes[measure.port].finished
    backward = measure.own and measure.direction == "backward"
    return backward and any(measure.port < order < end for order in silent)


def starved_calls(measures: Iterable[Measure]) -> set[int]:
    """Calls that no gradient comes back to: what they and all before them do not send on follows."""
    reached: dict[int, bool] = {}
    for measure in measures:
        if measure.direction == "backward" and measure.side == "output":
            reached[measure.port] = reached.get(measure.port, False) or not measure.absent
    return {order for order, is_reached in reached.items() if not is_reached}


def idle_calls(measures: Sequence[Measure], reference: Trace) -> set[int]:
    """Calls that no gradient comes back to in the reference: what they send on in the port follows.

    What runs without gradients altogether is to blame on the code around that makes it run so.
    """
    unwanted = [measure for measure in measures if measure.unwanted and measure.direction == "backward"]
    around = {m.port for m in unwanted if m.own and not _is_cut_off(reference.nodes[m.reference])}
    inside = {m.port for m in unwanted if around and m.own and m.port not in around}
    return {measure.port for measure in unwanted if measure.side == "output"} | inside


def _is_cut_off(node: Node) -> bool:
    return all(value.gradient is None for value in node.outputs.values())


def comes_before(measure: Measure, starved: set[int], nodes: Sequence[Node]) -> bool:
    """Whether a gradient is missing only because this call got none, or one around it or behind it."""
    if measure.own:
        return measure.port in starved
    node = nodes[measure.port]
    around = node.parent
    while around is not None and around not in starved:
        around = nodes[around].parent
    return around is not None or any(order >= node.finished for order in starved)


def code_that_uses(measure: Measure, port: Trace, paired: Collection[int]) -> set[str]:
    """The modules whose code uses what a call gives, where it is handed on as it is.

    A module without a partner that gives back what it got from a call leaves it to the code around it.
    """
    order = port.around(measure.port, measure.levels)
    value = port.nodes[measure.port].outputs.get(measure.slot)
    found = {port.nodes[order].path}
    while value is not None and order not in paired:
        node = port.nodes[order]
        if node.parent is None or not any(each.data is value.data for each in node.outputs.values()):
            break
        order = node.parent
        found.add(port.nodes[order].path)
    return found


class TensorUsers:
    """Which modules take a tensor as it is: its gradient comes from them."""

    def __init__(self, port: Trace) -> None:
        self._port = port
        self._paths: dict[int, set[str]] = {}  # by identity of the data
        for node in port.nodes:
            for value in node.inputs.values():
                self._paths.setdefault(id(value.data), set()).add(node.path)

    def of(self, measure: Measure) -> set[str]:
        value = self._port.nodes[measure.port].outputs.get(measure.slot)
        return set() if value is None else self._paths.get(id(value.data), set())
