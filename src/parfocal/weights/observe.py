"""Runs a model once and notes, for every module call, what went in and what came out.

Only fingerprints are kept, so an observation is small whatever the activations weigh. Flags, RNG,
gradients mode and buffers are as before when it is over, also after an exception.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.keeping import attributes_kept
from parfocal.backends.protocol import Array, Backend, Call
from parfocal.inputs import Arguments, leaves
from parfocal.weights.fingerprint import WeightFingerprint, fingerprint
from parfocal.weights.writer import WritableModel


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """One finished call."""

    path: str
    order: int
    occurrence: int
    inputs: tuple[WeightFingerprint, ...]
    outputs: tuple[WeightFingerprint, ...]


@dataclass(slots=True)
class ObservedRun:
    """All calls of one run, in the order in which they began."""

    calls: list[FinishedCall] = field(default_factory=list)
    by_path: dict[str, list[FinishedCall]] = field(default_factory=dict)

    def add(self, seen: FinishedCall) -> None:
        self.calls.append(seen)
        self.by_path.setdefault(seen.path, []).append(seen)

    def first(self, path: str) -> FinishedCall | None:
        return self.by_path.get(path, [None])[0]

    def around(self, path: str) -> FinishedCall | None:
        """The first call of a module, or of the next one around, short of the model, whose code uses it."""
        while path and path not in self.by_path:
            path = path.rpartition(".")[0]
        return self.first(path) if path else None

    def at(self, path: str, occurrence: int) -> FinishedCall | None:
        calls = self.by_path.get(path, [])
        return calls[occurrence] if occurrence < len(calls) else None


def prints(backend: Backend, value: Any) -> tuple[WeightFingerprint, ...]:
    """Fingerprints of all tensors in a nested value."""
    return tuple(fingerprint(_array(backend, leaf)) for leaf in leaves(value) if backend.is_tensor(leaf))


def _array(backend: Backend, tensor: Any) -> Array:
    return backend.to_array(tensor, copy=False)


@contextmanager
def quiet(side: WritableModel) -> Iterator[None]:
    """Eval mode without gradients; RNG, flags, buffers and other attributes restored on leaving."""
    backend = side.backend
    buffers = side.snapshot(path for path, tensor in side.tensors.items() if tensor.role == "buffer")
    state = backend.rng_state()
    try:
        with attributes_kept(backend, side.model), backend.mode(side.model, "eval"), backend.no_grad():
            yield
    finally:
        backend.set_rng_state(state)
        side.restore(buffers)


def observe(side: WritableModel, arguments: Arguments, *, values: bool = True) -> ObservedRun:
    """Run the model once under watch; without ``values`` only which module runs when is noted."""
    notebook = Notebook(side.backend, values)
    with quiet(side), side.backend.watch(side.model, notebook.enter, notebook.exit):
        args, kwargs = arguments
        side.model(*args, **kwargs)
    return notebook.observation


def run(side: WritableModel, arguments: Arguments) -> tuple[WeightFingerprint, ...]:
    """What the model gives, without watching its modules."""
    args, kwargs = arguments
    with quiet(side):
        return prints(side.backend, side.model(*args, **kwargs))


class Notebook:
    """The callbacks of an observation."""

    def __init__(self, backend: Backend, values: bool) -> None:
        self.backend = backend
        self.values = values
        self.observation = ObservedRun()
        self._counts: dict[str, int] = {}

    def enter(self, call: Call) -> None:
        occurrence = self._counts.get(call.path, 0)
        self._counts[call.path] = occurrence + 1
        call.note["occurrence"] = occurrence
        call.note["inputs"] = prints(self.backend, (call.args, call.kwargs)) if self.values else ()

    def exit(self, call: Call, output: Any) -> None:
        outputs = prints(self.backend, output) if self.values else ()
        seen = FinishedCall(call.path, call.order, call.note["occurrence"], call.note["inputs"], outputs)
        self.observation.add(seen)
