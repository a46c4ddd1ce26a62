"""Records as JSON text, each tensor's text made once.

The same tensor goes into several records, one right after the other: where it came out, where it
went in, its gradient on both sides. Its text is spliced into each of them. What comes out is what
``encode_fields`` says.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from json.encoder import encode_basestring_ascii as _string
from threading import Lock
from typing import Any

import numpy as np

from parfocal.run.codecs import CODECS, check_structure, join
from parfocal.run.dtypes import dtype_name
from parfocal.run.jsonvalues import encode_array, encode_json
from parfocal.run.records import TensorValue

Text = Callable[[Any, str], str]
Quick = Callable[[Any], str | None]  # None: not so quick

_encoder = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_RECENT = 64
# Held by the value itself, so that its id means nothing else.
_recent: OrderedDict[int, tuple[TensorValue, str]] = OrderedDict()
_recent_lock = Lock()


def _encoding() -> Callable[[Any], str]:
    """The standard library's encoder, set up once: it costs more than writing the few values of a record."""
    make = json.encoder.c_make_encoder  # type: ignore[attr-defined]
    if make is None:
        return _encoder.encode
    separators = _encoder.key_separator, _encoder.item_separator
    parts = make(None, _encoder.default, _string, None, *separators, False, False, False)
    return lambda data: "".join(parts(data, 0))


_dump = _encoding()


def fields_text(instance: Any, path: str, **more: str) -> str:
    """A dataclass instance as the text of a JSON object, after ``more``.

    An absent value that is absent by default is left out.
    """
    parts = [f"{_string(name)}:{_string(value)}" for name, value in more.items()]
    cls: Any = type(instance)
    for name, key, may_be_absent, quick, write in _writers(cls):
        value = getattr(instance, name)
        if value is None and may_be_absent:
            continue
        text = quick[type(value)](value) if type(value) in quick else None
        parts.append(key + (write(value, join(path, name)) if text is None else text))
    return "{" + ",".join(parts) + "}"


@cache
def _writers(cls: Any) -> tuple[tuple[str, str, bool, Mapping[type, Quick], Text], ...]:
    """For each field: name, key, whether it may be absent, and how it is written, at once or with care."""

    def entry(item: Any) -> tuple[str, str, bool, Mapping[type, Quick], Text]:
        kind, encode = str(item.type), CODECS[str(item.type)].encode
        write = TEXTS.get(kind, lambda value, path: _dump(encode(value, path)))
        return item.name, f"{_string(item.name)}:", item.default is None, QUICK.get(kind, {}), write

    return tuple(map(entry, fields(cls)))


def json_text(value: Any, path: str) -> str:
    """Any plain value, as ``encode_json`` says; the usual ones in one go."""
    text = _usual(value)
    return _dump(encode_json(value, path)) if text is None else text


def _usual(value: Any) -> str | None:
    """The text of a value of usual parts; None for one that needs ``encode_json``."""
    try:
        return _dump(_tagged(value))
    except (_UnusualError, ValueError):  # also a number that is not finite
        return None


class _UnusualError(Exception):
    """A value that has no short way."""


def _tagged(value: Any) -> Any:
    """What the standard library's encoder can write of a value of usual parts."""
    kind = type(value)
    if kind in _WRITTEN or (kind is int and -(2**63) <= value < 2**63):
        return value
    if kind is dict:
        if any(type(name) is not str or name[:1] == "$" for name in value):
            raise _UnusualError
        return {name: item if type(item) in _WRITTEN else _tagged(item) for name, item in value.items()}
    if kind is list or kind is tuple:
        items = [_tagged(item) for item in value]
        return items if kind is list else {"$tuple": items}
    if kind is np.ndarray and dtype_name(value.dtype) is not None:
        return {"$array": encode_array(value, "")}
    raise _UnusualError


_WRITTEN = frozenset({str, float, bool, type(None)})


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


def _mapping(value: Any, path: str) -> str:
    text = _usual(value)
    return _dump(CODECS["Mapping[str, Any]"].encode(value, path)) if text is None else text


def _whole_number(value: int) -> str | None:
    return int.__repr__(value) if -(2**63) <= value < 2**63 else None


# By the field's annotation in records.py. What is of the type that it should be is written at once.
_WAYS: dict[type, Quick] = {
    str: _string,
    int: _whole_number,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda _: "null",
}
QUICK: dict[str, Mapping[type, Quick]] = {
    kind: {each: _WAYS[each] for each in types}
    for kind, types in {
        "int": (int,),
        "int | None": (int, type(None)),
        "str": (str,),
        "str | None": (str, type(None)),
        "bool": (bool,),
    }.items()
}
TEXTS: dict[str, Text] = {
    "TensorValue | None": _tensor,
    "Leaf": _leaf,
    "Structure": _structure,
    "Mapping[str, Any]": _mapping,
    "Mapping[str, Any] | None": _mapping,
}
