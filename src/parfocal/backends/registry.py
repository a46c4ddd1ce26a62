"""Which framework an object comes from, and the one backend object that speaks to it.

Frameworks are found by name only: this module imports none of them. ``of`` looks at the
modules that an object's classes were defined in, so a framework that is not loaded costs
nothing; ``get`` loads one on demand. Third parties add theirs under the entry point
group ``parfocal.backends``; the entry's name is the framework's top-level module.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from parfocal.backends.dialects import Dialect
from parfocal.backends.protocol import Backend
from parfocal.backends.versions import say_untested, surroundings
from parfocal.errors import InputError, MissingFrameworkError, UnsupportedError
from parfocal.phrases import joined, phrase

ENTRY_POINT_GROUP = "parfocal.backends"

# Present without package metadata, e.g. when the source tree is put on the path as it is.
BUILTIN = {
    "torch": "parfocal.backends.torch:TorchBackend",
    "paddle": "parfocal.backends.paddle:PaddleBackend",
}
TITLES = {"torch": "PyTorch", "paddle": "PaddlePaddle"}

_loaded: dict[str, Backend] = {}


@cache
def _known() -> dict[str, str]:
    """Framework's top-level module -> "module:class" of its backend; the builtin ones win."""
    found = {entry.name: entry.value for entry in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP)}
    return {**found, **BUILTIN}


def names() -> tuple[str, ...]:
    """Every framework parfocal has a backend for, installed or not."""
    return tuple(sorted(_known()))


def available() -> tuple[str, ...]:
    """The frameworks that are installed; none of them is imported to find out."""
    return tuple(
        name for name in names() if name in sys.modules or importlib.util.find_spec(name) is not None
    )


def get(name: str) -> Backend:
    """The backend for a framework, by its module name ("torch", "paddle"); always the same object."""
    if name in _loaded:
        return _loaded[name]
    if name not in _known():
        raise InputError(
            phrase(
                "there is no backend called {name}; there are: {names}",
                name=repr(name),
                names=joined(", ", names()),
            ),
            hint=phrase(
                "a package can add one under the entry point group {entry_point_group}",
                entry_point_group=repr(ENTRY_POINT_GROUP),
            ),
        )
    if name not in available():
        title = TITLES.get(name, name)
        extra = f"pip install 'parfocal[{name}]'" if name in BUILTIN else f"pip install {name}"
        raise MissingFrameworkError(
            phrase(
                "{title} is not installed: no module named {name} in this environment",
                title=title,
                name=repr(name),
            ),
            hint=extra,
        )
    module, _, attribute = _known()[name].partition(":")
    backend = getattr(importlib.import_module(module), attribute)()
    for each, version in ((name, backend.framework_version), *(() if _loaded else surroundings().items())):
        say_untested(each, version)
    _loaded[name] = backend
    return _loaded[name]


@cache
def dialect(name: str) -> Dialect:
    """How code for a framework is written; the framework itself need not be installed."""
    module = _known().get(name, "").partition(":")[0]
    found = f"{module}.dialect"
    if not module or importlib.util.find_spec(module) is None or importlib.util.find_spec(found) is None:
        return Dialect(name)
    known: Dialect = importlib.import_module(found).DIALECT
    return known


def packages(name: str) -> tuple[str, ...]:
    """The top-level modules whose code is no user's: the framework's, and its backend's."""
    backend = _known().get(name, "").partition(":")[0].partition(".")[0]
    return (name, backend) if backend else (name,)


def of(value: object) -> Backend:
    """The backend of a tensor, module, optimizer or scheduler."""
    for name in _roots(type(value)):
        if name in _known() and name in sys.modules:
            backend = get(name)
            if _speaks_for(backend, value):
                return backend
    kind = type(value)
    raise InputError(
        phrase(
            "an object of type {module}.{qualname} belongs to no known framework; "
            "expected a tensor, module, optimizer or scheduler of {names}",
            module=kind.__module__,
            qualname=kind.__qualname__,
            names=joined(" or ", names()),
        ),
        hint=phrase("pass the framework's own object, not a state dict, an array or a class"),
    )


def read_in_turn(loader: Iterable[Any]) -> Iterator[Any]:
    """What a loader gives, without reading ahead of what is asked for."""
    known = [name for name in _roots(type(loader)) if name in _known() and name in sys.modules]
    return get(known[0]).read_in_turn(loader) if known else iter(loader)


def of_model(value: object, words: str) -> Backend:
    """The backend of a model that can be compared; ``words``: what messages call it."""
    backend = of(value)
    if not backend.is_model(value):
        raise InputError(
            phrase("the {words} is a {kind}, not a model", words=words, kind=type(value).__name__)
        )
    obstacle = backend.obstacle(value)
    if obstacle:
        raise UnsupportedError(
            phrase("the {words} is {obstacle}, which cannot be compared", words=words, obstacle=obstacle),
            hint=phrase("give the module that it was made from"),
        )
    return backend


def _roots(kind: type) -> dict[str, None]:
    return dict.fromkeys(base.__module__.partition(".")[0] for base in kind.__mro__)


def _speaks_for(backend: Backend, value: object) -> bool:
    return (
        backend.is_tensor(value)
        or backend.is_model(value)
        or backend.is_optimizer(value)
        or backend.is_scheduler(value)
    )
