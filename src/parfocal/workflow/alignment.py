"""One alignment, stage by stage: watch, pair, follow, judge.

The reference runs once under watch and its tensors are put aside. The port runs once by itself,
which gives the values to pair calls by and the results to judge end to end, and once led along
the reference's values, which gives every call's own error. Both models are left as they were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Mode
from parfocal.capture.determinism import no_dropout
from parfocal.capture.tree import flatten
from parfocal.errors import InputError
from parfocal.judge.floors import EPSILON, Size, difference
from parfocal.judge.sketch import fingerprint
from parfocal.judge.tolerance import Tolerance
from parfocal.matching.pairing import Pairing, pair_calls
from parfocal.matching.values import tie_slots
from parfocal.replay.follow import Follower, Side, Tie
from parfocal.replay.layouts import Layout, fit
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import Drive, Observer
from parfocal.replay.precise import Precise, calls_of_owner
from parfocal.replay.repeat import Repeater, Script, own_script
from parfocal.replay.shake import Shaker
from parfocal.replay.trace import Data, Node, Trace, Value
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan
from parfocal.workflow.measures import LIMIT, Collector, Measure, judge_arrays, refine

Loss = Callable[[Any], Any]
Arrays = dict[str, Array]
_WEIGHTING_SEED = 20240302
# How much harder than measured the reference is shaken. Where a ReLU or a maximum flips, the result
# jumps, and whether one flips is chance: several must have flipped before their size is known.
SHAKE = 8.0


@dataclass(slots=True)
class Player:
    """One of the two models, what it is called on, and what came out of its natural run."""

    backend: Backend
    model: Any
    inputs: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]]  # fresh ones for every run
    loss: Loss | None
    outputs: Arrays = field(default_factory=dict)
    gradients: Arrays = field(default_factory=dict)  # by parameter path
    buffers_before: Arrays = field(default_factory=dict)
    buffers: Arrays = field(default_factory=dict)  # after the run; of the port, after the followed one
    trace: Trace = field(default_factory=Trace)


@dataclass(frozen=True, slots=True)
class End:
    """A result of the whole model: an output, the loss, or a parameter's gradient."""

    phase: str  # "forward", "loss" or "gradient"
    reference: str
    port: str
    measure: Measure


@dataclass(slots=True)
class Observation:
    """Everything that was measured, before it is put into words."""

    pairing: Pairing
    measures: list[Measure]  # of paired calls, each its own error
    parameters: list[End]  # gradients of parameters, each its own error
    ends: list[End]
    imprecise: list[str]  # what could not be repeated in float64


@contextmanager
def left_as_it_was(player: Player, mode: Mode) -> Iterator[None]:
    """Mode, dropout, buffers and random state are restored on leaving."""
    backend, model = player.backend, player.model
    buffers = [(e.value, backend.to_array(e.value)) for e in backend.state(model) if e.role == "buffer"]
    state = backend.rng_state()
    with ExitStack() as stack:
        stack.enter_context(backend.mode(model, mode))
        if mode != "eval":  # in eval a dropout that does something is a mistake to be found
            stack.enter_context(no_dropout(model))
        stack.enter_context(backend.recurrence_in_training(model))
        try:
            yield
        finally:
            for tensor, array in buffers:
                backend.write(tensor, array)
            backend.set_rng_state(state)


class Alignment:
    """Runs the stages on a pair whose weights correspond as ``plan`` says."""

    def __init__(
        self,
        reference: Player,
        port: Player,
        plan: Plan,
        anchors: Mapping[str, str],
        *,
        backward: bool,
        mode: Mode,
        tolerance: Tolerance | None,
        budget: int,
    ) -> None:
        self.reference = reference
        self.port = port
        self.plan = plan
        self.anchors = anchors
        self.backward = backward
        self.mode = mode
        self.tolerance = tolerance
        self.budget = budget

    def run(self) -> Observation:
        with (
            left_as_it_was(self.reference, self.mode),
            Ledger(self.budget) as ledger,
        ):
            self._observe(self.reference, ledger)
            with left_as_it_was(self.port, self.mode):
                self._observe(self.port, None)
            pairing = pair_calls(self.reference.trace, self.port.trace, self.anchors)
            with left_as_it_was(self.port, self.mode):
                collector, gradients, ties = self._follow(pairing, ledger)
                precise = self._precise(Script(ties, collector.layouts), ledger)
                measures = refine(collector.measures, precise)
                parameters = self._judge_parameters(gradients, precise)
            ends = self._judge_ends(measures)
        return Observation(pairing, measures, parameters, ends, precise.problems)

    def _observe(self, player: Player, ledger: Ledger | None) -> None:
        """One natural run: the trace, and what the model gives in full."""
        player.buffers_before = _buffers(player)
        observer = Observer(player.backend, player.model, ledger, gradients=self.backward)
        player.trace = observer.run(*player.inputs(), self._driver(player))
        player.gradients = observer.parameter_gradients
        player.buffers = _buffers(player)

    def _driver(self, player: Player) -> Drive:
        """What to do with the output: note it, and send gradients back."""

        def drive(output: Any) -> float | None:
            backend = player.backend
            leaves = {slot: leaf for slot, leaf in flatten(output).leaves.items() if backend.is_tensor(leaf)}
            player.outputs = {slot: backend.to_array(leaf) for slot, leaf in leaves.items()}
            if player.loss is not None:
                loss = player.loss(output)
                if self.backward:
                    backend.backward([loss], [None])
                return float(backend.to_array(loss).reshape(-1)[0])
            if self.backward:
                self._send_back(player, leaves)
            return None

        return drive

    def _send_back(self, player: Player, leaves: Mapping[str, Any]) -> None:
        """A seeded random weighting of all outputs: its gradient vanishes nowhere by construction."""
        backend = player.backend
        seeds = self._seeds(player)
        chosen = [slot for slot, leaf in leaves.items() if slot in seeds and backend.requires_grad(leaf)]
        if not chosen:
            raise InputError(
                "no output of the model depends on anything trainable: there is nothing to go backward through",
                hint="pass backward=False, or check that the parameters require gradients",
            )
        gradients = [
            backend.cast(backend.from_array(seeds[slot]), backend.dtype(leaves[slot])) for slot in chosen
        ]
        backend.backward([leaves[slot] for slot in chosen], gradients)

    def _seeds(self, player: Player) -> Arrays:
        """The weighting of every floating output; the port's are the reference's, in its own layout."""
        own = {slot: array for slot, array in self.reference.outputs.items() if array.dtype.name in EPSILON}
        generator = np.random.Generator(np.random.PCG64(_WEIGHTING_SEED))
        seeds = {
            slot: generator.standard_normal(array.shape).astype(np.float32) for slot, array in own.items()
        }
        if player is self.reference:
            return seeds
        return {
            slot: layout.apply(seeds[name])
            for slot, (name, layout) in self._tied_outputs().items()
            if name in seeds
        }

    def _tied_outputs(self) -> dict[str, tuple[str, Layout]]:
        """Output slot of the port -> that of the reference, and how it lies."""
        theirs = {slot: _value(array) for slot, array in self.port.outputs.items()}
        ours = {slot: _value(array) for slot, array in self.reference.outputs.items()}
        names = {id(value): slot for slot, value in ours.items()}
        tied = {}
        for slot, value in tie_slots(theirs, ours).items():
            name = names[id(value)]
            layout = fit(self.reference.outputs[name], self.port.outputs[slot])
            if layout is not None:
                tied[slot] = (name, layout)
        return tied

    def _precise(self, script: Script, ledger: Ledger) -> Precise:
        ours, theirs = self.reference, self.port
        return Precise(
            Repeater(ours.backend, ours.model, ours.trace, own_script(ours.trace)),
            Repeater(theirs.backend, theirs.model, theirs.trace, script),
            ours.gradients,
            ledger,
        )

    def _follow(self, pairing: Pairing, ledger: Ledger) -> tuple[Collector, Arrays, dict[int, Tie]]:
        """The port again, led along the reference's values; its measures and its parameters' gradients."""
        script, partners = _script(pairing, self.reference.trace, self.port.trace)
        collector = Collector(partners, self.tolerance)

        def supply(data: Data) -> Array:
            assert data.stored is not None
            return ledger.get(data.stored)

        port = self.port
        kept = port.outputs
        follower = Follower(port.backend, script, supply, collector, gradients=self.backward)
        follower.run(port.model, *port.inputs(), self._driver(port))
        port.outputs = kept
        port.buffers = _buffers(port)
        gradients = _parameter_gradients(port) if self.backward else {}
        port.backend.clear_gradients(port.model)
        return collector, gradients, script

    def _judge_parameters(self, gradients: Arrays, precise: Precise) -> list[End]:
        """The gradients of the followed port: each layer's own, from exact inputs and output gradients."""
        ends = []
        for entry in self.plan.entries:
            measure = self._compare_gradient(entry, gradients)
            if measure is not None:
                if self.tolerance is None:
                    measure = self._refined_gradient(entry, measure, precise)
                ends.append(End("gradient", entry.source, entry.target, measure))
        return ends

    def _refined_gradient(self, entry: Entry, measure: Measure, precise: Precise) -> Measure:
        if not LIMIT < measure.score < float("inf"):
            return measure
        calls = calls_of_owner(self.reference.trace, entry.source)
        port_calls = calls_of_owner(self.port.trace, entry.target)
        for question in (precise.moved_parameter, precise.exact_parameter):
            measure = _with_floor(measure, question(calls, entry.source))
            if measure.score <= LIMIT:
                return measure
        seen = partial(views.apply, entry.source_view), partial(views.apply, entry.target_view)
        if precise.vanishes_parameter(calls, entry.source, port_calls, entry.target, seen, measure.error):
            return _with_floor(measure, measure.error)
        return measure

    def _compare_gradient(self, entry: Entry, gradients: Arrays) -> Measure | None:
        ours, theirs = self.reference.gradients.get(entry.source), gradients.get(entry.target)
        if ours is None or theirs is None:
            return None  # said by name when only one of them is absent, in verdicts.py
        expected, observed = views.apply(entry.source_view, ours), views.apply(entry.target_view, theirs)
        return _end_measure(observed, expected, self.tolerance)

    def _judge_ends(self, measures: list[Measure]) -> list[End]:
        """Outputs, loss and gradients of the natural runs, against what rounding does to the whole model."""
        ends = list(self._raw_ends())
        if self.tolerance is not None or all(end.measure.score <= LIMIT for end in ends):
            return ends
        outputs, gradients, loss = self._shaken(measures)
        floors: dict[tuple[str, str], Size] = {}
        for slot, array in outputs.items():
            floors["forward", slot] = difference(array, self.reference.outputs[slot])
        for path, array in gradients.items():
            if path in self.reference.gradients:
                floors["gradient", path] = difference(array, self.reference.gradients[path])
        if loss is not None and self.reference.trace.loss is not None:
            apart = abs(loss - self.reference.trace.loss)
            floors["loss", "loss"] = Size(apart, apart)
        return [_lifted(end, floors.get((end.phase, end.reference))) for end in ends]

    def _raw_ends(self) -> Iterator[End]:
        for slot, (name, layout) in self._tied_outputs().items():
            expected = layout.apply(self.reference.outputs[name])
            yield End("forward", name, slot, _end_measure(self.port.outputs[slot], expected, self.tolerance))
        ours, theirs = self.reference.trace.loss, self.port.trace.loss
        if ours is not None and theirs is not None:
            yield End("loss", "loss", "loss", _end_measure(_scalar(theirs), _scalar(ours), self.tolerance))
        for entry in self.plan.entries:
            measure = self._compare_gradient(entry, self.port.gradients)
            if measure is not None:
                yield End("gradient", entry.source, entry.target, measure)

    def _shaken(self, measures: list[Measure]) -> tuple[Arrays, Arrays, float | None]:
        """The reference's results when every layer is off by what a correct layer may be off."""
        player = self.reference
        kept = player.outputs
        amounts = _noise_amounts(player.trace.nodes, measures)
        shaker = Shaker(player.backend, player.trace, amounts)
        player.backend.clear_gradients(player.model)
        drive = self._driver(player)
        with player.backend.watch(player.model, None, shaker.on_exit):
            args, kwargs = player.inputs()
            loss = drive(player.model(*args, **kwargs))
        outputs, player.outputs = player.outputs, kept
        gradients = _parameter_gradients(player) if self.backward else {}
        player.backend.clear_gradients(player.model)
        return outputs, gradients, loss


def _scalar(number: float) -> Array:
    return np.array([number], np.float32)


def _value(array: Array) -> Value:
    return Value(Data(tuple(array.shape), array.dtype.name, fingerprint(array), None))


def _script(
    pairing: Pairing, reference: Trace, port: Trace
) -> tuple[dict[int, Tie], dict[tuple[int, Side, str], tuple[int, str]]]:
    """What to lead the port along, and whose tensor each of its own then is."""
    script: dict[int, Tie] = {}
    partners: dict[tuple[int, Side, str], tuple[int, str]] = {}
    for pair in pairing.pairs:
        own, other = port.nodes[pair.port], reference.nodes[pair.reference]
        inputs = tie_slots(own.inputs, other.inputs) if pair.takes else {}
        given = {} if pair.gives is None else reference.nodes[pair.gives].outputs
        outputs = tie_slots(own.outputs, given)
        script[pair.port] = Tie(inputs, outputs, own.in_place)
        _note_partners(partners, pair.port, "input", inputs, pair.reference, other.inputs)
        if pair.gives is not None:
            _note_partners(partners, pair.port, "output", outputs, pair.gives, given)
    return script, partners


def _note_partners(
    partners: dict[tuple[int, Side, str], tuple[int, str]],
    order: int,
    side: Side,
    tied: Mapping[str, Value],
    reference: int,
    values: Mapping[str, Value],
) -> None:
    names = {id(value): slot for slot, value in values.items()}
    for slot, value in tied.items():
        partners[order, side, slot] = (reference, names[id(value)])


def _buffers(player: Player) -> Arrays:
    backend = player.backend
    return {e.path: backend.to_array(e.value) for e in backend.state(player.model) if e.role == "buffer"}


def _parameter_gradients(player: Player) -> Arrays:
    found = {}
    for entry in player.backend.state(player.model):
        if entry.role == "parameter" and entry.tied_to is None:
            array = player.backend.gradient(entry.value)
            if array is not None:
                found[entry.path] = array
    return found


def _end_measure(observed: Array, expected: Array, tolerance: Tolerance | None) -> Measure:
    comparison, error, floor = judge_arrays(observed, expected, tolerance)
    return Measure(-1, -1, "output", "", "", "forward", comparison, error, floor)


def _with_floor(measure: Measure, floor: Size) -> Measure:
    return replace(measure, floor=measure.floor | floor)


def _lifted(end: End, floor: Size | None) -> End:
    return end if floor is None else End(end.phase, end.reference, end.port, _with_floor(end.measure, floor))


def _noise_amounts(nodes: list[Node], measures: list[Measure]) -> dict[int, float]:
    """Per layer: what was measured there, within the noise, but at least one unit in the last place."""
    measured = {
        m.reference: max(m.comparison.rel_l2, 0.0)
        for m in measures
        if m.comparison is not None and m.own and m.direction == "forward" and m.score <= LIMIT
    }
    amounts = {}
    for node in nodes:
        if node.is_leaf and node.outputs:
            epsilon = max(EPSILON.get(value.data.dtype, 0.0) for value in node.outputs.values())
            amounts[node.order] = SHAKE * max(epsilon, measured.get(node.order, 0.0))
    return amounts
