"""One divergence under investigation: whose call it is, where it shows, and how to try a change.

A change is tried on a twin of the port's call, fed with the reference's inputs and output
gradients, and scored at the very places where the error was seen, in units of the same floor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from parfocal.attribution.divisions import NOT_DIVIDED, DividedWork
from parfocal.backends.protocol import Array, Backend, OnOp
from parfocal.brief import told
from parfocal.errors import ParfocalError
from parfocal.explain.allowance import Allowance
from parfocal.explain.kept import is_kept, kept_by, path_of
from parfocal.judge.floors import Size, coarser, error_of, score, size_of
from parfocal.judge.layouts import fit
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Divergence, tensor_words
from parfocal.phrases import phrase
from parfocal.replay.follow import Binding, Direction, InputOrOutput, Listener
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.repeat import Place, Repeater, RepeatResult, ReplayScript
from parfocal.replay.trace import Node, TensorData, Value

Prepare = Callable[[Any], Any]
Buffers = tuple[Mapping[str, Array], Mapping[str, Array]]


class MeasuredTensor(Protocol):
    """One measured tensor of a paired call, as the alignment keeps it."""

    @property
    def port(self) -> int: ...
    @property
    def reference(self) -> int: ...
    @property
    def side(self) -> InputOrOutput: ...
    @property
    def slot(self) -> str: ...
    @property
    def reference_slot(self) -> str: ...
    @property
    def direction(self) -> Direction: ...
    @property
    def relative(self) -> float | None: ...
    @property
    def floor(self) -> Size: ...
    @property
    def own(self) -> bool: ...
    @property
    def levels(self) -> int: ...


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
class Case:
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
    problems: list[str] = field(default_factory=list)
    looked_up: dict[str, Any] = field(default_factory=dict)  # what hypotheses share
    _baseline: RepeatResult | None = None

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
        tie = self.precise.port.script.ties.get(order)
        given = set() if tie is None else {id(value) for value in tie.outputs.values()}
        nodes = self.precise.reference.trace.nodes
        found = (node.order for node in nodes if given & {id(value) for value in node.outputs.values()})
        return next(found, None)

    @property
    def looked_at(self) -> list[Place]:
        """Every place of either side where something is compared."""
        return [place for check in self.checks for place in (check.port, check.reference)]

    def at_outputs(self) -> Case:
        """The same case judged by what the call gives as a whole, whatever goes on inside."""
        tie = self.precise.port.script.ties.get(self.call)
        if tie is None or self.counterpart is None:
            return replace(self, checks=())
        places = {
            id(value): (order, slot)
            for order in {self.counterpart, *(check.reference[0] for check in self.checks)}
            for slot, value in self.precise.reference.trace.nodes[order].outputs.items()
        }
        checks = []
        for slot, value in tie.outputs.items():
            if id(value) in places:
                order, other = places[id(value)]
                floor = value.data.size * coarser(value.data.dtype)
                place: Place = (order, "output", other, "forward")
                checks.append(Check((self.call, "output", slot, "forward"), place, floor, rough=True))
        kept = (check for check in self.checks if is_kept(check.port))
        return replace(self, checks=(*checks, *kept))

    def with_drift(self) -> Case:
        """The same case with room for what rounding adds up to where nothing is led along inside."""
        checks = (
            replace(each, floor=each.floor | self.precise.exact_freely([each.reference[0]], each.reference))
            if each.rough
            else each
            for each in self.checks
        )
        return replace(self, checks=tuple(checks))

    def supply(self, data: TensorData) -> Array:
        assert data.stored is not None
        return self.precise.ledger.get(data.stored)

    def recorded(self, place: Place) -> Array:
        """What the reference had there."""
        if place in self.instead:
            return self.instead[place]
        if is_kept(place):
            return self.left[path_of(place, self.precise.reference.trace)]
        value = _value(self.precise.reference.trace.nodes[place[0]], place)
        data = value.data if place[3] == "forward" else value.gradient
        if data is None:  # no gradient came back there
            return np.zeros(value.data.shape, value.data.dtype)
        return self.supply(data)

    def expected(self, check: Check, observed: Array) -> Array | None:
        """The reference's array in the layout of the port's; None when the shapes do not fit."""
        recorded = self.recorded(check.reference)
        layout = self.precise.port.script.layouts.get(check.port[:3])
        if layout is None or layout.shape != observed.shape:  # a change may bring another shape
            layout = fit(recorded, observed)
        if layout is None:
            return None
        return layout.apply(recorded)

    def input(self, slot: str) -> Array:
        """What the port's call is fed with."""
        value = self.precise.port.script.ties[self.call].inputs[slot]
        layout = self.precise.port.script.layout(self.call, "input", slot, value)
        return layout.apply(self.supply(value.data))

    def judge(self, observed: Array, expected: Array | None, check: Check) -> float:
        """The score of an array at a place."""
        if expected is None or observed.shape != expected.shape:
            return math.inf
        scale = size_of(expected) * coarser(observed.dtype.name, expected.dtype.name)
        error, floor = error_of(compare_arrays(observed, expected)), check.floor | scale
        if check.rough and score(error, floor) > self.limit:
            calls = [check.reference[0]]
            for question in (self.precise.moved, self.precise.exact):
                floor |= question(calls, check.reference)
        return score(error, floor)

    def score(self, repeated: RepeatResult | None, direction: Direction | None = None) -> float:
        """The worst score of what a twin computed, over all places of one direction."""
        if repeated is None:
            return math.inf
        wanted = [check for check in self.checks if check.port[3] == (direction or self.direction)]
        scores = []
        for check in wanted:
            check = self._where_made(check, repeated)
            observed = repeated.places.get(check.port)
            if observed is not None:
                scores.append(self.judge(observed, self.expected(check, observed), check))
            elif not self._hands_through(check):
                return math.inf
        return max(scores, default=0.0 if wanted else math.inf)

    def _where_made(self, check: Check, repeated: RepeatResult) -> Check:
        """What the call gives as another call inside gave it is looked at there."""
        order, side, slot, direction = check.port
        tie = self.precise.port.script.ties.get(order)
        given = None if tie is None else tie.outputs.get(slot)
        if check.port in repeated.places or given is None or (side, direction) != ("output", "forward"):
            return check
        for inner in self.precise.port.trace.subtree(order):
            within = self.precise.port.script.ties.get(inner.order)
            for name, value in (within.outputs if within is not None else {}).items():
                place: Place = (inner.order, side, name, direction)
                if value.data is given.data and place in repeated.places:
                    return replace(check, port=place)
        return check

    def _hands_through(self, check: Check) -> bool:
        """Whether what is expected is an input as it is: then a tensor handed through is not looked at."""
        order, side, slot, direction = check.port
        tie = self.precise.port.script.ties.get(order)
        given = None if tie is None or is_kept(check.port) else tie.outputs.get(slot)
        if tie is None or given is None or order != self.call or (side, direction) != ("output", "forward"):
            return False
        return any(value.data is given.data for value in tie.inputs.values())

    def run(
        self,
        prepare: Prepare | None = None,
        *,
        on_op: OnOp | None = None,
        inside: bool = True,
        listener: Listener | None = None,
        forward_only: bool = False,
    ) -> RepeatResult | None:
        """The port's call with a change; None when the framework refuses to compute that."""
        repeater, start = self.port_repeater(), self.start
        if start == self.call:
            return self._repeat(repeater, self.call, prepare, on_op, inside, listener, forward_only)
        if not inside:
            return None  # around it, everything is led along as usual
        reaching = None if prepare is None else self._reaching(prepare)
        return self._repeat(repeater, start, reaching, on_op, True, listener, forward_only)

    def run_reference(
        self,
        prepare: Prepare | None = None,
        *,
        on_op: OnOp | None = None,
        inside: bool = True,
        listener: Listener | None = None,
        forward_only: bool = False,
        start: int | None = None,
    ) -> RepeatResult | None:
        """The reference's call with a change; ``start``: as part of a call around it."""
        if self.counterpart is None:
            return None
        repeater, call = self.precise.reference, self.counterpart if start is None else start
        return self._repeat(repeater, call, prepare, on_op, inside, listener, forward_only)

    def repeat(self, repeater: Repeater, call: int, dtype: str | None = None) -> RepeatResult | None:
        """A call by a repeater of its own: on other values, given other arguments, or in another dtype."""
        return self._repeat(repeater, call, None, None, True, None, dtype=dtype)

    @property
    def start(self) -> int:
        """The call to repeat: the one that is fed in full, or the next around it that makes the call
        where the error shows: what one call of the reference does may take several.
        """
        nodes, order = self.precise.port.trace.nodes, min(self.opened)
        shows = self.checks[0].port[0] if self.checks else order
        while nodes[order].parent is not None and not (
            order <= shows < nodes[order].finished and self._is_fed(order)
        ):
            order = nodes[order].parent or 0
        return order

    @property
    def opened(self) -> frozenset[int]:
        """The blamed call, and those around it as long as one takes something without a counterpart."""
        order, found = self.call, [self.call]
        while (parent := self.precise.port.trace.nodes[order].parent) is not None and not self._is_fed(order):
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

    def _is_fed(self, order: int) -> bool:
        tie = self.precise.port.script.ties.get(order)
        return tie is not None and all(
            slot in tie.inputs for slot in self.precise.port.trace.nodes[order].inputs
        )

    def _reaching(self, prepare: Prepare) -> Prepare:
        """The same change to the blamed module inside a twin of one around it."""
        outer = self.precise.port.trace.nodes[self.start].path
        path = self.node.path[len(outer) + 1 :] if outer else self.node.path

        def reach(twin: Any) -> None:
            modules = self.backend.modules(twin)
            new = prepare(modules[path])
            if new is not None:
                parent, _, name = path.rpartition(".")
                setattr(modules[parent], name, new)

        return reach

    def baseline(self) -> RepeatResult | None:
        """The port's call as it is."""
        if self._baseline is None:
            self._baseline = self.run()
        return self._baseline

    def observed(self, check: Check | None = None) -> Array | None:
        """What the port computes at a place, by default that of the divergence."""
        baseline = self.baseline()
        return None if baseline is None else baseline.places.get((check or self.checks[0]).port)

    def port_repeater(self) -> Repeater:
        """Places that could not be tied, because the shapes differ, are looked at in trials too."""
        usual = self.precise.port
        ties = dict(usual.script.ties)
        changed = False
        for check in self.checks:
            order, side, slot, _ = check.port
            tie = ties.get(order, Binding({}, {}))
            if is_kept(check.port) or slot in (tie.inputs if side == "input" else tie.outputs):
                continue
            value = _value(self.precise.reference.trace.nodes[check.reference[0]], check.reference)
            inputs = {**tie.inputs, slot: value} if side == "input" else tie.inputs
            outputs = {**tie.outputs, slot: value} if side == "output" else tie.outputs
            ties[order] = Binding(inputs, outputs, tie.in_place)
            changed = True
        if not changed:
            return usual
        return usual.led_by(ReplayScript(ties, usual.script.layouts))

    def _repeat(
        self,
        repeater: Repeater,
        call: int,
        prepare: Prepare | None,
        on_op: OnOp | None,
        inside: bool,
        listener: Listener | None,
        forward_only: bool = False,
        dtype: str | None = None,
    ) -> RepeatResult | None:
        def supply(data: TensorData) -> Array:
            return self.supply(data).astype(dtype) if "float" in data.dtype else self.supply(data)

        twins: list[Any] = []

        def begin(twin: Any) -> Any:
            self._as_before(repeater, call, twin)
            new = None if prepare is None else prepare(twin)
            twins[:] = [twin if new is None else new]
            return new

        if self.allowance is not None and self.allowance.is_used_up:
            return None
        try:
            repeated = repeater.repeat(
                *([call], dtype, self.supply if dtype is None else supply, begin),
                on_op=on_op,
                inside=inside,
                listener=listener,
                backward=not forward_only and any(check.port[3] == "backward" for check in self.checks[:1]),
            )
            repeated.places.update(kept_by(repeater, call, twins[0], self.looked_at))
            return repeated
        except ParfocalError as error:
            self.problems.append(error.message)
        except Exception as error:  # noqa: BLE001  whatever a framework raises for a trial that cannot be
            self.problems.append(told(error))
        return None

    def _as_before(self, repeater: Repeater, call: int, twin: Any) -> None:
        """Running statistics as they were: the runs so far may have moved them."""
        before = self.buffers[0 if repeater.trace is self.precise.reference.trace else 1]
        path = repeater.trace.nodes[call].path
        for entry in repeater.backend.state(twin):
            whole = f"{path}.{entry.path}" if path else entry.path
            if entry.role == "buffer" and whole in before:
                repeater.backend.write(entry.value, before[whole])


def _value(node: Node, place: Place) -> Value:
    return (node.inputs if place[1] == "input" else node.outputs)[place[2]]


def is_telling(array: Array) -> bool:
    """Enough different values that an agreement is no chance."""
    return array.size >= 8 and bool(np.ptp(array.astype(np.float64)) > 0)


def blamed(seen: MeasuredTensor, nodes: Sequence[Node]) -> int:
    """The port's call that made the error: itself, or the one around it."""
    order = seen.port
    for _ in range(seen.levels):
        parent = nodes[order].parent
        order = order if parent is None else parent
    return order
