"""Records as JSON text, each tensor's text made once.

The same tensor goes into several records, one right after the other: where it came out, where it
went in, its gradient on both sides. Its text is spliced into each of them, and the many numbers of
a sketch, as base64, are never looked at again. What comes out is what ``encode_fields`` says.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from parfocal.run.codecs import CODECS, check_structure, join
from parfocal.run.jsonvalues import encode_array, encode_json
from parfocal.run.records import TensorValue

Text = Callable[[Any, str], str]

_dump = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_RECENT = 64
# Held by the value itself, so that its id means nothing else.
_recent: OrderedDict[int, tuple[TensorValue, str]] = OrderedDict()
_recent_lock = Lock()


def fields_text(instance: Any, path: str, **more: str) -> str:
    """A dataclass instance as the text of a JSON object, after ``more``.

    An absent value that is absent by default is left out.
    """
    parts: list[str] = []
    plain: dict[str, Any] = dict(more)
    cls: Any = type(instance)
    for name, may_be_absent, encode, text in _encoders(cls):
        value = getattr(instance, name)
        if value is None and may_be_absent:
            continue
        if text is None or value is None:
            plain[name] = encode(value, join(path, name))
        else:
            _flush(plain, parts)
            plain = {}
            parts.append(f'"{name}":{text(value, join(path, name))}')
    _flush(plain, parts)
    return "{" + ",".join(parts) + "}"


@cache
def _encoders(cls: Any) -> tuple[tuple[str, bool, Callable[[Any, str], Any], Text | None], ...]:
    return tuple(
        (item.name, item.default is None, CODECS[str(item.type)].encode, TEXTS.get(str(item.type)))
        for item in fields(cls)
    )


def _flush(plain: dict[str, Any], parts: list[str]) -> None:
    """Write the fields that have gathered, without the braces."""
    if plain:
        parts.append(_dump(plain)[1:-1])


def _tensor(value: Any, path: str) -> str:
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
        f"{_dump(slot)}:{_leaf(leaf, join(path, f'leaves.{slot}'))}" for slot, leaf in value.leaves.items()
    )
    return f'{{"leaves":{{{leaves}}},"shape":{_dump(encode_json(value.shape, join(path, "shape")))}}}'


def _kept(value: Any, path: str) -> str:
    """What was kept of a tensor; an array in it is written as it is, base64 needs no escapes."""
    encode = CODECS["Mapping[str, Any]"].encode
    parts: list[str] = []
    plain: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, np.ndarray) and isinstance(name, str):
            _flush(encode(plain, path), parts)
            plain = {}
            parts.append(f"{_dump(name)}:{_array(item, join(path, name))}")
        else:
            plain[name] = item
    _flush(encode(plain, path), parts)
    return "{" + ",".join(parts) + "}"


def _array(array: np.ndarray[Any, Any], path: str) -> str:
    coded = encode_array(array, path)
    data = coded.pop("data")
    return f'{{"$array":{_dump(coded)[:-1]},"data":"{data}"}}}}'


# By the field's annotation in records.py; the others are small, and written together.
TEXTS: dict[str, Text] = {
    "TensorValue | None": _tensor,
    "Leaf": _leaf,
    "Structure": _structure,
    "Mapping[str, Any] | None": _kept,
}
