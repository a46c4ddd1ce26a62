"""Copies: of a module in little time, and of what an optimizer keeps."""

from __future__ import annotations

import copy
import copyreg
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType
from typing import Any

_ATOMS = frozenset(
    {type(None), bool, int, float, complex, str, bytes, type, FunctionType, BuiltinFunctionType}
)
_NEW: Any = object()  # what was not copied yet

Memo = dict[int, Any]  # copies by the identity of what they are copies of, as ``copy.deepcopy`` has it
Copier = Callable[[Any, Memo], Any]


def copied(value: Any, memo: Memo, other: Copier = copy.deepcopy) -> Any:
    """A deep copy, as ``copy.deepcopy`` makes it, in a third of the time that takes for a module.

    A module is an object with a dozen containers (of hooks, mostly, and empty) and a few numbers and names;
    ``other`` copies what is none of that.
    """
    kind: Any = type(value)
    if kind in _ATOMS:
        return value
    found = memo.get(id(value), _NEW)
    if found is not _NEW:
        return found
    make = _MAKERS.get(kind)
    if make is not None:
        return make(value, memo, other)
    return _object(value, memo, other) if _is_plain(kind) else other(value, memo)


def _mapping(value: Any, memo: Memo, other: Copier) -> Any:
    new = memo[id(value)] = type(value)()
    if value:
        new.update(_items(value, memo, other))
    return new


def _items(value: Mapping[Any, Any], memo: Memo, other: Copier) -> dict[Any, Any]:
    return {
        key if type(key) in _ATOMS else copied(key, memo, other): (
            each if type(each) in _ATOMS else copied(each, memo, other)
        )
        for key, each in value.items()
    }


def _list(value: list[Any], memo: Memo, other: Copier) -> list[Any]:
    new: list[Any] = []
    memo[id(value)] = new
    new.extend(copied(each, memo, other) for each in value)
    return new


def _set(value: set[Any], memo: Memo, other: Copier) -> set[Any]:
    new: set[Any] = set()
    memo[id(value)] = new
    new.update(copied(each, memo, other) for each in value)
    return new


def _tuple(value: tuple[Any, ...], memo: Memo, other: Copier) -> Any:
    if all(type(each) in _ATOMS for each in value):
        return value
    return other(value, memo)  # it may be part of what it holds


_MAKERS: dict[type, Callable[[Any, Memo, Copier], Any]] = {
    **dict.fromkeys((dict, OrderedDict), _mapping),
    list: _list,
    set: _set,
    tuple: _tuple,
}


def _object(value: Any, memo: Memo, other: Copier) -> Any:
    state = value.__getstate__() if hasattr(type(value), "__getstate__") else vars(value)
    if not (state is None or isinstance(state, dict)):
        return other(value, memo)
    # copies are known by identity: what a ``__getstate__`` made for this must live as long as the memo does
    memo.setdefault(id(memo), []).append(state)
    new = memo[id(value)] = object.__new__(type(value))
    attributes = _items(state or {}, memo, other)
    if hasattr(type(value), "__setstate__"):
        new.__setstate__(attributes)
    else:
        vars(new).update(attributes)
    return new


@lru_cache(maxsize=1024)
def _is_plain(kind: Any) -> bool:
    """Whether a copy is nothing but a new object with copies of the attributes."""
    if kind.__new__ is not object.__new__ or not kind.__dictoffset__ or kind in copyreg.dispatch_table:
        return False
    if (kind.__reduce_ex__, kind.__reduce__) != (object.__reduce_ex__, object.__reduce__):
        return False
    asked = ("__deepcopy__", "__getnewargs__", "__getnewargs_ex__")
    return not any(hasattr(kind, name) for name in asked) and not any(
        vars(base).get("__slots__") for base in kind.__mro__
    )


def cloned(value: Any, is_tensor: Callable[[object], bool]) -> Any:
    """Containers and tensors anew, to any depth; the rest as it is."""
    if is_tensor(value):
        return value.detach().clone()
    if isinstance(value, list):
        return [cloned(each, is_tensor) for each in value]
    if isinstance(value, defaultdict):
        return defaultdict(value.default_factory, {k: cloned(v, is_tensor) for k, v in value.items()})
    if isinstance(value, dict):
        return {key: cloned(each, is_tensor) for key, each in value.items()}
    return value
