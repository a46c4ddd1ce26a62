"""Proof, while a model is recorded, that the recording changes nothing.

Every outermost call is made once more on a copy without hooks, from the same state, arguments and
random numbers; what the two leave behind is compared bit for bit. When a backward pass is over, the
gradients that arrived at the call's outputs are sent back through the copy as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from parfocal.backends.protocol import Array, Backend, Call
from parfocal.capture.determinism import random_state
from parfocal.capture.nested_values import flatten
from parfocal.capture.repeats import (
    Bits,
    CallStart,
    RepeatedCall,
    await_inputs,
    differing,
    left_behind,
    repeat,
    send_back,
    start_of,
    tensors_of,
)
from parfocal.errors import DivergedError, EmptyComparisonError
from parfocal.phrases import phrase

_NOTE = "proof"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Inertness:
    """What differed between a run with and one without recording, by name; nothing, if it is inert.

    ``unsteady``: where the code differs from itself without any recording, which proves nothing.
    """

    differences: tuple[str, ...]
    compared: int
    unsteady: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.differences and not self.unsteady and self.compared > 0

    def as_texts(self) -> dict[str, str]:
        """As a run stores it."""
        return {
            "compared": str(self.compared),
            "differences": "; ".join(self.differences),
            "unsteady": "; ".join(self.unsteady),
        }

    def check(self, run: str) -> None:
        """Raise unless recording was proved to be inert; ``run`` is where the recorded run lies."""
        if self.unsteady:
            raise DivergedError(
                phrase(
                    "the model is not deterministic: without recording, the same call differs from "
                    "itself in {unsteady}. So nothing is proved of the recording; the run in {run} "
                    "is complete",
                    unsteady=_listed(self.unsteady),
                    run=run,
                ),
                hint=phrase(
                    "take chance out with parfocal.capture.determinism, or record without check=True"
                ),
            )
        if self.differences:
            raise DivergedError(
                phrase(
                    "recording changes what the model computes: {count} of {compared} values differ "
                    "from those without it: {differences}. The run in {run} is complete",
                    count=len(self.differences),
                    compared=self.compared,
                    differences=_listed(self.differences),
                    run=run,
                ),
                hint=phrase("recorder.inertness has all names; a model must not act on its hooks"),
            )
        if not self.compared:
            raise EmptyComparisonError(
                phrase("check=True compared nothing: the model was not called inside the with block")
            )


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return "; ".join(names[:_SHOWN]) + more


@dataclass(eq=False)
class _Pending:
    """A call whose gradients are still to come. Owned by the hooks on its outputs: it dies with them."""

    where: str
    module: Any  # the live one
    start: CallStart
    alone: RepeatedCall
    inputs: dict[str, Array]  # gradients that arrived, by slot
    outputs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Begun:
    start: CallStart
    inputs: dict[str, Array]


class InertnessProof:
    """Compares the calls of one recording. ``watched`` records a copy of the model as this one is."""

    def __init__(self, backend: Backend, watched: Callable[[Any], AbstractContextManager[Any]]) -> None:
        self.running = False  # what happens now is a repeat, none of the user's
        self._backend = backend
        self._watched = watched
        self._differences: dict[str, None] = {}
        self._unsteady: dict[str, None] = {}
        self._compared = 0
        self._arrived: dict[int, _Pending] = {}
        self._before: dict[int, Array | None] = {}
        self._removers: list[Callable[[], None]] = []

    @property
    def inertness(self) -> Inertness:
        """What was found so far."""
        return Inertness(tuple(self._differences), self._compared, tuple(self._unsteady))

    def begin(self, call: Call) -> None:
        """An outermost call begins; nothing was done with its arguments yet."""
        inputs: dict[str, Array] = {}
        self._removers += await_inputs(self._backend, call.args, call.kwargs, inputs.__setitem__)
        call.note[_NOTE] = _Begun(start_of(self._backend, call.module, call.args, call.kwargs), inputs)

    def end(self, call: Call, output: Any, step: int) -> None:
        """A call returned; make it again and compare."""
        begun: _Begun | None = call.note.pop(_NOTE, None)
        if begun is None:
            return
        where = f"step {step}, {call.path or 'model'}: "
        with self._aside():
            seen = left_behind(self._backend, call.module, output)
            alone = self._alone(begun.start, where)
            if alone is None:
                return
            self._compared += len(seen)
            found = differing(seen, alone.left)
            if found:
                again = self._alone(begun.start, where)
                self._blame(where, found, [] if again is None else differing(alone.left, again.left))
                return
        self._await_gradients(output, _Pending(where, call.module, begun.start, alone, begun.inputs))

    def begin_backward(self, model: Any) -> None:
        """A backward pass begins: remember the gradients it adds to."""
        gradient = self._backend.gradient
        self._before = {id(entry.value): gradient(entry.value) for entry in self._backend.state(model)}

    def end_backward(self, finished: bool) -> None:
        """A backward pass is over; one that raised has nothing to compare."""
        passed, self._arrived = list(self._arrived.values()), {}
        if finished and passed:
            with self._aside(), self._backend.with_grad():
                self._compare_gradients(passed)
        for pending in passed:
            pending.outputs.clear()
        self.close()

    def close(self) -> None:
        """Take the hooks off tensors that outlive their graph."""
        for remove in self._removers:
            remove()
        self._removers.clear()
        self._before = {}

    @contextmanager
    def _aside(self) -> Iterator[None]:
        """What happens inside is a repeat: it is not recorded, and moves no random generator."""
        restore = random_state(self._backend)
        self.running = True
        try:
            yield
        finally:
            self.running = False
            restore()

    def _alone(self, start: CallStart, where: str) -> RepeatedCall | None:
        """The call made again without recording."""
        try:
            with self._backend.unwatched():
                return repeat(self._backend, start, self._backend.copy_as(start.module, None))
        except Exception as error:  # noqa: BLE001 - whatever the model raises here, it did not raise before
            self._fail(where, error)
            return None

    def _blame(self, where: str, found: Iterable[str], unsteady: Iterable[str]) -> None:
        """Name what differs: as unsteady where the code differs from itself."""
        own = set(unsteady)
        for name in found:
            (self._unsteady if own else self._differences)[where + name] = None

    def _await_gradients(self, output: Any, pending: _Pending) -> None:
        backend = self._backend
        if not backend.grad_enabled():
            return
        for slot, tensor in tensors_of(backend, flatten(output).leaves).items():
            if backend.requires_grad(tensor) and not backend.is_leaf(tensor):
                backend.watch_gradient(tensor, partial(self._arrive, pending, slot))

    def _arrive(self, pending: _Pending, slot: str, gradient: Any) -> None:
        if not self.running:
            pending.outputs[slot] = self._backend.duplicate(gradient)
            self._arrived[id(pending)] = pending

    def _compare_gradients(self, passed: list[_Pending]) -> None:
        """What the pass added to every parameter, against what the calls add alone."""
        backend = self._backend
        alone = [send_back(backend, pending.alone, pending.outputs) for pending in passed]
        added: dict[int, Array] = {}
        for pending, found in zip(passed, alone, strict=True):
            for key, name in _parameters(backend, pending.module).items():
                value = found.get(name)
                if value is not None:
                    added[key] = value if key not in added else added[key] + value
        for pending, found in zip(passed, alone, strict=True):
            self._compared += len(found)
            if differing(self._seen(pending), self._expected(pending, found, added)):
                self._compare_alone(pending)

    def _seen(self, pending: _Pending) -> Bits:
        """The gradients that the recorded pass left."""
        backend = self._backend
        entries = {id(entry.value): entry.value for entry in backend.state(pending.module)}
        seen: Bits = {
            name: backend.gradient(entries[key]) for key, name in _parameters(backend, pending.module).items()
        }
        return seen | {f"gradient of input {slot}": value for slot, value in pending.inputs.items()}

    def _expected(self, pending: _Pending, found: Bits, added: dict[int, Array]) -> Bits:
        """The gradients from before the pass, and what its calls add to them."""
        expected = dict(found)
        for key, name in _parameters(self._backend, pending.module).items():
            before, more = self._before.get(key), added.get(key)
            expected[name] = (
                before + more
                if before is not None and more is not None
                else (more if before is None else before)
            )
        return expected

    def _compare_alone(self, pending: _Pending) -> None:
        """Gradients differ: find out whether by the recording.

        A weight has other gradients too when the user's own code uses it outside of the call, and the
        sum over several calls may be rounded in another order. So the call is made again here, with
        and without recording, and sent the same gradients: nothing else has a say in these.
        """

        def gradients(around: Callable[[Any], AbstractContextManager[Any]]) -> Bits:
            module = self._backend.copy_as(pending.start.module, None)
            with around(module):
                made = repeat(self._backend, pending.start, module)
                return send_back(self._backend, made, pending.outputs)

        def alone(_: Any) -> AbstractContextManager[None]:
            return self._backend.unwatched()

        try:
            once, recorded = gradients(alone), gradients(self._watched)
            found = differing(recorded, once)
            self._blame(pending.where, found, differing(once, gradients(alone)) if found else [])
        except Exception as error:  # noqa: BLE001 - whatever the model raises here, it did not raise before
            self._fail(pending.where, error)

    def _fail(self, where: str, error: Exception) -> None:
        self._differences[f"{where}made again it raised {type(error).__name__}: {error}"] = None


def _parameters(backend: Backend, module: Any) -> dict[int, str]:
    """The names of a module's gradients by the identity of its parameters."""
    return {
        id(entry.value): f"gradient {entry.path}"
        for entry in backend.state(module)
        if entry.trainable and entry.tied_to is None
    }
