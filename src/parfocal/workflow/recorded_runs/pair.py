"""Two recorded steps side by side: what every stage needs to know of them, measured once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from parfocal.capture.follow import may_correspond
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Divergence, Finding, Site
from parfocal.matching.anchors import Anchor
from parfocal.matching.pairing import CallPair, Pairing, pair_calls
from parfocal.matching.table import PairReason
from parfocal.replay.trace import Node
from parfocal.report.coverage import Compared, LeftOut
from parfocal.workflow.recorded_runs.call_errors import (
    GIVEN,
    JUMP,
    CallErrors,
    errors_of,
    give_what_is_inside,
    likely,
)
from parfocal.workflow.recorded_runs.parameters import ParameterTie, arrangement_of, tie_parameters
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.tensors import Distances, RelativeDistance, lies_otherwise, tie_values

Vector = NDArray[np.float64]
Moment = Literal["before", "after"]
SMALLEST_UNIT = limits.recorded.SMALLEST_UNIT.value
AGREEING = limits.recorded.AGREEING.value


@dataclass(frozen=True, slots=True)
class StageOutcome:
    """What a stage found of one step of one rank, the first difference first."""

    divergences: tuple[Divergence, ...] = ()
    findings: tuple[Finding, ...] = ()
    compared: tuple[Compared, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


NOTHING_FOUND = StageOutcome()


@dataclass(slots=True)
class StageMemory:
    """What the stages of a rank remember from step to step."""

    gradient_errors: dict[str, float] = field(default_factory=dict)  # the largest so far, by parameter
    unordered: set[str] = field(default_factory=set)  # parameters whose values are not in one order
    updates: dict[str, tuple[Vector, Vector]] = field(default_factory=dict)  # the last, as projections
    rates: tuple[float | None, float | None] = (None, None)  # of the port and the reference, at that update
    gradients: dict[str, Vector] = field(default_factory=dict)  # of the port at the last step, as projections
    starts: list[float] = field(default_factory=list)  # how far apart the weights were as each step began
    ends: list[float] = field(default_factory=list)  # and as it ended
    outputs: float = 0.0  # how far apart the outputs of the step before were
    causes: set[str] = field(default_factory=set)  # told already, of rates and updates


@dataclass(frozen=True)
class StepPair:
    """The same step of the same rank of both runs."""

    reference: RecordedStep
    port: RecordedStep
    tolerance: Tolerance | None = None
    layers: Mapping[str, str] = field(default_factory=dict)
    parted: bool = False  # whether an earlier step did: its weights are no longer the same
    first: bool = True  # of the steps that were compared
    memory: StageMemory = field(default_factory=StageMemory)

    @property
    def step(self) -> int:
        return self.port.step

    @property
    def rank(self) -> int:
        return self.port.rank

    @property
    def limit(self) -> float:
        return 1.0 if self.tolerance else JUMP

    @cached_property
    def distances(self) -> Distances:
        return Distances(self.reference.tensors, self.port.tensors, self.tolerance)

    @cached_property
    def followed(self) -> bool:
        """Whether every call of the port was given what the reference's was given."""
        return self.tolerance is None and _follows(self.reference, self.port)

    @cached_property
    def pairing(self) -> Pairing:
        if self.followed:
            return _followed_pairing(self.reference, self.port)
        ours, theirs = self.reference.trace, self.port.trace
        same = {node.path for node in ours.nodes} & {node.path for node in theirs.nodes}
        return pair_calls(ours, theirs, [Anchor((path,), (path,)) for path in same], self.layers)

    @cached_property
    def roots(self) -> list[tuple[Node, Node]]:
        """The calls of the models themselves, the reference's first, in their order."""
        sides = (self.reference, self.port)
        ours, theirs = ([side.trace.nodes[order] for order in side.roots] for side in sides)
        return list(zip(ours, theirs, strict=False))

    @cached_property
    def errors(self) -> list[CallErrors]:
        """Of every pair of calls, in the order of the port."""
        for tie in self.parameters:
            apart = self.weight_error(tie)
            for user in tie.users:
                user.errors.weights = max(user.errors.weights, 0.0 if apart is None else apart.error)
        return self._calls

    @cached_property
    def _calls(self) -> list[CallErrors]:
        self.distances.moves = self._axes_move()
        measured = [errors_of(pair, self.reference, self.port, self.distances) for pair in self.pairing.pairs]
        found = likely(measured, self.reference.trace, self.port.trace)
        give_what_is_inside(found, self.port.trace)
        return found

    @cached_property
    def parameters(self) -> list[ParameterTie]:
        return tie_parameters(self.reference, self.port, self._calls)

    def weight_error(self, tie: ParameterTie, moment: Moment = "before") -> RelativeDistance | None:
        """How far apart a parameter's values are at the beginning of the step, or after its update."""
        ours, theirs = self.reference.parameters.get(tie.reference), self.port.parameters.get(tie.port)
        own, other = getattr(theirs, moment, None), getattr(ours, moment, None)
        if own is None or other is None:
            return None
        lies = arrangement_of(tie, self.reference, self.port, own, other)
        return self.distances.between(own, other, lies=lies)

    @cached_property
    def output_error(self) -> float:
        """The largest relative error of what the models gave."""
        assert self._calls is not None  # they decide how tensors lie
        return self._measure_outputs()

    @property
    def finite_output_error(self) -> float:
        return self.output_error if math.isfinite(self.output_error) else 1.0

    def _measure_outputs(self) -> float:
        return max(
            [
                self.distances.between(port.outputs[slot].data, value.data).error
                for reference, port in self.roots
                for slot, value in tie_values(port.outputs, reference.outputs).items()
            ],
            default=0.0,
        )

    @property
    def unit(self) -> float:
        """The relative error that counts as none, in the coarsest dtype that the models give."""
        dtypes = [value.data.dtype for _, port in self.roots for value in port.outputs.values()]
        return GIVEN * max([EPSILON.get(dtype, 0.0) for dtype in dtypes], default=0.0) or GIVEN * 2.0**-23

    @property
    def drift(self) -> float:
        """The largest error that any call was given."""
        return max((each.given for each in self.errors if math.isfinite(each.given)), default=0.0)

    def sites(self) -> tuple[Site, Site]:
        """The models themselves."""
        found = [
            side.trace.nodes[side.roots[0]].site if side.roots else Site("", side.run.header.model_class)
            for side in (self.reference, self.port)
        ]
        return found[0], found[1]

    def _axes_move(self) -> bool:
        """Whether tensors of one shape may lie otherwise: some do visibly, or all ends well without.

        Going in the same order everywhere is what a projection sees, and what two models of one
        layout do; a block that works time first inside shows in nothing that the models give.
        """
        ours, theirs = self.reference.trace.nodes, self.port.trace.nodes
        visible = any(
            lies_otherwise(theirs[pair.port].outputs[slot].data, value.data)
            for pair in self.pairing.pairs
            if pair.gives is not None
            for slot, value in tie_values(theirs[pair.port].outputs, ours[pair.gives].outputs).items()
        )
        if visible:
            return True
        self.distances.moves = False
        return self._measure_outputs() <= AGREEING


def _follows(reference: RecordedStep, port: RecordedStep) -> bool:
    """Whether the port's run was fed the reference's values: its counterparts are there, of such kinds."""
    ours, theirs = reference.trace.nodes, port.trace.nodes
    return bool(port.followed) and all(
        other in reference.positions
        and may_correspond(ours[reference.positions[other]].kind, theirs[order].kind)
        for order, other in port.followed.items()
    )


def _followed_pairing(reference: RecordedStep, port: RecordedStep) -> Pairing:
    """The pairs that were made while the run was recorded."""
    pairs = tuple(
        CallPair(reference.positions[other], order, reference.positions[other], True, PairReason.FOLLOWED)
        for order, other in sorted(port.followed.items())
    )
    taken = {pair.reference for pair in pairs}, {pair.port for pair in pairs}
    left = [
        tuple(node.order for node in side.trace.nodes if node.order not in known)
        for side, known in zip((reference, port), taken, strict=True)
    ]
    return Pairing(pairs, left[0], left[1])
