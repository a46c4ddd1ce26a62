"""The two models of a comparison: what each is called on, how it is driven, and what came out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Mode
from parfocal.brief import brief
from parfocal.capture.determinism import no_dropout
from parfocal.capture.nested_values import flatten, flatten_call, replace_call
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.layouts import Layout, fit
from parfocal.judge.moments import fingerprint
from parfocal.judge.verdict import side_name
from parfocal.matching.values import tie_slots
from parfocal.phrases import phrase
from parfocal.replay.observe import FLOATING, Drive
from parfocal.replay.trace import TensorData, Trace, Value
from parfocal.replay.user_errors import telling

Loss = Callable[[Any], Any]
Arrays = dict[str, Array]
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
_WEIGHTING_SEED = 20240302
NAMED = 8  # of many outputs


@dataclass(slots=True)
class ModelResults:
    """What one run of a whole model gave."""

    outputs: Arrays = field(default_factory=dict)  # by slot
    loss: float | None = None
    gradients: Arrays = field(default_factory=dict)  # by parameter path
    buffers: Arrays = field(default_factory=dict)  # after the run
    hidden: tuple[int, ...] = ()  # calls with a gradient that could not be observed


@dataclass(slots=True)
class ModelSide:
    """One of the two models. ``natural`` and ``trace`` are those of its run by itself."""

    side: str  # "reference" or "port"
    backend: Backend
    model: Any
    inputs: Callable[[], Arguments]  # fresh ones for every run
    loss: Loss | None
    natural: ModelResults = field(default_factory=ModelResults)
    trace: Trace = field(default_factory=Trace)
    buffers_before: Arrays = field(default_factory=dict)

    def telling(self, what: str, hint: str | Callable[[], str] = "") -> AbstractContextManager[None]:
        """What the user's code raises meanwhile is told with the side and the module it happened in."""
        return telling(self.side, what, partial(self.backend.modules, self.model), hint)

    def send_back(self, outputs: list[Any], gradients: list[Any]) -> None:
        with self.telling(
            phrase("the backward pass"), phrase("backward=False compares the forward pass alone")
        ):
            self.backend.backward(outputs, gradients)

    def twin(self, dtype: str) -> ModelSide:
        """A copy of the model in another dtype, with inputs to match."""
        return replace(
            self,
            model=self.backend.copy_as(self.model, dtype),
            inputs=lambda: _cast_inputs(self.backend, self.inputs(), dtype),
            natural=ModelResults(),
            trace=Trace(),
        )

    def buffers(self) -> Arrays:
        return {path: self.backend.to_array(value) for path, value in self.backend.buffers(self.model)}

    def trainable(self) -> set[str]:
        """Paths of the parameters that may have a gradient."""
        entries = self.backend.state(self.model)
        return {entry.path for entry in entries if entry.role == "parameter" and entry.trainable}

    def gradients(self) -> Arrays:
        """Of the parameters that have one, by path."""
        found = {
            entry.path: self.backend.gradient(entry.value, copy=False)
            for entry in self.backend.state(self.model)
            if entry.role == "parameter" and entry.tied_to is None
        }
        return {path: array for path, array in found.items() if array is not None}


def _cast_inputs(backend: Backend, arguments: Arguments, dtype: str) -> Arguments:
    args, kwargs = arguments
    leaves = flatten_call(args, kwargs).leaves
    floating = {
        slot: backend.cast(leaf, dtype)
        for slot, leaf in leaves.items()
        if backend.is_tensor(leaf) and backend.dtype(leaf) in FLOATING
    }
    return replace_call(args, kwargs, floating)


@contextmanager
def left_as_it_was(model_side: ModelSide, mode: Mode) -> Iterator[Callable[[], None]]:
    """Mode, dropout, buffers, gradients and random state are restored on leaving.

    Gives a function that undoes in between what a run did, for the next one to begin as the first did.
    """
    backend, model = model_side.backend, model_side.model
    buffers = model_side.buffers()
    state = backend.rng_state()

    def restore() -> None:
        # looked up again: a model may put a new tensor in a buffer's place
        for path, tensor in backend.buffers(model) if buffers else ():
            if path in buffers:
                backend.write(tensor, buffers[path])
        backend.set_rng_state(state)

    with ExitStack() as stack:
        stack.enter_context(backend.gradients_kept(model))
        stack.enter_context(backend.mode(model, mode))
        if mode != "eval":  # in eval a dropout that does something is a mistake to be found
            stack.enter_context(no_dropout(model))
        stack.enter_context(backend.recurrence_in_training(model))
        flags = [(module, module.training) for module in backend.modules(model).values()]

        def start_over() -> None:
            restore()
            backend.clear_gradients(model)
            for module, training in flags:
                if module.training != training:
                    module.training = training

        try:
            yield start_over
        finally:
            restore()


class Driving:
    """What is done with a model's output: it is noted, and gradients are sent back.

    Without a loss of the user's, every output is weighted at random: the gradient of such a sum
    vanishes nowhere by construction. The port's weighting is the reference's, in its own layout.
    """

    def __init__(self, *, backward: bool) -> None:
        self.backward = backward
        self.reference_outputs: Arrays | None = None  # set by the first run

    def driver(self, model_side: ModelSide, results: ModelResults) -> Drive:
        """For one run; ``results`` gets the outputs and the loss."""

        def drive(output: Any) -> float | None:
            backend = model_side.backend
            leaves = {slot: leaf for slot, leaf in flatten(output).leaves.items() if backend.is_tensor(leaf)}
            results.outputs = {slot: backend.to_array(leaf) for slot, leaf in leaves.items()}
            _check_comparable(model_side, output, results.outputs)
            if self.reference_outputs is None:
                self.reference_outputs = results.outputs
            if model_side.loss is not None:
                results.loss = self._apply_loss(model_side, output)
            elif self.backward:
                self._send_back(model_side, leaves, results.outputs)
            return results.loss

        return drive

    def _apply_loss(self, model_side: ModelSide, output: Any) -> float:
        assert model_side.loss is not None
        backend = model_side.backend
        with model_side.telling(
            phrase("the loss"), phrase("loss=(reference_loss, port_loss) gives each side its own")
        ):
            loss = model_side.loss(output)
        if not backend.is_tensor(loss) or int(np.prod(backend.shape(loss))) != 1:
            shape = (
                phrase("a tensor {shape}", shape=list(backend.shape(loss)))
                if backend.is_tensor(loss)
                else brief(loss)
            )
            raise InputError(
                phrase(
                    "the loss of the {side} gives {shape}, not one number of {name}",
                    side=side_name(model_side.side),
                    shape=shape,
                    name=backend.name,
                ),
                hint=phrase("reduce it, e.g. with .mean()"),
            )
        value = float(backend.to_array(loss).reshape(-1)[0])
        if model_side.side == "reference" and not math.isfinite(value):
            raise InputError(
                phrase("the loss of the reference is {value}", value=value),
                hint=phrase("a comparison with NaN or infinity says nothing"),
            )
        if self.backward:
            if not backend.requires_grad(loss):
                raise InputError(
                    phrase(
                        "the loss of the {side} depends on nothing trainable: there is nothing to go "
                        "backward through",
                        side=side_name(model_side.side),
                    ),
                    hint=_off(backend)
                    or phrase("see that nothing is detached on the way to it, or pass backward=False"),
                )
            model_side.send_back([loss], [None])
        return value

    def _send_back(self, model_side: ModelSide, leaves: Mapping[str, Any], outputs: Arrays) -> None:
        backend = model_side.backend
        seeds = self._seeds(outputs)
        chosen = [slot for slot, leaf in leaves.items() if slot in seeds and backend.requires_grad(leaf)]
        if not chosen:
            raise InputError(
                phrase(
                    "no output of the {side} depends on anything trainable: there is nothing to go backward "
                    "through",
                    side=side_name(model_side.side),
                ),
                hint=_off(backend)
                or phrase("pass backward=False, or check that the parameters require gradients"),
            )
        gradients = [
            backend.cast(backend.from_array(seeds[slot]), backend.dtype(leaves[slot])) for slot in chosen
        ]
        model_side.send_back([leaves[slot] for slot in chosen], gradients)

    def _seeds(self, outputs: Arrays) -> Arrays:
        assert self.reference_outputs is not None
        generator = np.random.Generator(np.random.PCG64(_WEIGHTING_SEED))
        seeds = {
            slot: generator.standard_normal(array.shape).astype(np.float32)
            for slot, array in self.reference_outputs.items()
            if array.dtype.name in FLOATING
        }
        if outputs is self.reference_outputs:
            return seeds
        tied = tied_outputs(self.reference_outputs, outputs)
        known = {name for name, _ in tied.values()}
        # what has another shape cannot be given the same gradient; that it has is said elsewhere
        left = [slot for slot, array in outputs.items() if slot not in tied and array.dtype.name in FLOATING]
        others = {
            slot: generator.standard_normal(outputs[slot].shape).astype(np.float32)
            for slot, _ in zip(left, (name for name in seeds if name not in known), strict=False)
        }
        return others | {
            slot: layout.apply(seeds[name]) for slot, (name, layout) in tied.items() if name in seeds
        }


def _off(backend: Backend) -> str:
    """What to do where the user has switched gradients off altogether."""
    return (
        ""
        if backend.grad_enabled()
        else phrase("gradients of {name} are off: align outside of no_grad", name=backend.name)
    )


def _check_comparable(model_side: ModelSide, output: Any, outputs: Arrays) -> None:
    if not outputs:
        raise EmptyComparisonError(
            phrase(
                "the {side} gives {in_words} with no {name} tensor in it",
                side=side_name(model_side.side),
                in_words=_in_words(output),
                name=model_side.backend.name,
            ),
            hint=phrase("return tensors, alone or in tuples, lists, dicts or dataclasses"),
        )
    if model_side.side == "reference" and not any(array.dtype.name in FLOATING for array in outputs.values()):
        raise EmptyComparisonError(
            phrase("the reference gives no floating-point output, so there is nothing to compare"),
            hint=phrase("return the tensor that matters from forward"),
        )


def check_outputs(reference: ModelSide, port: ModelSide) -> None:
    """An output that the port does not give cannot be compared, and must not be passed over."""
    ours, theirs = reference.natural.outputs, port.natural.outputs
    if len(theirs) < len(ours):
        known = {name for name, _ in tied_outputs(ours, theirs).values()}
        lacking = _some(slot for slot in ours if slot not in known)
        given = [
            _some(f"{slot} {list(array.shape)}" for slot, array in side.items()) for side in (ours, theirs)
        ]
        raise InputError(
            phrase(
                "the reference gives {count} outputs ({given}), the port only {port_count} ({port_given}): "
                "nothing there stands for {lacking}",
                count=len(ours),
                given=given[0],
                port_count=len(theirs),
                port_given=given[1],
                lacking=lacking,
            ),
            hint=phrase(
                "return {lacking} from the port too, or put a module around the reference whose forward "
                "returns only {some}",
                lacking=lacking,
                some=_some(sorted(known)) or phrase("what the port returns"),
            ),
        )


def _some(names: Iterable[str]) -> str:
    every = list(names)
    more = [phrase("{count} more", count=len(every) - NAMED)] if len(every) > NAMED else []
    return ", ".join([*every[:NAMED], *more])


def _in_words(output: Any) -> str:
    return "None" if output is None else phrase("a {qualname}", qualname=type(output).__qualname__)


def tied_outputs(reference: Arrays, port: Arrays) -> dict[str, tuple[str, Layout]]:
    """Output slot of the port -> that of the reference, and how it lies."""
    theirs = {slot: _value(array) for slot, array in port.items()}
    ours = {slot: _value(array) for slot, array in reference.items()}
    names = {id(value): slot for slot, value in ours.items()}
    tied = {}
    for slot, value in tie_slots(theirs, ours).items():
        name = names[id(value)]
        layout = fit(reference[name], port[slot], may_move=False)
        if layout is not None:
            tied[slot] = (name, layout)
    return tied


def _value(array: Array) -> Value:
    return Value(TensorData(tuple(array.shape), array.dtype.name, fingerprint(array), None))
