"""One divergence under investigation, and the trying of changes.

A change is tried on a twin of the port's call, fed with the reference's inputs and output
gradients, and scored at the very places where the error was seen, in units of the same floor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from parfocal.attribution.experiment import Change, Prepare, repeated
from parfocal.attribution.measures import LARGE
from parfocal.backends.protocol import Array, OnOp
from parfocal.explain.case_facts import CaseFacts, Check, value_at
from parfocal.explain.kept import is_kept, kept_by, path_of
from parfocal.judge.floors import Size, coarser, judge_roughly, score
from parfocal.judge.layouts import fit
from parfocal.replay.follow import Binding, Direction, Listener, Supply
from parfocal.replay.repeat import Place, Repeater, RepeatResult, ReplayScript
from parfocal.replay.trace import TensorData


@dataclass(slots=True)
class Case(CaseFacts):
    """Knows what is right there, and tries changes.

    ``tried`` is the score of the port's call with one; it is right up to ``limit``.
    """

    _baseline: RepeatResult | None = None

    def at_outputs(self) -> Case:
        """The same case judged by what the call gives as a whole, whatever goes on inside."""
        binding = self.precise.port.script.ties.get(self.call)
        if binding is None or self.counterpart is None:
            return replace(self, checks=())
        places = {
            id(value): (order, slot)
            for order in {self.counterpart, *(check.reference[0] for check in self.checks)}
            for slot, value in self.precise.reference.trace.nodes[order].outputs.items()
        }
        checks = []
        for slot, value in binding.outputs.items():
            if id(value) in places:
                order, other = places[id(value)]
                floor = value.data.size * coarser(value.data.dtype)
                place: Place = (order, "output", other, "forward")
                checks.append(Check((self.call, "output", slot, "forward"), place, floor, rough=True))
        kept = (check for check in self.checks if is_kept(check.port))
        return replace(self, checks=(*checks, *kept), _baseline=None)

    def with_drift(self) -> Case:
        """The same case with room for what rounding adds up to where nothing is led along inside."""
        checks = (
            replace(each, floor=each.floor | self.precise.exact_freely([each.reference[0]], each.reference))
            if each.rough
            else each
            for each in self.checks
        )
        return replace(self, checks=tuple(checks))

    def tried(
        self,
        prepare: Prepare | None = None,
        *,
        on_op: OnOp | None = None,
        inside: bool = True,
        listener: Listener | None = None,
        direction: Direction | None = None,
    ) -> float:
        """The experiment: the score of the port's call repeated with a change."""
        return self.score(self.run(prepare, on_op=on_op, inside=inside, listener=listener), direction)

    @property
    def supply(self) -> Supply:
        """Gives what was recorded of a tensor."""
        return self.precise.recorded

    def recorded(self, place: Place) -> Array:
        """What the reference had there."""
        if place in self.instead:
            return self.instead[place]
        if is_kept(place):
            return self.left[path_of(place, self.precise.reference.trace)]
        value = value_at(self.precise.reference.trace.nodes[place[0]], place)
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
        judged = judge_roughly(observed, expected, None)
        error, floor = judged.error, check.floor | judged.floor
        return score(error, self._asked_for(error, floor, check) if check.rough else floor)

    def _asked_for(self, error: Size, floor: Size, check: Check) -> Size:
        """The floor with as much more as it takes, if any is enough."""
        calls, place = [check.reference[0]], check.reference
        for question in (self.precise.exact, partial(self.precise.moved, once=True), self.precise.moved):
            if score(error, floor) <= self.limit:
                break
            if question == self.precise.moved and error.rms > LARGE * floor.rms:
                break  # a few numbers are moved several times, but for what no rounding comes near
            floor |= question(calls, place)
        return floor

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
        binding = self.precise.port.script.ties.get(order)
        given = None if binding is None else binding.outputs.get(slot)
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
        binding = self.precise.port.script.ties.get(order)
        given = None if binding is None or is_kept(check.port) else binding.outputs.get(slot)
        if (
            binding is None
            or given is None
            or order != self.call
            or (side, direction) != ("output", "forward")
        ):
            return False
        return any(value.data is given.data for value in binding.inputs.values())

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
        listener: Listener | None = None,
        forward_only: bool = False,
        start: int | None = None,
    ) -> RepeatResult | None:
        """The reference's call with a change; ``start``: as part of a call around it."""
        if self.counterpart is None:
            return None
        repeater, call = self.precise.reference, self.counterpart if start is None else start
        return self._repeat(repeater, call, prepare, on_op, True, listener, forward_only)

    def repeat(self, repeater: Repeater, call: int, dtype: str | None = None) -> RepeatResult | None:
        """A call by a repeater of its own: on other values, given other arguments, or in another dtype."""
        return self._repeat(repeater, call, None, None, True, None, dtype=dtype)

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

    def seen_as_it_is(self, repeated: RepeatResult) -> None:
        """The port's call was repeated without a change for another reason: it need not be once more."""
        self._baseline = self._baseline or repeated

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
        bindings = dict(usual.script.ties)
        changed = False
        for check in self.checks:
            order, side, slot, _ = check.port
            binding = bindings.get(order, Binding({}, {}))
            if is_kept(check.port) or slot in (binding.inputs if side == "input" else binding.outputs):
                continue
            value = value_at(self.precise.reference.trace.nodes[check.reference[0]], check.reference)
            inputs = {**binding.inputs, slot: value} if side == "input" else binding.inputs
            outputs = {**binding.outputs, slot: value} if side == "output" else binding.outputs
            bindings[order] = Binding(inputs, outputs, binding.in_place)
            changed = True
        if not changed:
            return usual
        return usual.led_by(ReplayScript(bindings, usual.script.layouts))

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
        change = Change(
            begin,
            None if dtype is None else supply,
            dtype,
            on_op,
            listener,
            inside,
            backward=not forward_only and any(check.port[3] == "backward" for check in self.checks[:1]),
        )
        result = repeated(repeater, [call], self.supply, change, self.problems.append)
        if result is not None:
            result.places.update(kept_by(repeater, call, twins[0], self.looked_at))
        return result

    def _as_before(self, repeater: Repeater, call: int, twin: Any) -> None:
        """Running statistics as they were: the runs so far may have moved them."""
        before = self.buffers[0 if repeater.trace is self.precise.reference.trace else 1]
        path = repeater.trace.nodes[call].path
        for entry in repeater.backend.state(twin):
            whole = f"{path}.{entry.path}" if path else entry.path
            if entry.role == "buffer" and whole in before:
                repeater.backend.write(entry.value, before[whole])
