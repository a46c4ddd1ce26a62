"""Records as JSON text, each tensor's text made once.

The same tensor goes into several records, one right after the other: where it came out, where it
went in, its gradient on both sides. Its text is spliced into each of them. Values of usual parts are
written by the table ``_PLAIN``; what comes out is what ``encode_fields`` says.
"""

from __future__ import annotations

import json
import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from functools import cache, lru_cache
from json.encoder import encode_basestring_ascii as _string
from operator import attrgetter
from threading import Lock
from typing import Any

import numpy as np

from parfocal.run.codecs import CODECS, check_structure, join
from parfocal.run.dtypes import dtype_name
from parfocal.run.jsonvalues import encode_array, encode_json
from parfocal.run.records import TensorValue

Text = Callable[[Any, str], str]

_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_dump = _encoder.encode
_RECENT = 64
# Held by the value itself, so that its id means nothing else.
_recent: OrderedDict[int, tuple[TensorValue, str]] = OrderedDict()
_recent_lock = Lock()


class _UnusualError(Exception):
    """A value that has no short way."""


class _Ways(dict[type, Callable[[Any], str]]):
    """How a value of a type is written at once."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        raise _UnusualError


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise _UnusualError
    return float.__repr__(value)


def _whole_number(value: int) -> str:
    if not -(2**63) <= value < 2**63:
        raise _UnusualError
    return int.__repr__(value)


_SCALARS = _Ways(
    {
        str: _string,
        float: _number,
        int: _whole_number,
        bool: {True: "true", False: "false"}.__getitem__,
        type(None): lambda _: "null",
    }
)


def _object(value: dict[Any, Any]) -> str:
    parts = [_key(name) + _PLAIN[type(item)](item) for name, item in value.items()]
    return f"{{{','.join(parts)}}}"


def _list(value: list[Any] | tuple[Any, ...]) -> str:
    return f"[{','.join([_PLAIN[type(item)](item) for item in value])}]"


def _array(value: Any) -> str:
    if dtype_name(value.dtype) is None:
        raise _UnusualError
    stored = encode_array(value, "")
    data = stored["data"]  # base64: nothing in it needs to be escaped
    return f'{{"$array":{{"dtype":"{stored["dtype"]}","shape":{_list(stored["shape"])},"data":"{data}"}}}}'


_PLAIN = _Ways(
    {
        **_SCALARS,
        dict: _object,
        list: _list,
        tuple: lambda value: f'{{"$tuple":{_list(value)}}}',
        np.ndarray: _array,
    }
)


@lru_cache(maxsize=4096)  # the names of settings and figures: few, and written all the time
def _key(name: Any) -> str:
    """What stands before an item of an object."""
    if type(name) is not str or name[:1] == "$":
        raise _UnusualError
    return f"{_string(name)}:"


def _usual(value: Any) -> str | None:
    """The text of a value of usual parts; None for one that needs ``encode_json``."""
    try:
        return _PLAIN[type(value)](value)
    except _UnusualError:
        return None


def fields_text(instance: Any, path: str, **more: str) -> str:
    """A dataclass instance as the text of a JSON object, after ``more``.

    An absent value that is absent by default is left out.
    """
    parts = [f"{_key(name)}{_string(value)}" for name, value in more.items()]
    cls: Any = type(instance)
    values, writers = _writers(cls)
    for value, (name, key, may_be_absent, types, write) in zip(values(instance), writers, strict=True):
        kind = type(value)
        if value is None and may_be_absent:
            continue
        if kind in types and (kind is not int or -(2**63) <= value < 2**63):
            parts.append(key + _SCALARS[kind](value))
        else:
            parts.append(key + write(value, join(path, name)))
    return f"{{{','.join(parts)}}}"


_Writer = tuple[str, str, bool, frozenset[type], Text]


@cache
def _writers(cls: Any) -> tuple[Callable[[Any], tuple[Any, ...]], tuple[_Writer, ...]]:
    """How to get the values of all fields, and for each its name, its key, whether it may be absent, of what
    type it is written at once, and how otherwise."""

    def entry(item: Any) -> _Writer:
        kind, encode = str(item.type), CODECS[str(item.type)].encode
        write = TEXTS.get(kind, lambda value, path: _dump(encode(value, path)))
        return item.name, _key(item.name), item.default is None, AT_ONCE.get(kind, frozenset()), write

    items = fields(cls)
    assert len(items) > 1  # else attrgetter gives no tuple
    return attrgetter(*(item.name for item in items)), tuple(map(entry, items))


def json_text(value: Any, path: str) -> str:
    """Any plain value, as ``encode_json`` says; the usual ones in one go."""
    text = _usual(value)
    return _dump(encode_json(value, path)) if text is None else text


def _tensor(value: Any, path: str) -> str:
    if value is None:
        return "null"
    known = _recent.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    text = fields_text(value, path)
    with _recent_lock:
        _recent[id(value)] = (value, text)
        while len(_recent) > _RECENT:
            _recent.popitem(last=False)
    return text


def _leaf(value: Any, path: str) -> str:
    if isinstance(value, TensorValue):
        return f'{{"$tensor":{_tensor(value, path)}}}'
    if value is None or type(value) in _SCALARS:
        return json_text(value, path)
    return _dump(CODECS["Leaf"].encode(value, path))


def _structure(value: Any, path: str) -> str:
    check_structure(value, path)
    leaves = ",".join(
        [
            f"{_string(slot)}:{_leaf(leaf, join(path, f'leaves.{slot}'))}"
            for slot, leaf in value.leaves.items()
        ]
    )
    shape = json_text(value.shape, join(path, "shape"))
    return f'{{"leaves":{{{leaves}}},"shape":{shape}}}'


def _shape(value: Any, path: str) -> str:
    usual = type(value) is tuple and all(type(extent) is int for extent in value)
    text = _usual(list(value)) if usual else None
    return _dump(CODECS["tuple[int, ...]"].encode(value, path)) if text is None else text


def _reference(value: Any, path: str) -> str:
    return "null" if value is None else fields_text(value, path)


def _mapping(value: Any, path: str) -> str:
    text = _usual(value)
    return _dump(CODECS["Mapping[str, Any]"].encode(value, path)) if text is None else text


# By the field's annotation in records.py.
# What is of the type that it should be is written at once.
AT_ONCE: dict[str, frozenset[type]] = {
    "int": frozenset({int}),
    "int | None": frozenset({int, type(None)}),
    "str": frozenset({str}),
    "str | None": frozenset({str, type(None)}),
    "bool": frozenset({bool}),
}
TEXTS: dict[str, Text] = {
    "TensorValue | None": _tensor,
    "Leaf": _leaf,
    "Structure": _structure,
    "TensorRef | None": _reference,
    "tuple[int, ...]": _shape,
    "Mapping[str, Any]": _mapping,
    "Mapping[str, Any] | None": _mapping,
}
