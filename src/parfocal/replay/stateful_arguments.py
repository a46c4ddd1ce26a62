"""Objects with a state that a call takes besides tensors, as they were when the call began.

A cache of keys and values grows with every call that is handed it. A call that is repeated must find
it as it was then, and must not change it: it is given a copy, which shares the tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

MOST = 2000  # parts of one object that are copied; what is larger hangs on to half the program

IsTensor = Callable[[Any], bool]


class _TooLargeError(Exception):
    """More parts than an argument has."""


def copies_of(leaves: Mapping[str, Any], is_tensor: IsTensor) -> dict[str, Any]:
    """The objects with a state among the leaves of a call, copied; one that is handed twice stays one."""
    known: dict[int, Any] = {}
    found = {}
    for slot, leaf in leaves.items():
        if _has_state(leaf, is_tensor):
            try:
                found[slot] = _copied(leaf, is_tensor, known)
            except _TooLargeError:
                continue  # handed on as it is
    return found


def _has_state(value: Any, is_tensor: IsTensor) -> bool:
    """An instance of a plain class, all of whose state is in its attributes; no function, layer or tensor."""
    plain = getattr(type(value), "__new__", None) is object.__new__ and hasattr(value, "__dict__")
    return plain and not callable(value) and not isinstance(value, ModuleType) and not is_tensor(value)


def _copied(value: Any, is_tensor: IsTensor, known: dict[int, Any]) -> Any:
    if id(value) in known:
        return known[id(value)]
    if len(known) > MOST:
        raise _TooLargeError
    if type(value) is list:
        items: list[Any] = []
        known[id(value)] = items
        items.extend(_copied(item, is_tensor, known) for item in value)
        return items
    if type(value) is dict:
        named: dict[Any, Any] = {}
        known[id(value)] = named
        named.update({name: _copied(item, is_tensor, known) for name, item in value.items()})
        return named
    if type(value) is tuple:
        return tuple(_copied(item, is_tensor, known) for item in value)
    if type(value) is set:
        return set(value)
    if _has_state(value, is_tensor):
        known[id(value)] = new = object.__new__(type(value))
        parts = {name: _copied(item, is_tensor, known) for name, item in vars(value).items()}
        vars(new).update(parts)
        return new
    return value
