"""One side of a training: its model, loss, optimizer, schedule and clipping, driven phase by phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend, StateTensor
from parfocal.brief import brief
from parfocal.capture.nested_values import flatten, replace
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.inputs import arguments, convert
from parfocal.judge.floors import EPSILON
from parfocal.judge.verdict import SIDES, side_name
from parfocal.phrases import phrase
from parfocal.replay.user_errors import INPUTS_HINT, telling
from parfocal.workflow.training.batches import Batch

Arrays = dict[str, Array]
PLAIN = (bool, int, float, type(None))
UNCHANGED: AbstractContextManager[Any] = nullcontext()


@dataclass(slots=True)
class TrainingSide:
    """One of the two trainings."""

    words: str  # "reference" or "port"
    backend: Backend
    model: Any
    loss: Callable[[Any, Any], Any]
    optimizer: Any = None
    scheduler: Any = None
    clip: Callable[[Any], Any] | None = None
    accumulate: int = 1
    views: dict[str, tuple[int, Array]] = field(default_factory=dict)  # by path: address and values
    mutes: bool = False  # whether functions that drop let everything pass
    lower: Callable[[], AbstractContextManager[Any]] | None = None  # what mixed precision is entered by
    rounds: bool = False  # whether that only rounds, because the framework has none on the device
    present: Sequence[Batch] = ()  # batches of the present step
    entries: list[StateTensor] = field(default_factory=list)  # parameters and buffers, each once

    def telling(self, what: str, hint: str = "") -> AbstractContextManager[None]:
        return telling(self.words, what, partial(self.backend.modules, self.model), hint)

    def refresh(self) -> None:
        """Look the model's tensors up again: code may put new ones in their places."""
        self.entries = [entry for entry in self.backend.state(self.model) if entry.tied_to is None]
        self.views.clear()

    def tensors(self, role: str) -> dict[str, Any]:
        return {entry.path: entry.value for entry in self.entries if entry.role == role}

    def arrays(self, role: str, *, copy: bool = False) -> Arrays:
        """Without ``copy`` views of the tensors' own memory, where that is possible."""
        found = {entry.path: self._view(entry) for entry in self.entries if entry.role == role}
        return {path: array.copy() for path, array in found.items()} if copy else found

    def _view(self, entry: StateTensor) -> Array:
        """Looked up once for as long as the tensor stays where it is."""
        address = self.backend.address(entry.value)
        known = self.views.get(entry.path)
        if known is not None and address is not None and known[0] == address:
            return known[1]
        array = self.backend.to_array(entry.value, copy=False)
        if address is not None:
            self.views[entry.path] = address, array
        return array

    def gradients(self, *, copy: bool = False) -> Arrays:
        found = {
            path: self.backend.gradient(tensor, copy=copy)
            for path, tensor in self.tensors("parameter").items()
        }
        return {path: array for path, array in found.items() if array is not None}

    def forward(self, batch: Batch) -> Any:
        args, kwargs = arguments(batch.inputs, self.backend)
        muted = self.backend.no_functional_dropout() if self.mutes else nullcontext()
        with self.telling("the model", INPUTS_HINT), muted, self.lowered():
            return self.model(*args, **kwargs)

    def lowered(self) -> AbstractContextManager[Any]:
        """Mixed precision, where it is asked for."""
        return UNCHANGED if self.lower is None else self.lower()

    def outputs(self, output: Any) -> dict[str, Any]:
        """The floating tensors of an output by slot."""
        backend = self.backend
        found = {
            slot: leaf
            for slot, leaf in flatten(output).leaves.items()
            if backend.is_tensor(leaf) and backend.dtype(leaf) in EPSILON
        }
        if not found:
            raise EmptyComparisonError(
                phrase(
                    "the {words} gives {output} with no floating tensor of {name} in it",
                    words=side_name(self.words),
                    output=brief(output),
                    name=backend.name,
                ),
                hint=phrase("return tensors, alone or in tuples, lists, dicts or dataclasses"),
            )
        return found

    def led(self, output: Any, values: Mapping[str, Array]) -> tuple[Any, dict[str, Any]]:
        """The output with other values in it, through which gradients pass to the model all the same."""
        leaves = flatten(output).leaves
        changed = {slot: self.backend.substitute(leaves[slot], array) for slot, array in values.items()}
        return replace(output, changed), changed

    def loss_of(self, output: Any, label: Any) -> Any:
        backend = self.backend
        hint = "loss=(reference_loss, port_loss) gives each side its own"
        with self.telling("the loss", hint), self.lowered():
            loss = self.loss(output, convert(label, backend))
        if not backend.is_tensor(loss) or math.prod(backend.shape(loss)) != 1:
            shape = f"a tensor {list(backend.shape(loss))}" if backend.is_tensor(loss) else brief(loss)
            raise InputError(
                phrase(
                    "the loss of the {words} gives {shape}, not one number of {name}",
                    words=side_name(self.words),
                    shape=shape,
                    name=backend.name,
                ),
                hint=phrase("reduce it, e.g. with .mean()"),
            )
        if not backend.requires_grad(loss):
            raise InputError(
                phrase(
                    "the loss of the {words} depends on nothing trainable, so nothing can be learnt",
                    words=side_name(self.words),
                ),
                hint=phrase(
                    "see that nothing is detached on the way to it, and that gradients are not switched off"
                ),
            )
        return loss

    def backward(self, loss: Any) -> None:
        with self.telling("the backward pass"):
            self.backend.backward([loss], [None])

    def clipped(self) -> Arrays | None:
        """Gradients as the update would use them: by the user's function, or by the optimizer itself."""
        self.clip_gradients()
        inside = self.backend.clipped_by_optimizer(self.optimizer, self.model)
        if self.clip is None and inside is None:
            return None
        return {**self.gradients(copy=True), **(inside or {})}

    def clip_gradients(self) -> None:
        """By the user's function, where there is one."""
        if self.clip is None:
            return
        learning = [
            tensor for tensor in self.tensors("parameter").values() if self.backend.requires_grad(tensor)
        ]
        with self.telling("clip"):
            self.clip(learning)

    def update(self) -> None:
        with self.telling("the optimizer's step"), self.backend.optimizer_clip_off(self.optimizer):
            self.backend.optimizer_step(self.optimizer, self.evaluate)

    def evaluate(self) -> Any:
        """Loss and gradients of the present step anew, for an optimizer that asks for them."""
        self.clear()
        loss = None
        for batch in self.present:
            loss = self.loss_of(self.forward(batch), batch.label)
            self.backward(loss)
        self.clip_gradients()
        return loss

    @property
    def evaluates(self) -> bool:
        """Whether an update computes the loss several times."""
        return self.backend.needs_closure(self.optimizer)

    def settings(self) -> dict[str, dict[str, Any]]:
        return self.backend.optimizer_settings(self.optimizer, self.model)

    def slots(self, *, copy: bool = False) -> dict[str, Arrays]:
        """Of the optimizer; without ``copy`` its own memory, where that is possible."""
        return self.backend.optimizer_state(self.optimizer, self.model, copy=copy)

    def counters(self) -> dict[str, Any]:
        """The plain numbers and flags, or lists of them, that an optimizer keeps beside its tensors."""
        return {name: deepcopy(value) for name, value in vars(self.optimizer).items() if _is_plain(value)}

    def set_counters(self, values: Mapping[str, Any]) -> None:
        for name in self.counters().keys() - values.keys():
            delattr(self.optimizer, name)
        for name, value in values.items():
            setattr(self.optimizer, name, deepcopy(value))

    def step_schedule(self, loss: float) -> None:
        if self.scheduler is None:
            return
        metric = loss if self.backend.needs_metric(self.scheduler) else None
        with self.telling("the scheduler's step"):
            self.backend.scheduler_step(self.scheduler, metric)

    def clear(self) -> None:
        self.backend.clear_by_optimizer(self.optimizer)


def make_sides(
    models: tuple[Any, Any],
    loss: Any,
    clip: Any,
    accumulate: Any,
) -> tuple[TrainingSide, TrainingSide]:
    """Both sides without their optimizers, which are made once the weights are what they should be."""
    losses = _pair(
        loss, "loss", callable, phrase("a function (output, label) -> one number, or a pair of them")
    )
    clips = _pair(
        clip,
        "clip",
        lambda each: each is None or callable(each),
        phrase("a pair of functions of the parameters, None where the optimizer clips by itself"),
    )
    counts = _pair(
        accumulate,
        "accumulate",
        lambda each: isinstance(each, int) and not isinstance(each, bool) and each > 0,
        phrase("a number of batches whose gradients are added up for one update"),
    )
    sides = []
    for number, (words, model) in enumerate(zip(SIDES, models, strict=True)):
        backend = registry.of_model(model, side_name(words))
        side = TrainingSide(
            words, backend, model, losses[number], clip=clips[number], accumulate=counts[number]
        )
        side.refresh()
        sides.append(side)
    return sides[0], sides[1]


def _pair(value: Any, name: str, fits: Callable[[Any], bool], wanted: str) -> tuple[Any, Any]:
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2 or not all(fits(each) for each in both):
        raise InputError(
            phrase("{name}={value} is not {wanted}", name=name, value=brief(value), wanted=wanted)
        )
    return both[0], both[1]


def give_optimizers(sides: tuple[TrainingSide, TrainingSide], optimizers: Any, schedulers: Any) -> None:
    """Optimizers and schedulers as they were given, or made by what was given; each of its own model."""
    _pair(
        optimizers,
        "optimizers",
        lambda each: each is not None and not isinstance(each, type),
        phrase("a pair of optimizers, or of functions model -> optimizer"),
    )
    if not isinstance(optimizers, (tuple, list)):
        raise InputError(
            phrase("optimizers={optimizers} is one, not a pair", optimizers=brief(optimizers)),
            hint="optimizers=(reference_optimizer, port_optimizer)",
        )
    both = (None, None) if schedulers is None else schedulers
    if not isinstance(both, (tuple, list)) or len(both) != 2:
        raise InputError(
            phrase("schedulers={schedulers} is not a pair", schedulers=brief(schedulers)),
            hint=phrase("schedulers=(reference_scheduler, port_scheduler), None where a side has none"),
        )
    for side, optimizer, scheduler in zip(sides, optimizers, both, strict=True):
        side.optimizer = _optimizer(side, optimizer)
        side.scheduler = None if scheduler is None else _scheduler(side, scheduler)


def _optimizer(side: TrainingSide, given: Any) -> Any:
    backend = side.backend
    if not backend.is_optimizer(given):
        if not callable(given):
            raise InputError(
                phrase(
                    "the {words}'s optimizer is {given}: not one of {name}",
                    words=side_name(side.words),
                    given=brief(given),
                    name=backend.name,
                )
            )
        with side.telling("the function that makes the optimizer"):
            given = given(side.model)
        if not backend.is_optimizer(given):
            raise InputError(
                phrase(
                    "the {words}'s function gives {given}, not an optimizer of {name}",
                    words=side_name(side.words),
                    given=brief(given),
                    name=backend.name,
                ),
                hint=phrase("optimizers=(lambda model: ..., lambda model: ...): each returns an optimizer"),
            )
    known, foreign = backend.optimizer_paths(given, side.model)
    if foreign:
        raise InputError(
            phrase(
                "{foreign} of the parameters of the {words}'s {kind} are not parameters of its "
                "{model} ({count} are)",
                foreign=foreign,
                words=side_name(side.words),
                kind=type(given).__name__,
                model=type(side.model).__name__,
                count=len(known),
            ),
            hint=phrase("make the optimizer from the parameters of the very model that is passed"),
        )
    return given


def _scheduler(side: TrainingSide, given: Any) -> Any:
    backend = side.backend
    if not backend.is_scheduler(given):
        if not callable(given) or isinstance(given, type):
            raise InputError(
                phrase(
                    "the {words}'s scheduler is {given}: not one of {name}",
                    words=side_name(side.words),
                    given=brief(given),
                    name=backend.name,
                )
            )
        with side.telling("the function that makes the scheduler"):
            given = given(side.optimizer)
        if given is None:
            return None
        if not backend.is_scheduler(given):
            raise InputError(
                phrase(
                    "the {words}'s function gives {given}, not a scheduler of {name}",
                    words=side_name(side.words),
                    given=brief(given),
                    name=backend.name,
                ),
                hint=phrase(
                    "schedulers=(lambda optimizer: ..., lambda optimizer: ...): each returns a scheduler"
                ),
            )
    owner = backend.optimizer_of(given)
    if owner is not None and owner is not side.optimizer:
        raise InputError(
            phrase(
                "the {words}'s {kind} belongs to another optimizer than the one beside it",
                words=side_name(side.words),
                kind=type(given).__name__,
            ),
            hint=phrase("make the scheduler from this optimizer, or pass a function optimizer -> scheduler"),
        )
    held = backend.scheduler_of(side.optimizer)
    if held is not None and owner is None and held is not given:
        raise InputError(
            phrase(
                "the {words}'s {kind} reads its rate from another scheduler than "
                "the {scheduler} that is stepped",
                words=side_name(side.words),
                kind=type(side.optimizer).__name__,
                scheduler=type(given).__name__,
            ),
            hint=phrase("give the optimizer this scheduler"),
        )
    return given


def _is_plain(value: object) -> bool:
    """A number, a flag or nothing yet, or a list or tuple of nothing else."""
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_is_plain, value))
    return type(value) in PLAIN
