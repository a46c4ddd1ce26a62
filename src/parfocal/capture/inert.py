"""Proof that a recording changes nothing: the same code with and without one, compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Array, Backend
from parfocal.capture.recording import record
from parfocal.capture.tree import flatten


@dataclass(frozen=True, slots=True)
class Inertness:
    """What differed between the two runs, by name; nothing, if recording is inert for this model."""

    differences: tuple[str, ...]
    compared: int

    @property
    def ok(self) -> bool:
        return not self.differences and self.compared > 0


def check_inert(model: Any, run_once: Callable[[], Any], **options: Any) -> Inertness:
    """Run ``run_once`` alone and under ``record(model, **options)``, from the same state.

    Compares the tensors it returns, every parameter, gradient and buffer, and the state of the
    random generator. The model is left as it was; its gradients are cleared. Code that is not
    deterministic by itself (``parfocal.capture.determinism``) differs from itself here too.
    """
    backend = registry.of(model)
    start = {entry.path: backend.to_array(entry.value) for entry in backend.state(model)}
    random = backend.rng_state()

    def outcome(run: Callable[[], Any]) -> dict[str, Array | None]:
        backend.clear_gradients(model)
        try:
            return _outcome(backend, model, run())
        finally:
            for entry in backend.state(model):
                if entry.path in start:
                    backend.write(entry.value, start[entry.path])
            backend.clear_gradients(model)
            backend.set_rng_state(random)

    def recorded() -> Any:
        with record(model, **options):
            return run_once()

    alone, watched = outcome(run_once), outcome(recorded)
    names = alone.keys() | watched.keys()
    differing = [
        name
        for name in names
        if name not in alone or name not in watched or not _same_bits(alone[name], watched[name])
    ]
    return Inertness(tuple(sorted(differing)), len(names))


def _outcome(backend: Backend, model: Any, returned: Any) -> dict[str, Array | None]:
    """Everything a run leaves behind."""
    found: dict[str, Array | None] = {}
    for slot, leaf in flatten(returned).leaves.items():
        if backend.is_tensor(leaf):
            found[f"returned {slot}"] = backend.to_array(leaf)
    for entry in backend.state(model):
        found[f"{entry.role} {entry.path}"] = backend.to_array(entry.value)
        if entry.trainable:
            found[f"gradient {entry.path}"] = backend.gradient(entry.value)
    # Two generators in the same state give the same number next.
    found["random generator"] = backend.random_values()
    return found


def _same_bits(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
