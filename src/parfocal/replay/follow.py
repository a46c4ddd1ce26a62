"""Run a model along recorded values: every tied call gets the recorded inputs and gradients, not its own.

What a call computes is looked at first and then replaced by what was recorded, going forward and
going backward. So every stretch between two ties starts from exact values, and what differs at
its end was made by this stretch alone: a layer's own error at its outputs, the surrounding
code's at its inputs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from parfocal.backends.keeping import KeptAttributes
from parfocal.backends.protocol import Array, Backend, Call, OnOp
from parfocal.capture.nested_values import flatten, flatten_call, replace, replace_call
from parfocal.capture.overwrites import Overwrites, Sight
from parfocal.judge.layouts import Layout, MaskEncoding, lay_out
from parfocal.replay.observe import RECENT
from parfocal.replay.trace import TensorData, Value

InputOrOutput = Literal["input", "output"]
Direction = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class Binding:
    """What the tensors of one call correspond to: own slot -> the recorded value.

    ``replaces``: an output of another shape gives way to the recorded one as well, so that what
    comes after a layer with a wrong window is led along all the same.
    """

    inputs: Mapping[str, Value]
    outputs: Mapping[str, Value]
    in_place: bool = False
    replaces: bool = False


class Sighting(NamedTuple):
    """One tensor of a tied call as it was computed, beside what was recorded there."""

    order: int  # of the followed call
    side: InputOrOutput
    slot: str
    direction: Direction
    observed: Array | None  # None: no gradient arrived, though one was recorded
    expected: Array | None  # in the layout of ``observed``; None: none was recorded
    layout: Layout | None  # None: the shapes do not fit
    recorded: TensorData | None  # where ``expected`` comes from


@dataclass(slots=True)
class _Awaited:
    """A gradient that has not been seen yet."""

    value: Value
    layout: Layout
    sight: Sight | None = None  # of the hook; None: there is none, and none will come


@dataclass(slots=True)
class _Given:
    """What a call was given in place of one of its tensors."""

    tensor: Any  # the caller's own
    stand_in: Any
    version: int  # of the stand-in, when the call began


class Listener(Protocol):
    """Hears of every call: as it was made, and what it gave before and after the exchange."""

    def entered(self, call: Call) -> None: ...
    def left(self, call: Call, computed: Any, given: Any) -> None: ...


Report = Callable[[Sighting], bool | None]  # whether both are equal, where that was looked at
Supply = Callable[[TensorData], Array]


class ReplayFollower:
    """Follows a script of ties while a model runs."""

    def __init__(
        self,
        backend: Backend,
        script: Mapping[int, Binding],
        supply: Supply,
        report: Report,
        *,
        gradients: bool,
        on_op: OnOp | None = None,
        listener: Listener | None = None,
        kept: KeptAttributes | None = None,
        unmoved: Collection[int] = (),
        words: Mapping[tuple[int, InputOrOutput, str], MaskEncoding] = MappingProxyType({}),
        whole: bool = False,
        own: bool = False,
        backward: bool = True,
    ) -> None:
        """``unmoved``: identities of recorded data that lie here as they were recorded.

        ``kept`` notes each module as its first call finds it.
        ``words``: how masks are said here, by place, where not as they were recorded. ``whole``: the
        first call is the whole model, and what that gives is for somebody who knows of no other layout.
        ``own``: the recorded data are the model's own, so none of them was moved.
        Without ``backward`` no gradient is sent back in the end, so none is missing.
        """
        self.listener = listener
        self.kept = kept
        self.unmoved = unmoved
        self.words = words
        self.whole = whole
        self.own = own
        self.backward = backward
        self.backend = backend
        self.script = script
        self.supply = supply
        self.report = report
        self.gradients = gradients
        self.on_op = on_op
        # tensors that hold recorded values already: an output is nearly always the next call's input
        self._given: OrderedDict[int, tuple[Any, int, TensorData, Layout]] = OrderedDict()
        self._waiting: dict[tuple[int, InputOrOutput, str], _Awaited] = {}
        self._overwrites = Overwrites(backend)
        self.hidden: list[tuple[int, InputOrOutput, str]] = []  # gradients that could not be observed
        self.layouts: dict[tuple[int, InputOrOutput, str], Layout] = {}  # how each tied tensor lies

    @contextmanager
    def following(self, model: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Iterator[Any]:
        """What the model gives; gradients are sent back meanwhile, and on leaving those that did not come
        back are reported.
        """
        self.backend.clear_gradients(model)
        try:
            with self.backend.watch(model, self._enter, self._exit, self.on_op):
                yield model(*args, **kwargs)
        finally:
            self._given.clear()
        for place, awaited in self._waiting.items() if self.backward else ():
            if awaited.value.gradient is not None and not self._is_hidden(place, awaited):
                recorded = awaited.value.gradient
                expected = awaited.layout.apply(self.supply(recorded))
                self.report(Sighting(*place, "backward", None, expected, awaited.layout, recorded))
        self._waiting.clear()
        self._overwrites.clear()

    def _is_hidden(self, place: tuple[int, InputOrOutput, str], awaited: _Awaited) -> bool:
        lost = awaited.sight is not None and awaited.sight.lost
        if lost:
            self.hidden.append(place)
        return lost

    def _enter(self, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if self.kept is not None:
            self.kept.entered(call)
        if self.listener is not None:
            self.listener.entered(call)
        tie = self.script.get(call.order)
        if tie is None:
            return None
        leaves = flatten_call(call.args, call.kwargs).leaves
        exchanged = self._exchange(call.order, "input", leaves, tie.inputs, in_place=tie.in_place)
        given = exchanged
        if tie.in_place:
            tensors = {slot: leaf for slot, leaf in leaves.items() if self.backend.is_tensor(leaf)}
            given = {**tensors, **exchanged}
        for slot, new in given.items():
            call.note[slot] = _Given(leaves[slot], new, self.backend.version(new))
        return replace_call(call.args, call.kwargs, exchanged) if exchanged else None

    def _exit(self, call: Call, output: Any) -> Any:
        exchanged = self._exchanged_output(call, output)
        if self.listener is not None:
            self.listener.left(call, output, output if exchanged is None else exchanged)
        return exchanged

    def _exchanged_output(self, call: Call, output: Any) -> Any:
        tie = self.script.get(call.order)
        if tie is None:
            return None
        leaves = flatten(output).leaves
        changed = [slot for slot, given in call.note.items() if self._is_changed(given)]
        through = self._handed_through(call, tie, leaves, changed)
        exchanged = self._exchange(call.order, "output", leaves, tie.outputs, bare=through)
        # what is given twice stays one tensor, whichever of the two is tied and whichever is used
        first: dict[int, Any] = {}
        for slot, new in exchanged.items():
            if first.setdefault(id(leaves[slot]), new) is not new:
                self._waiting.pop((call.order, "output", slot), None)
        exchanged = {slot: first[id(leaf)] for slot, leaf in leaves.items() if id(leaf) in first}
        exchanged |= self._overwrite(call, leaves, exchanged, changed)
        return replace(output, exchanged) if exchanged else None

    def _is_changed(self, given: _Given) -> bool:
        """Whether the call changed in place what it was given."""
        return self.backend.version(given.stand_in) != given.version

    def _handed_through(
        self, call: Call, tie: Binding, leaves: Mapping[str, Any], changed: Collection[str]
    ) -> set[str]:
        """Where an input comes out as it went in, as it was recorded to do: one tensor, one gradient."""
        found: set[str] = set()
        for slot, given in call.note.items():
            if slot not in tie.inputs or slot in changed:
                continue
            places = [
                place
                for place, leaf in leaves.items()
                if leaf is given.stand_in
                and (place not in tie.outputs or tie.outputs[place].data is tie.inputs[slot].data)
            ]
            if places:
                self._waiting.pop((call.order, "input", slot), None)
                found.update(places)
        return found

    def _overwrite(
        self, call: Call, leaves: Mapping[str, Any], new: Mapping[str, Any], changed: Collection[str]
    ) -> dict[str, Any]:
        """The caller's own tensors take on what the call made of them in place; where it gives them back."""
        found: dict[str, Any] = {}
        for slot in changed:
            given = call.note[slot]
            awaited = self._waiting.get((call.order, "input", slot))
            if awaited is not None and self._is_hidden((call.order, "input", slot), awaited):
                del self._waiting[call.order, "input", slot]
            places = [place for place, leaf in leaves.items() if leaf is given.stand_in]
            made = new.get(places[0], given.stand_in) if places else given.stand_in
            same_shape = self.backend.shape(made) == self.backend.shape(given.tensor)
            if made is given.tensor or not same_shape:
                continue
            self._overwrites.assign(given.tensor, made)
            known = self._given.pop(id(made), None)
            self._given.pop(id(given.tensor), None)
            if known is not None:
                self.give(given.tensor, known[2], known[3])
            found |= dict.fromkeys(places, given.tensor)
        return found

    def _exchange(
        self,
        order: int,
        side: InputOrOutput,
        leaves: Mapping[str, Any],
        values: Mapping[str, Value],
        *,
        in_place: bool = False,
        bare: Collection[str] = (),
    ) -> dict[str, Any]:
        """Look at the tied tensors, and what to put in their place; those of ``bare`` stay as they are."""
        exchanged: dict[str, Any] = {}
        made: dict[tuple[int, Layout], Any] = {}  # what was one tensor there is one here
        for slot, value in values.items():
            tensor = leaves.get(slot)
            if tensor is None or not self.backend.is_tensor(tensor):
                continue
            known = self._layout_if_given(tensor, value.data)
            layout, expected = self._look(order, side, slot, tensor, value, known)
            if layout is None:
                if side == "output" and self.script[order].replaces:
                    exchanged[slot] = self._in_another_shape(tensor, value)
                continue
            self.layouts[order, side, slot] = layout
            if (order, side) == (0, "output") and not self.backward:
                continue  # nothing is made of it any more
            if side == "input" and (id(value), layout) in made:
                exchanged[slot] = made[id(value), layout]
                continue
            if slot in bare:
                new = tensor
            elif known is not None and side == "input" and not in_place:  # one of several uses of the tensor
                new = self.backend.alias(tensor) if self.backend.requires_grad(tensor) else tensor
            else:
                new = self._replacement(tensor, value, layout, expected)
            self.give(new, value.data, layout)
            made[id(value), layout] = new
            # a mask in other words has another gradient: it is judged by what the code before makes of it
            if self.gradients and value.differentiable and layout.words is None:
                alive = self.backend.requires_grad(new)
                sight = self._overwrites.sight(self.backend.changes_behind_hooks(new)) if alive else None
                if alive or (side == "output" and not self.backend.grad_enabled()):  # no_grad around it
                    self._waiting[order, side, slot] = _Awaited(value, layout, sight)
                if alive:
                    self.backend.watch_gradient(new, partial(self._arrived, order, side, slot))
            if new is not tensor:
                exchanged[slot] = new
        return exchanged

    def _in_another_shape(self, tensor: Any, value: Value) -> Any:
        """What was recorded; no gradient of this shape can go back from here."""
        new = self.backend.substitute(tensor, self.supply(value.data))
        self.give(new, value.data, Layout(None, value.data.shape))
        return new

    def _look(
        self,
        order: int,
        side: InputOrOutput,
        slot: str,
        tensor: Any,
        value: Value,
        known: Layout | None,
    ) -> tuple[Layout | None, Array | None]:
        """How a tied tensor lies, and what was recorded there, laid out so.

        A tensor ``known`` to hold recorded values is not looked at again.
        """
        stays = self.own or id(value.data) in self.unmoved or (self.whole and (order, side) == (0, "output"))
        if known is not None and not (stays and known.keeps(value.data.shape)):
            return known, None
        observed = self.backend.to_array(tensor, copy=False)
        recorded = self.supply(value.data)
        words = self.words.get((order, side, slot))
        layout, expected = lay_out(recorded, observed, words, may_move=not stays)
        if layout is None and side == "input" and recorded.size != observed.size:
            return None, None  # padded, cropped or wrong: the code around is judged by what comes of it
        self.report(Sighting(order, side, slot, "forward", observed, expected, layout, value.data))
        return layout, expected

    def _replacement(self, tensor: Any, value: Value, layout: Layout, expected: Array | None) -> Any:
        """A tensor of its own with the recorded values: ``expected``, where they were read already.

        What a block gives is not the tensor that its last layer gave: so a wrong gradient is seen where it
        comes from. What is overwritten in place must not be an alias.
        """
        values = layout.apply(self.supply(value.data)) if expected is None else expected
        return self.backend.substitute(tensor, values)

    def give(self, tensor: Any, data: TensorData, layout: Layout) -> None:
        """Note that a tensor holds recorded values: a call that takes it is given nothing else."""
        self._given[id(tensor)] = (tensor, self.backend.version(tensor), data, layout)
        while len(self._given) > RECENT:
            self._given.popitem(last=False)

    def _layout_if_given(self, tensor: Any, data: TensorData) -> Layout | None:
        given = self._given.get(id(tensor))
        if given is None or given[2] is not data or given[1] != self.backend.version(tensor):
            return None
        self._given.move_to_end(id(tensor))
        return given[3]

    def _arrived(self, order: int, side: InputOrOutput, slot: str, gradient: Any) -> Any:
        awaited = self._waiting.pop((order, side, slot), None)
        if awaited is None or self._is_hidden((order, side, slot), awaited):
            return None
        recorded, layout = awaited.value.gradient, awaited.layout
        observed = self.backend.to_array(gradient, copy=False)
        expected = None if recorded is None else layout.apply(self.supply(recorded))
        equal = self.report(Sighting(order, side, slot, "backward", observed, expected, layout, recorded))
        if expected is None:
            return None
        if _equal(observed, expected) if equal is None else equal:  # given by the next call's input, mostly
            return None
        return self.backend.cast(self.backend.from_array(expected), self.backend.dtype(gradient))


def _equal(a: Array, b: Array) -> bool:
    """The same bytes; the first few numbers nearly always tell."""
    if a.dtype != b.dtype or not (a.flags.c_contiguous and b.flags.c_contiguous):
        return False
    first, second = a.reshape(-1), b.reshape(-1)
    return first[:64].tobytes() == second[:64].tobytes() and np.array_equal(first, second)
