"""Proof that a recording changes nothing: the same code with and without one, compared bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from parfocal.backends import registry
from parfocal.backends.protocol import Backend
from parfocal.capture.nested_values import flatten
from parfocal.capture.proof import Inertness
from parfocal.capture.recording import record
from parfocal.capture.repeats import Bits, differing


def check_inert(model: Any, run_once: Callable[[], Any], **options: Any) -> Inertness:
    """Run ``run_once`` alone and under ``record(model, **options)``, from the same state.

    Compares the tensors it returns, every parameter, gradient and buffer, and the state of the
    random generator. The model is left as it was; its gradients are cleared. Code that is not
    deterministic by itself (``parfocal.capture.determinism``) differs from itself here too.
    """
    backend = registry.of(model)
    start = {entry.path: backend.to_array(entry.value) for entry in backend.state(model)}
    random = backend.rng_state()

    def outcome(run: Callable[[], Any]) -> Bits:
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
    return Inertness(tuple(differing(alone, watched)), len(alone.keys() | watched.keys()))


def _outcome(backend: Backend, model: Any, returned: Any) -> Bits:
    """Everything a run leaves behind."""
    found: Bits = {}
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
