"""The data of one divergence under investigation: whose call it is, and where it shows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.attribution.divisions import NOT_DIVIDED, DividedWork
from parfocal.backends.protocol import Array, Backend
from parfocal.explain.allowance import Allowance
from parfocal.judge.floors import Size
from parfocal.judge.verdict import Divergence, tensor_words
from parfocal.phrases import phrase
from parfocal.replay.follow import Direction
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.repeat import Place
from parfocal.replay.trace import Node, Value

Buffers = tuple[Mapping[str, Array], Mapping[str, Array]]


@dataclass(frozen=True, slots=True)
class Check:
    """A place of the port, the reference's place it must agree with, and what rounding does there."""

    port: Place
    reference: Place
    floor: Size
    rough: bool = False  # only what is free: more may be asked for before it accuses


@dataclass(frozen=True, slots=True)
class CallGroup:
    """Calls of the two sides that do the same work together: one of each side, or a run of them."""

    port: tuple[int, ...]
    reference: tuple[int, ...]


@dataclass(slots=True)
class CaseFacts:
    """``call`` and ``counterpart`` are the orders of the blamed call and of the reference's like it.

    ``checks``: every place the call is answerable for; the first is the divergence's own.
    """

    divergence: Divergence
    precise: NoiseFloors
    call: int
    counterpart: int | None
    checks: tuple[Check, ...]
    limit: float
    buffers: Buffers = ({}, {})  # of the reference and of the port, before anything ran
    paired: Collection[int] = ()  # the reference's calls that have a partner
    divided: DividedWork = NOT_DIVIDED
    group: CallGroup | None = None  # of calls that do together what the other side divides otherwise
    unjudged: Mapping[int, int] = field(
        default_factory=dict
    )  # calls whose outputs are not compared -> partners
    left: Mapping[str, Array] = field(default_factory=dict)  # in the reference's buffers, after the run
    instead: Mapping[Place, Array] = field(default_factory=dict)  # expected there, and not what was recorded
    allowance: Allowance | None = None  # of work that trials may be; None: as much as it takes
    besides: frozenset[int] = frozenset()  # other calls that give something wrong of their own
    problems: list[str] = field(default_factory=list)
    looked_up: dict[str, Any] = field(default_factory=dict)  # what hypotheses share

    @property
    def node(self) -> Node:
        return self.precise.port.trace.nodes[self.call]

    @property
    def reference_node(self) -> Node | None:
        if self.counterpart is None:
            return None
        return self.precise.reference.trace.nodes[self.counterpart]

    @property
    def backend(self) -> Backend:
        return self.precise.port.backend

    @property
    def reference_backend(self) -> Backend:
        return self.precise.reference.backend

    @property
    def module(self) -> Any:
        return self.precise.port.modules[self.node.path]

    @property
    def reference_module(self) -> Any:
        node = self.reference_node
        return None if node is None else self.precise.reference.modules[node.path]

    @property
    def direction(self) -> Direction:
        return self.checks[0].port[3]

    @property
    def what(self) -> str:
        """The tensor where the error shows, in words."""
        order, side, slot, direction = self.checks[0].port
        whose = self.precise.port.trace.nodes[order].path or phrase("the model")
        tensor = phrase("{tensor} of {whose}", tensor=tensor_words(side, slot), whose=whose)
        return phrase("gradient of {tensor}", tensor=tensor) if direction == "backward" else tensor

    def counterpart_of(self, order: int) -> int | None:
        """The reference's call that gives what a call of the port is compared with."""
        binding = self.precise.port.script.ties.get(order)
        given = set() if binding is None else {id(value) for value in binding.outputs.values()}
        nodes = self.precise.reference.trace.nodes
        found = (node.order for node in nodes if given & {id(value) for value in node.outputs.values()})
        return next(found, None)

    @property
    def looked_at(self) -> list[Place]:
        """Every place of either side where something is compared."""
        return [place for check in self.checks for place in (check.port, check.reference)]

    @property
    def start(self) -> int:
        """The call to repeat: the one that is fed in full, or the next around it that makes the call
        where the error shows: what one call of the reference does may take several.
        """
        script, nodes, order = self.precise.port.script, self.precise.port.trace.nodes, min(self.opened)
        shows = self.checks[0].port[0] if self.checks else order
        while nodes[order].parent is not None and not (
            order <= shows < nodes[order].finished and script.feeds(nodes[order])
        ):
            order = nodes[order].parent or 0
        return order

    @property
    def opened(self) -> frozenset[int]:
        """The blamed call, and those around it as long as one takes something without a counterpart."""
        script, nodes = self.precise.port.script, self.precise.port.trace.nodes
        order, found = self.call, [self.call]
        while (parent := nodes[order].parent) is not None and not script.feeds(nodes[order]):
            order = parent
            found.append(order)
        return frozenset(found)

    def steps(self, *, own: bool) -> frozenset[int]:
        """Calls of one side that are one step each, whatever they do inside.

        Not those that divide their work otherwise with the code that uses what they give.
        """
        calls = frozenset(self.precise.port.script.ties if own else self.paired)
        trace = self.precise.port.trace if own else self.precise.reference.trace
        order, side, _, direction = self.checks[0].port if own else self.checks[0].reference
        ended = trace.nodes[order].finished if side == "output" else order
        if direction == "backward":  # comes from what is done later
            ended = len(trace.nodes)
        giving = self.divided.giving if own else self.divided.reference_giving
        return calls - {each for each in giving if trace.nodes[each].finished <= ended}

    @property
    def reference_opened(self) -> frozenset[int]:
        """The reference's call; where the port's divides its work otherwise with what calls it, as many
        calls around it as were opened there.
        """
        assert self.counterpart is not None
        found, nodes = [self.counterpart], self.precise.reference.trace.nodes
        around = self.precise.reference.trace.around(self.counterpart, len(self.opened) - 1)
        while self.call in self.divided.taking and found[-1] != around:
            found.append(nodes[found[-1]].parent or 0)
        return frozenset(found)

    @property
    def has_others_inside(self) -> bool:
        """Whether another mistake is in what is repeated: as a whole that stays wrong, whatever is mended."""
        start = self.precise.port.trace.nodes[self.start]
        return any(start.order < order < start.finished for order in self.besides)


def value_at(node: Node, place: Place) -> Value:
    return (node.inputs if place[1] == "input" else node.outputs)[place[2]]


def is_telling(array: Array) -> bool:
    """Enough different values that an agreement is no chance."""
    return array.size >= 8 and bool(np.ptp(array.astype(np.float64)) > 0)
