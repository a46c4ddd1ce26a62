"""Run one recorded call again, alone, by a twin of its module.

The twin gets recorded values as inputs and output gradients, is led along recorded values inside,
and shows what it computes itself at every place: in the same dtype or another, on the values as
they were or moved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from parfocal.backends.keeping import attributes_kept
from parfocal.backends.protocol import Array, Backend, OnOp
from parfocal.capture.nested_values import flatten, flatten_call, replace_call
from parfocal.errors import UnsupportedError
from parfocal.judge.layouts import Layout, MaskEncoding
from parfocal.phrases import phrase
from parfocal.replay.effort import WATCHED, Effort, Prices
from parfocal.replay.follow import (
    Binding,
    Direction,
    InputOrOutput,
    Listener,
    ReplayFollower,
    Sighting,
    Supply,
)
from parfocal.replay.stateful_arguments import copies_of
from parfocal.replay.trace import Node, TensorData, Trace, Value

Place = tuple[int, InputOrOutput, str, Direction]  # order of the call, side, slot, direction
WIDE = "float64"
CallSlot = tuple[int, InputOrOutput, str]  # number of a call, its input or output
Layouts = Mapping[CallSlot, Layout]
See = Callable[[Place, Array], None]  # the array is the twin's own: to be looked at, not kept


@dataclass(slots=True)
class RepeatResult:
    """What the twin computed, at each place and for each parameter's gradient (by full path)."""

    places: dict[Place, Array] = field(default_factory=dict)
    parameters: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplayScript:
    """What a model is led along: its own recorded values, or those of the model it is compared with.

    ``layouts`` says how values of the other model lie in this one; none means as they are.
    ``inner`` says what calls are led along inside of one that is repeated, where that is less.
    ``own``: they are its own, so all of them lie here as they were recorded.
    """

    ties: Mapping[int, Binding]
    layouts: Layouts = field(default_factory=dict)
    inner: Mapping[int, Binding] | None = None
    own: bool = False
    words: Mapping[CallSlot, MaskEncoding] = field(init=False)  # of masks that are said otherwise here

    def __post_init__(self) -> None:
        # found once, not by every call that is repeated: there are few, if any
        said = {place: each.words for place, each in self.layouts.items() if each.words is not None}
        object.__setattr__(self, "words", said)

    def layout(self, order: int, side: InputOrOutput, slot: str, value: Value) -> Layout:
        return self.layouts.get((order, side, slot)) or Layout(None, value.data.shape)

    def feeds(self, node: Node) -> bool:
        """Whether it is known what to give to a call for each of the tensors that it takes."""
        binding = self.ties.get(node.order)
        return binding is not None and node.inputs.keys() <= binding.inputs.keys()


def own_script(
    trace: Trace,
    takes: Mapping[int, Collection[str]] | None = None,
    gives: Collection[int] = (),
) -> ReplayScript:
    """Every call led along what it recorded itself; inside of others only those that take or give
    what the other model is led along: what is computed in between is computed here too.

    ``takes``: of each such call the inputs that its partner is given. What the partner makes of an input of
    its own, and sends back to it, is computed here as well.
    """
    ties = {node.order: Binding(node.inputs, node.outputs, node.in_place) for node in trace.nodes}
    if takes is None:
        return ReplayScript(ties, own=True)
    inner = {order: ties[order] for order in gives if order not in takes}
    for order, slots in takes.items():
        tie = ties[order]
        inputs = {slot: value for slot, value in tie.inputs.items() if slot in slots}
        if order in gives:
            inner[order] = Binding(inputs, tie.outputs, tie.in_place)
        else:
            inner[order] = Binding(without_gradients(inputs), {}, tie.in_place)
    return ReplayScript(ties, inner=inner, own=True)


def without_gradients(values: Mapping[str, Value]) -> dict[str, Value]:
    """Of a call that does its part only: its share of the gradient is not the whole."""
    return {slot: Value(value.data) for slot, value in values.items()}


class Repeater:
    """Repeats calls of one watched model."""

    def __init__(
        self, backend: Backend, model: Any, trace: Trace, script: ReplayScript, effort: Effort | None = None
    ) -> None:
        """``effort``: is charged with what is repeated."""
        self.backend = backend
        self.model = model
        self.trace = trace
        self.script = script
        self.effort = effort or Effort()

    # Both are worked out once something is repeated: of most pairs nothing is.

    @cached_property
    def modules(self) -> dict[str, Any]:
        return self.backend.modules(self.model)

    @cached_property
    def prices(self) -> Prices:
        return Prices(self.trace)

    def repeatable(self, order: int) -> int:
        """The call, or the next around it that was given all of the recorded values, and what came back.

        What only one side puts around a layer (a convolution with its activation, say) is not led along.
        """
        nodes = self.trace.nodes
        while (parent := nodes[order].parent) is not None:
            if self.script.feeds(nodes[order]) and self.script.ties[order].outputs:
                break
            order = parent
        return order

    def led_by(self, script: ReplayScript) -> Repeater:
        """The same, along other values."""
        other = copy.copy(self)
        other.script = script
        return other

    def repeat(
        self,
        calls: Sequence[int],
        dtype: str | None,
        supply: Supply,
        prepare: Callable[[Any], Any] | None = None,
        *,
        on_op: OnOp | None = None,
        inside: bool = True,
        backward: bool = True,
        listener: Listener | None = None,
        see: See | None = None,
    ) -> RepeatResult:
        """One or several calls of the same module; their parameter gradients add up.

        ``prepare`` may change the twin before it runs, or return another module to run instead: what
        if it were different? ``on_op`` sees its ops and may replace what they give. Without
        ``inside`` nothing is led along inside the call: what is called there may be another order;
        without ``backward`` it only runs forward. ``listener`` hears of the calls. ``see`` is shown what
        is computed at each place instead of it being kept.
        """
        repeated = RepeatResult()
        path = self.trace.nodes[calls[0]].path
        wide = dtype == WIDE and not any(self._is_wide(order) for order in calls)
        state = self.backend.rng_state()
        try:
            twin = self.backend.copy_as(self.modules[path], dtype)
            if prepare is not None:
                other = prepare(twin)
                twin = twin if other is None else other
            for order in calls:
                price = self.prices.of(order, backward=backward, dtype=dtype)
                self.effort.charge(price if on_op is None else WATCHED * price)
                wider = self.backend.widened() if wide else nullcontext()
                with attributes_kept(self.backend, twin), wider:
                    self._follow(
                        twin,
                        self.trace.nodes[order],
                        supply,
                        see or _keeping(repeated),
                        on_op,
                        inside,
                        backward,
                        listener,
                    )
                if backward:
                    self._add_parameter_gradients(twin, path, repeated)
        finally:
            self.backend.set_rng_state(state)
        return repeated

    def _is_wide(self, order: int) -> bool:
        """Whether a call is in float64 of its own: then what it does in less it does on purpose."""
        node = self.trace.nodes[order]
        return any(value.data.dtype == WIDE for value in (*node.inputs.values(), *node.outputs.values()))

    def _follow(
        self,
        twin: Any,
        node: Node,
        supply: Supply,
        see: See,
        on_op: OnOp | None,
        inside: bool,
        backward: bool,
        listener: Listener | None,
    ) -> None:
        led = self.script.ties if self.script.inner is None else self.script.inner
        ties = {
            inner.order - node.order: led[inner.order]
            for inner in (self.trace.subtree(node.order) if inside else ())
            if inner.order in led
        }
        if node.order in self.script.ties:
            ties[0] = self.script.ties[node.order]

        def report(sighting: Sighting) -> None:
            if sighting.observed is not None:
                place = (node.order + sighting.order, sighting.side, sighting.slot, sighting.direction)
                see(place, sighting.observed)

        own = self.script.ties.get(node.order, Binding({}, {}))
        # also without a backward pass: a model may ask for gradients itself while it runs forward
        gradients = any(value.gradient is not None for value in own.outputs.values())
        words = {
            (order - node.order, side, slot): said for (order, side, slot), said in self.script.words.items()
        }
        follower = ReplayFollower(
            self.backend,
            ties,
            supply,
            report,
            gradients=gradients,
            on_op=on_op,
            listener=listener,
            words=words,
            own=self.script.own,
            backward=backward,
        )
        args, kwargs = self._arguments(node, own, supply, gradients, follower.give)
        with follower.following(twin, args, kwargs) as output:
            if gradients and backward:
                self._send_back(output, node, own, supply)

    def _arguments(
        self,
        node: Node,
        own: Binding,
        supply: Supply,
        gradients: bool,
        give: Callable[[Any, TensorData, Layout], None],
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the call is given; ``give`` is told of each, so that it is not looked at again."""
        tensors = {}
        for slot in node.inputs:
            value = own.inputs.get(slot)
            if value is None:
                raise UnsupportedError(
                    phrase(
                        "input {slot} of {path} has no recorded counterpart",
                        slot=slot,
                        path=node.path or phrase("the model"),
                    )
                )
            layout = self.script.layout(node.order, "input", slot, value)
            array = layout.apply(supply(value.data))
            wanted = gradients and value.differentiable
            tensor = self.backend.from_array(array, requires_grad=wanted)
            # a leaf and its views cannot be changed in place, a tensor in its place can
            tensors[slot] = self.backend.substitute(tensor, array) if wanted else tensor
            give(tensors[slot], value.data, layout)
        args, kwargs = node.arguments
        objects = copies_of(flatten_call(args, kwargs).leaves, self.backend.is_tensor)
        return replace_call(args, kwargs, {**tensors, **objects})

    def _send_back(self, output: Any, node: Node, own: Binding, supply: Supply) -> None:
        """The recorded gradients of what the call gives."""
        leaves = flatten(output).leaves
        slots, seeds = [], []
        seeded: set[int] = set()  # of a tensor that is given twice the recorded gradient is the sum already
        for slot, value in own.outputs.items():
            if id(value.data) in seeded:
                continue
            if value.gradient is not None and self.backend.requires_grad(leaves[slot]):
                layout = self.script.layout(node.order, "output", slot, value)
                seed = self.backend.from_array(layout.apply(supply(value.gradient)))
                if self.backend.shape(seed) != self.backend.shape(leaves[slot]):
                    continue  # an output of another shape: the gradient cannot come in
                slots.append(slot)
                seeded.add(id(value.data))
                seeds.append(self.backend.cast(seed, self.backend.dtype(leaves[slot])))
        if slots:
            self.backend.backward([leaves[slot] for slot in slots], seeds)

    def _add_parameter_gradients(self, twin: Any, path: str, repeated: RepeatResult) -> None:
        for entry in self.backend.state(twin):
            array = self.backend.gradient(entry.value) if entry.role == "parameter" else None
            if array is not None:
                whole = f"{path}.{entry.path}" if path else entry.path
                repeated.parameters[whole] = repeated.parameters.get(whole, 0) + array


def _keeping(repeated: RepeatResult) -> See:
    def keep(place: Place, array: Array) -> None:
        repeated.places[place] = array.copy()

    return keep
