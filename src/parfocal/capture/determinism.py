"""Taking chance out of a run, one context manager for each source of it.

Each puts everything back exactly as it was, also after an exception: generator states,
probabilities, every module's own train flag.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.muting import Muted
from parfocal.backends.protocol import Backend

# Kind -> the attribute that holds a probability of dropping something.
DROPPING_KINDS = {
    **dict.fromkeys(
        ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout"), "p"
    ),
    **dict.fromkeys(("MultiheadAttention", "RNN", "LSTM", "GRU"), "dropout"),
}

# Users write stochastic depth themselves, under names like these (compared in lower case).
DROPPING_CLASSES = ("droppath", "drop_path", "stochasticdepth", "dropblock", "dropout")
SAMPLES = 512  # of which some are dropped and some are kept, at any rate that people use
PROBABILITIES = ("p", "drop_prob", "drop_path_prob", "drop_path", "drop_rate", "dropout", "prob")


@contextmanager
def seeded(value: int) -> Iterator[None]:
    """Seed Python's, NumPy's and every loaded framework's generator for a while."""
    backends = _loaded_backends()
    with ExitStack() as undo:
        undo.callback(random.setstate, random.getstate())
        undo.callback(np.random.set_state, np.random.get_state())
        for backend in backends:
            undo.callback(backend.set_rng_state, backend.rng_state())
        random.seed(value)
        np.random.seed(value % 2**32)
        for backend in backends:
            backend.seed(value)
        yield


def random_state(backend: Backend) -> Callable[[], None]:
    """The present state of Python's, NumPy's and a framework's generator: call it to have that again."""
    python, numpy, framework = random.getstate(), np.random.get_state(), backend.rng_state()

    def restore() -> None:
        random.setstate(python)
        np.random.set_state(numpy)
        backend.set_rng_state(framework)

    return restore


@contextmanager
def no_dropout(model: Any, *, functions: bool = True) -> Iterator[None]:
    """Let nothing be dropped, in train mode too: dropout, drop path and stochastic depth.

    Found by kind, and by the names of classes and attributes for what users write themselves. Dropout
    that code asks of a function (``F.dropout``) does nothing meanwhile, unless ``functions`` is False.
    """
    backend = registry.of(model)
    with ExitStack() as undo:
        if functions:
            undo.enter_context(backend.no_functional_dropout())
        for module in backend.modules(model).values():
            for name in (*_probabilities(backend, module), *_shares(backend, module)):
                undo.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, Muted(getattr(module, name)))
        yield


def dropping(model: Any) -> dict[str, tuple[str, float]]:
    """The modules that drop something, by path: the attribute with the probability, and what it is now."""
    backend = registry.of(model)
    return {
        path: (name, float(getattr(module, name)))
        for path, module in backend.modules(model).items()
        for name in _probabilities(backend, module)[:1]
    }


def kept_scales(model: Any, paths: Collection[str]) -> dict[str, float]:
    """What becomes of a 1 that is kept, by path of a user's module that drops in train mode.

    ``paths``: of the modules that drop something. Of those that take something else, or do something else
    besides, nothing is known.
    """
    if not paths:
        return {}
    backend = registry.of(model)
    found = {}
    restore = random_state(backend)
    try:
        for path, module in backend.modules(model).items():
            if path in paths and not backend.is_framework_layer(module):
                scale = _kept_scale(backend, module)
                if scale is not None:
                    found[path] = scale
    finally:
        restore()
    return found


def _kept_scale(backend: Backend, module: Any) -> float | None:
    for rank in (4, 3, 2):
        ones = backend.from_array(np.ones((SAMPLES, *[1] * (rank - 1)), np.float32))
        try:
            twin = backend.copy_as(module, None)
            twin.train()
            with backend.no_grad():
                given = backend.to_array(twin(ones))
        except Exception:  # noqa: BLE001  what a user's code raises for something it does not expect
            continue
        values = np.unique(given)
        kept = values[values != 0.0]
        return float(kept[0]) if len(kept) == 1 and len(values) == 2 else None
    return None


@contextmanager
def deterministic() -> Iterator[None]:
    """Deterministic kernels in every loaded framework, where it has them."""
    with ExitStack() as undo:
        for backend in _loaded_backends():
            undo.enter_context(backend.deterministic())
        yield


def _loaded_backends() -> list[Backend]:
    return [registry.get(name) for name in registry.names() if name in sys.modules]


def _probabilities(backend: Backend, module: Any) -> list[str]:
    """The attributes that hold the probabilities of a module that drops something."""
    known = DROPPING_KINDS.get(backend.kind(module))
    if known is not None:
        return [known] if _is_probability(module, known) else []
    name = type(module).__name__.lower()
    if backend.is_framework_layer(module) or not any(part in name for part in DROPPING_CLASSES):
        return []
    return [attribute for attribute in PROBABILITIES if _is_probability(module, attribute)]


def _shares(backend: Backend, module: Any) -> list[str]:
    """Attributes of a user's module, of whatever name, that say in a word what share is dropped."""
    if backend.is_framework_layer(module):
        return []
    return [
        name
        for name, value in vars(module).items()
        if "drop" in name.lower() and isinstance(value, float) and 0 < value < 1
    ]


def _is_probability(module: Any, attribute: str) -> bool:
    value = getattr(module, attribute, None)
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
