"""Inputs for a model, from whatever the user has: arrays, native tensors, tuples, dicts.

``arguments`` turns them into ``(args, kwargs)`` for one backend: a tuple is positional, a dict is
by keyword, anything else is the only argument. NumPy arrays and tensors of any known framework
become the backend's own tensors, nested ones too; dtypes stay (ids stay integers).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Backend
from parfocal.brief import brief
from parfocal.errors import InputError
from parfocal.phrases import phrase

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Sides:
    """Different inputs for the two sides."""

    reference: Any
    port: Any


def sides(for_reference: Any, for_port: Any) -> Sides:
    """Inputs that differ between the reference and the port, e.g. NCHW and NHWC images."""
    return Sides(for_reference, for_port)


def split(inputs: Any) -> tuple[Any, Any]:
    """The inputs of the reference and of the port."""
    return (inputs.reference, inputs.port) if isinstance(inputs, Sides) else (inputs, inputs)


def arguments(inputs: Any, backend: Backend) -> Arguments:
    """``(args, kwargs)`` in the backend's own tensors, detached from the ones given."""
    if isinstance(inputs, Sides):
        raise InputError(
            phrase("pf.sides(...) stands inside other inputs or where one side's inputs are expected"),
            hint=phrase("pass pf.sides(for_reference, for_port) as the whole of inputs"),
        )
    converted = convert(inputs, backend)
    if type(converted) is tuple:
        return converted, {}
    if isinstance(converted, dict):
        if not all(isinstance(name, str) for name in converted):
            raise InputError(
                phrase("keyword inputs need names, not {converted}", converted=brief(list(converted)))
            )
        return (), converted
    return (converted,), {}


def check_names(given: Any, model: Any, words: str) -> None:
    """Refuse inputs by names that the model does not take; what cannot be told is left to the model."""
    forward = getattr(model, "forward", None)
    if not isinstance(given, Mapping) or forward is None:
        return
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):  # code without a signature
        return
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    takes = [name for name, each in parameters.items() if each.kind is not each.POSITIONAL_ONLY]
    unknown = [str(name) for name in given if name not in takes]
    if unknown:
        raise InputError(
            phrase(
                "the {words} takes no input called {unknown}; its names are: {takes}",
                words=words,
                unknown=", ".join(map(repr, unknown)),
                takes=", ".join(takes) or phrase("none"),
            ),
            hint=phrase(
                "leave the names out to pass inputs by position: --input float32[3,4], or a tuple in Python"
            ),
        )


def convert(value: Any, backend: Backend) -> Any:
    """The same structure with every array and tensor as a new tensor of the backend."""
    if isinstance(value, np.ndarray):
        return backend.from_array(value)
    if isinstance(value, Mapping):
        return {name: convert(item, backend) for name, item in value.items()}
    if isinstance(value, tuple):
        items = [convert(item, backend) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [convert(item, backend) for item in value]
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        return value
    owner = owner_of(value)
    return backend.from_array(owner.to_array(value)) if owner else value


def leaves(value: Any) -> Iterator[Any]:
    """Everything in a nested value that is not a container, in order."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for each in fields(value):
            yield from leaves(getattr(value, each.name))
    else:
        yield value


def owner_of(value: Any) -> Backend | None:
    """The backend whose tensor this is; None for an object that is nobody's."""
    try:
        backend = registry.of(value)
    except InputError:
        return None
    return backend if backend.is_tensor(value) else None
