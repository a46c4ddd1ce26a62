"""Nested values: flat leaves by slot, and back.

What a module takes and gives is any nesting of tuples, lists, dicts, namedtuples and
dataclasses. ``flatten`` names every leaf by its dotted way (see ``Structure``), ``replace``
puts other leaves into a live value, and ``rebuild`` makes plain containers from a recorded
shape.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from typing import Any, NamedTuple

MAX_DEPTH = 32  # deeper is taken for a leaf: a list that holds itself has no end
BARE = "0"  # the slot of a value that is a leaf itself


class FlatValue(NamedTuple):
    """The leaves of a value, and ``shape`` as in ``Structure``."""

    leaves: dict[str, Any]
    shape: Any


@dataclass(frozen=True, slots=True)
class Container:
    """One kind of container: how to see its items, how to describe it, how to make a changed one."""

    holds: Callable[[Any], bool]
    items: Callable[[Any], list[tuple[str, Any]]]
    shape: Callable[[Any, dict[str, Any]], Any]
    change: Callable[[Any, list[Any]], Any]


def flatten(value: Any) -> FlatValue:
    """Every leaf of a value under its slot."""
    kind: Any = type(value)
    if not _is_container_class(kind):  # as most outputs are
        return FlatValue({BARE: value}, BARE)
    leaves: dict[str, Any] = {}
    shape = _flatten(value, "", leaves, 0)
    return FlatValue(leaves, shape)


def flatten_call(args: Sequence[Any], kwargs: Mapping[str, Any]) -> FlatValue:
    """The inputs of a call: slots begin with the position or the keyword."""
    if not kwargs and _are_bare(args):  # as most calls are made
        bare = dict(zip(_POSITIONS, args, strict=False))
        return FlatValue(bare, ["tuple", [["tuple", list(bare)], ["dict", {}]]])
    leaves: dict[str, Any] = {}
    names = _names([*range(len(args)), *kwargs]) if kwargs else list(map(str, range(len(args))))
    shapes = [
        _flatten(value, _join("", name), leaves, 1)
        for name, value in zip(names, [*args, *kwargs.values()], strict=True)
    ]
    positional = ["tuple", shapes[: len(args)]]
    keyword = ["dict", dict(zip(names[len(args) :], shapes[len(args) :], strict=True))]
    return FlatValue(leaves, ["tuple", [positional, keyword]])


def replace(value: Any, leaves: Mapping[str, Any]) -> Any:
    """The value with the leaves of the given slots exchanged; what does not change is kept as it is."""
    return _replace(value, "", leaves, 0) if leaves else value


def replace_call(
    args: tuple[Any, ...], kwargs: dict[str, Any], leaves: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The inputs of a call with the leaves of the given slots exchanged."""
    if not kwargs and _are_bare(args):
        return tuple([leaves.get(slot, value) for slot, value in zip(_POSITIONS, args, strict=False)]), {}
    names = _names([*range(len(args)), *kwargs]) if kwargs else list(map(str, range(len(args))))
    values = [
        _replace(value, _join("", name), leaves, 1)
        for name, value in zip(names, [*args, *kwargs.values()], strict=True)
    ]
    return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))


def rebuild(shape: Any, leaves: Mapping[str, Any]) -> Any:
    """Plain tuples, lists and dicts from a recorded shape; an object becomes a dict of its parts."""
    match shape:
        case str():
            return leaves[shape]
        case ["tuple", [*children]]:
            return tuple(rebuild(child, leaves) for child in children)
        case ["list", [*children]]:
            return [rebuild(child, leaves) for child in children]
        case ["dict", items] | ["object", _, items]:
            return {name: rebuild(child, leaves) for name, child in items.items()}
    raise ValueError(f"{shape!r} is neither a slot nor a container of slots")


def _flatten(value: Any, slot: str, leaves: dict[str, Any], depth: int) -> Any:
    container = _container(value) if depth < MAX_DEPTH else None
    if container is None:
        slot = slot or BARE
        leaves[slot] = value
        return slot
    shapes = {
        name: _flatten(child, _join(slot, name), leaves, depth + 1) for name, child in container.items(value)
    }
    return container.shape(value, shapes)


def _replace(value: Any, slot: str, leaves: Mapping[str, Any], depth: int) -> Any:
    container = _container(value) if depth < MAX_DEPTH else None
    if container is None:
        return leaves.get(slot or BARE, value)
    items = container.items(value)
    children = [_replace(child, _join(slot, name), leaves, depth + 1) for name, child in items]
    if all(new is old for new, (_, old) in zip(children, items, strict=True)):
        return value
    return container.change(value, children)


def _join(slot: str, name: str) -> str:
    """The way one step further; a dot inside a name is escaped."""
    if "." in name or "\\" in name:
        name = name.replace("\\", "\\\\").replace(".", "\\.")
    return f"{slot}.{name}" if slot else name


def _names(keys: Sequence[Any]) -> list[str]:
    """One name for each key; keys that are spelt alike are told apart, and none is empty."""
    names: dict[str, None] = {}
    for key in keys:
        name = key if isinstance(key, str) else repr(key)
        if name in names or not name:
            name = repr(key)
        while name in names:  # two keys with the same repr
            name += "'"
        names[name] = None
    return list(names)


_POSITIONS = tuple(map(str, range(16)))


def _are_bare(args: Sequence[Any]) -> bool:
    """A few arguments without containers among them."""
    return len(args) <= len(_POSITIONS) and not any(map(_is_container_class, map(type, args)))


# The kinds of containers, first match wins.


def _container(value: Any) -> Container | None:
    kind: Any = type(value)
    if not _is_container_class(kind):
        return None
    return next(container for container in CONTAINERS if container.holds(value))


@lru_cache(maxsize=256)
def _is_container_class(kind: type) -> bool:
    """Asked of every value of every call, of a few classes."""
    return issubclass(kind, (tuple, list, Mapping)) or is_dataclass(kind)


def _class_name(value: Any) -> str:
    return type(value).__qualname__


def _sequence_items(value: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(str(index), item) for index, item in enumerate(value)]


def _mapping_items(value: Mapping[Any, Any]) -> list[tuple[str, Any]]:
    return list(zip(_names(list(value)), value.values(), strict=True))


def _field_items(value: Any) -> list[tuple[str, Any]]:
    return list(_set_fields(value))


def _set_fields(value: Any) -> Iterator[tuple[str, Any]]:
    for item in fields(value):
        if hasattr(value, item.name):  # a field without a value yet has none to show
            yield item.name, getattr(value, item.name)


def _change_sequence(value: Any, children: list[Any]) -> Any:
    return type(value)(children)


def _change_named_tuple(value: Any, children: list[Any]) -> Any:
    return type(value)._make(children)


def _change_mapping(value: Any, children: list[Any]) -> Any:
    if not hasattr(value, "__setitem__"):
        return dict(zip(value, children, strict=True))
    changed = copy.copy(value)
    for key, child in zip(list(value), children, strict=True):
        changed[key] = child
    return changed


def _change_dataclass(value: Any, children: list[Any]) -> Any:
    changed = copy.copy(value)
    # A class that keeps its fields in step with something else does so in its own __setattr__.
    store = object.__setattr__ if type(value).__dataclass_params__.frozen else setattr
    for (name, _), child in zip(_field_items(value), children, strict=True):
        store(changed, name, child)
    return changed


CONTAINERS = (
    Container(
        holds=is_dataclass,
        items=_field_items,
        shape=lambda value, shapes: ["object", _class_name(value), shapes],
        change=_change_dataclass,
    ),
    Container(
        holds=lambda value: isinstance(value, tuple) and hasattr(value, "_fields"),
        items=lambda value: list(zip(value._fields, value, strict=True)),
        shape=lambda value, shapes: ["object", _class_name(value), shapes],
        change=_change_named_tuple,
    ),
    Container(
        holds=lambda value: isinstance(value, tuple),
        items=_sequence_items,
        shape=lambda value, shapes: ["tuple", list(shapes.values())],
        change=_change_sequence,
    ),
    Container(
        holds=lambda value: isinstance(value, list),
        items=_sequence_items,
        shape=lambda value, shapes: ["list", list(shapes.values())],
        change=_change_sequence,
    ),
    Container(
        holds=lambda value: isinstance(value, Mapping),
        items=_mapping_items,
        shape=lambda value, shapes: ["dict", shapes],
        change=_change_mapping,
    ),
)
