"""Run a model under watch and keep what every call took, gave and got back as gradients.

Each call's inputs pass through an alias, so that the gradient seen there is what this very
call contributes, not the sum over all uses of the tensor. Equal tensors are kept once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from parfocal.backends.checks import dtype_name
from parfocal.backends.keeping import KeptAttributes
from parfocal.backends.protocol import Array, Backend, Call
from parfocal.capture.nested_values import flatten, flatten_call, replace, replace_call
from parfocal.capture.overwrites import Overwrites, Sight
from parfocal.capture.sites import Sites
from parfocal.judge.moments import Fingerprint, fingerprint
from parfocal.judge.reading import address_of
from parfocal.replay.ledger import Ledger
from parfocal.replay.stateful_arguments import copies_of
from parfocal.replay.trace import Drop, Node, TensorData, Trace, Value, unmarked

FLOATING = frozenset({"float16", "bfloat16", "float32", "float64", "complex64", "complex128"})
RECENT = 8  # tensors held on to: an output is nearly always the next call's input

Drive = Callable[[Any], float | None]


@dataclass(slots=True)
class _Given:
    """What a call was given in place of one of its tensors."""

    tensor: Any  # the caller's own
    stand_in: Any  # what the call got: the same tensor where nothing is awaited of it
    version: int  # of the stand-in, when the call began
    sight: Sight | None = None  # of the hook on the stand-in
    alias: bool = True  # the stand-in is an alias


class Observer:
    """Watches one run.

    ``ledger`` None keeps fingerprints only. ``gradients``: whether those of the parameters are
    kept; those at the calls are kept together with the tensors, in the ledger. ``known``: what was noted of
    its modules before.
    """

    def __init__(
        self,
        backend: Backend,
        model: Any,
        ledger: Ledger | None,
        *,
        gradients: bool,
        known: KeptAttributes | None = None,
    ) -> None:
        self.backend = backend
        self.model = model
        self.ledger = ledger
        self.gradients = gradients
        self.trace = Trace()
        self.kept = KeptAttributes(backend, model, known)  # each module as its first call found it
        self.parameter_gradients: dict[str, Array] = {}
        self._sites = Sites((backend.name,))
        self._occurrences: dict[str, int] = {}
        self._settings: dict[str, tuple[str, dict[str, Any], bool]] = {}
        self._recent: OrderedDict[int, tuple[Any, int, TensorData]] = OrderedDict()
        self._arrivals: OrderedDict[Any, tuple[Any, int, TensorData]] = OrderedDict()  # gradients, by memory
        self._through: list[tuple[Value, Value]] = []  # handed through: as input and as output
        self._held: list[tuple[Value, Any, int]] = []  # gradients kept as they are, and their versions
        self._overwrites = Overwrites(backend)
        self._sights: list[tuple[Value, Sight]] = []  # of hooks on what code may change after the call
        self._complete = False  # the forward pass: gradients that the model itself asks for come before

    def run(self, args: Sequence[Any], kwargs: dict[str, Any], drive: Drive) -> Trace:
        """Call the model; ``drive`` gets its output, runs backward and returns the loss if there is one."""
        self.backend.clear_gradients(self.model)
        try:
            with self.backend.watch(self.model, self._enter, self._exit):
                output = self.model(*args, **kwargs)
                self.trace.outputs = self._values(flatten(output).leaves)
                self._complete = True
                self.trace.loss = drive(output)
            self._drop_changed()
            for value, sight in self._sights:
                if sight.lost:
                    value.hide()
            for given, made in self._through:  # handed through: one tensor, one gradient
                if made.hidden:
                    given.hide()
                    continue
                given.gradient = made.gradient = given.gradient or made.gradient
                given.differentiable = made.differentiable = given.gradient is not None
            if self.gradients:
                self.parameter_gradients = self._parameter_gradients()
        finally:
            self._recent.clear()
            self._arrivals.clear()
            self._held.clear()
            self._sights.clear()
            self._overwrites.clear()
            self.backend.clear_gradients(self.model)
        return self.trace

    def dropped(self, rate: float) -> None:
        """Code of the innermost call that has not ended asks a function to drop something."""
        nodes = self.trace.nodes
        inner = next((node.order for node in reversed(nodes) if node.finished < 0), None)
        if inner is not None:
            self.trace.drops.append(Drop(inner, len(nodes), rate, *self._sites.find()))

    def _enter(self, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        node = self._begin(call)
        aliases: dict[str, Any] = {}
        leaves = flatten_call(call.args, call.kwargs).leaves
        tensors = {slot: leaf for slot, leaf in leaves.items() if self.backend.is_tensor(leaf)}
        kept: dict[str, Any] = dict.fromkeys(tensors)
        if len(tensors) < len(leaves):
            kept |= copies_of(leaves, self.backend.is_tensor)
        node.arguments = replace_call(call.args, call.kwargs, kept)
        first: dict[int, str] = {}  # a tensor that is taken twice stays one, with one gradient
        for slot, leaf in tensors.items():
            known = first.setdefault(id(leaf), slot)
            if known != slot:
                node.inputs[slot] = node.inputs[known]
                if known in aliases:
                    aliases[slot] = aliases[known]
                continue
            value = node.inputs[slot] = Value(self._note(leaf), differentiable=self._takes_gradient(leaf))
            if not value.differentiable:
                call.note[slot] = _Given(leaf, leaf, self.backend.version(leaf))
                continue
            stand_in = aliases[slot] = self._stand_in(leaf, in_place=node.in_place)
            version = self._remember(stand_in, value.data)
            sight = self._overwrites.sight(self.backend.changes_behind_hooks(stand_in))
            call.note[slot] = _Given(leaf, stand_in, version, sight, alias=not node.in_place)
            self.backend.watch_gradient(stand_in, partial(self._arrived, value))
        return replace_call(call.args, call.kwargs, aliases) if aliases else None

    def _stand_in(self, tensor: Any, *, in_place: bool) -> Any:
        """What a call is given for a tensor: the gradient there is what this very call sends back.

        What overwrites its input gets no alias: torch loses sight of an alias that is changed in place.
        """
        if not in_place:
            return self.backend.alias(tensor)
        return self.backend.substitute(tensor, self.backend.to_array(tensor, copy=False), copy=False)

    def _exit(self, call: Call, output: Any) -> Any:
        node = self.trace.nodes[call.order]
        leaves = flatten(output).leaves
        through: dict[str, Value] = {}  # handed through as they are: one tensor, one gradient
        changed: dict[str, _Given] = {}  # input slots that the call changed in place
        handed_on: dict[str, Any] = {}  # as seen by the code after this call alone
        for slot, given in call.note.items():
            places = [place for place, leaf in leaves.items() if leaf is given.stand_in]
            if self.backend.version(given.stand_in) != given.version:
                node.in_place = True
                if given.sight is not None:
                    changed[slot] = given
                    handed_on |= dict.fromkeys(places, self.backend.alias(given.stand_in))
            elif given.sight is not None and places:
                alias = given.stand_in if given.alias else self.backend.alias(given.tensor)
                handed_on |= dict.fromkeys(places, alias)
                through |= dict.fromkeys(places, node.inputs[slot])
        # what a layer gives besides may be made of one another: a cell's state of its memory
        several = len(leaves) > 1 and sum(map(self.backend.is_tensor, leaves.values())) > 1
        if several or not node.is_leaf:
            handed_on |= self._passed_on(leaves, handed_on)
        before = len(self._sights)
        node.outputs = self._values(
            {**leaves, **handed_on}, {place: value.data for place, value in through.items()}
        )
        if any(not sight.stays for _, sight in self._sights[before:]):
            # Of a view of its input: when that is changed, the gradient of the input is hidden too.
            self._sights += [
                (node.inputs[slot], given.sight)
                for slot, given in call.note.items()
                if given.sight is not None
            ]
        self._through += [(value, node.outputs[place]) for place, value in through.items()]
        overwritten = self._overwrite(node, changed, leaves, handed_on)
        node.finished = len(self.trace.nodes)
        exchanged = {**handed_on, **overwritten}
        return replace(output, exchanged) if exchanged else None

    def _overwrite(
        self, node: Node, changed: Mapping[str, _Given], leaves: Mapping[str, Any], new: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The caller's own tensors take on what the call made of them; which of them it gives back where."""
        found: dict[str, Any] = {}
        for slot, given in changed.items():
            assert given.sight is not None
            if not given.sight.stays:  # an alias that torch keeps in step with the tensor
                if given.sight.lost:
                    node.inputs[slot].hide()
                continue
            places = [place for place, leaf in leaves.items() if leaf is given.stand_in]
            self._overwrites.assign(given.tensor, new[places[0]] if places else given.stand_in)
            self._recent.pop(id(given.tensor), None)
            if places:
                self._remember(given.tensor, node.outputs[places[0]].data)
            found |= dict.fromkeys(places, given.tensor)
        return found

    def _passed_on(self, leaves: dict[str, Any], known: Collection[str]) -> dict[str, Any]:
        """What a call gives, apart from what was made inside: only the gradient from outside counts.

        Not as an alias: torch loses sight of an alias that the caller changes in place.
        """
        found: dict[str, Any] = {}
        made: dict[int, Any] = {}  # what is given twice stays one tensor
        for slot, leaf in leaves.items():
            if slot in known or not self.backend.is_tensor(leaf) or not self._takes_gradient(leaf):
                continue
            if id(leaf) not in made:
                data = self._note(leaf)
                values = self.backend.to_array(leaf, copy=False)
                made[id(leaf)] = self.backend.substitute(leaf, values, copy=False)
                self._remember(made[id(leaf)], data)
            found[slot] = made[id(leaf)]
        return found

    def _begin(self, call: Call) -> Node:
        self.kept.entered(call)
        kind, settings, framework_layer = self._facts(call)
        occurrence = self._occurrences.get(call.path, 0)
        self._occurrences[call.path] = occurrence + 1
        node = Node(
            order=call.order,
            parent=call.parent,
            depth=call.depth,
            path=call.path,
            kind=kind,
            class_name=type(call.module).__name__,
            framework_layer=framework_layer,
            occurrence=occurrence,
            settings=settings,
            training=bool(call.module.training),
            in_place=self.backend.works_in_place(call.module),
            file=(site := self._sites.find())[0],
            line=site[1],
        )
        assert call.order == len(self.trace.nodes)
        self.trace.nodes.append(node)
        if call.parent is not None:
            self.trace.nodes[call.parent].children.append(call.order)
        return node

    def _facts(self, call: Call) -> tuple[str, dict[str, Any], bool]:
        if call.path not in self._settings:
            backend, module = self.backend, call.module
            self._settings[call.path] = (
                backend.kind(module),
                backend.settings(module),
                backend.is_framework_layer(module),
            )
        return self._settings[call.path]

    def _values(
        self, leaves: dict[str, Any], known: Mapping[str, TensorData] = MappingProxyType({})
    ) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for slot, leaf in leaves.items():
            if self.backend.is_tensor(leaf):
                data = known.get(slot) or self._note(leaf)
                values[slot] = Value(data, differentiable=self._takes_gradient(leaf))
                if values[slot].differentiable:
                    sight = self._overwrites.sight(self.backend.changes_behind_hooks(leaf))
                    self._sights.append((values[slot], sight))
                    self.backend.watch_gradient(leaf, partial(self._arrived, values[slot]))
        return values

    def _takes_gradient(self, tensor: Any) -> bool:
        return self.gradients and self.ledger is not None and self.backend.requires_grad(tensor)

    def _arrived(self, value: Value, gradient: Any) -> None:
        assert self.ledger is not None
        if not self._complete:
            return
        value.gradient = self._note_gradient(gradient, self.ledger)
        if self.backend.leaves_gradients_alone and self.ledger.has_in_memory(value.gradient.stored):
            self._held.append((value, gradient, self.backend.version(gradient)))

    def _drop_changed(self) -> None:
        """A gradient that was changed in place after it was seen is not what arrived."""
        for value, gradient, version in self._held:
            if self.backend.version(gradient) != version:
                value.hide()

    def _note_gradient(self, gradient: Any, ledger: Ledger) -> TensorData:
        """What a call's output gets is nearly always what the next call's input got, on the same memory."""
        array, version = self.backend.to_array(gradient, copy=False), self.backend.version(gradient)
        alone = self.backend.leaves_gradients_alone
        place = (address_of(array), array.shape, array.strides, array.dtype)
        known = self._arrivals.get(place)
        if alone and known is not None and known[1] == version:
            return known[2]
        stored = ledger.put(array, given=alone)
        data = TensorData(array.shape, dtype_name(array.dtype), unmarked(array.size), stored)
        self._arrivals[place] = (gradient, version, data)
        while len(self._arrivals) > RECENT:
            self._arrivals.popitem(last=False)
        return data

    def _note(self, tensor: Any) -> TensorData:
        """The tensor's values, kept once for as long as it stays the same."""
        version = self.backend.version(tensor)
        known = self._recent.get(id(tensor))
        if known is not None and known[1] == version:
            self._recent.move_to_end(id(tensor))
            return known[2]
        array = self.backend.to_array(tensor, copy=False)
        stored = None if self.ledger is None else self.ledger.put(array)
        data = TensorData(array.shape, dtype_name(array.dtype), self._mark(array), stored)
        self._remember(tensor, data, version)
        return data

    def _mark(self, array: Array) -> Fingerprint:
        return fingerprint(array)

    def _remember(self, tensor: Any, data: TensorData, version: int | None = None) -> int:
        """Its version, which is read unless it is known."""
        version = self.backend.version(tensor) if version is None else version
        self._recent[id(tensor)] = (tensor, version, data)
        while len(self._recent) > RECENT:
            self._recent.popitem(last=False)
        return version

    def _parameter_gradients(self) -> dict[str, Array]:
        gradients = {
            entry.path: self.backend.gradient(entry.value, copy=False)
            for entry in self.backend.state(self.model)
            if entry.role == "parameter" and entry.trainable and entry.tied_to is None
        }
        return {path: array for path, array in gradients.items() if array is not None}
