"""Records as JSON text, each tensor's text made once.

The same tensor goes into several records, one right after the other: where it came out, where it
went in, its gradient on both sides. Its text is spliced into each of them. What comes out is what
``encode_fields`` says.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from json.encoder import encode_basestring_ascii as _string
from math import isfinite
from threading import Lock
from typing import Any

import numpy as np

from parfocal.run.codecs import CODECS, check_structure, join
from parfocal.run.dtypes import dtype_name
from parfocal.run.jsonvalues import encode_array, encode_json
from parfocal.run.records import TensorValue

Text = Callable[[Any, str], str]
Quick = Callable[[Any], str | None]  # None: not so quick

_dump = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_RECENT = 64
# Held by the value itself, so that its id means nothing else.
_recent: OrderedDict[int, tuple[TensorValue, str]] = OrderedDict()
_recent_lock = Lock()


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
        write = TEXTS.get(kind, lambda value, path: _plain_text(encode(value, path)))
        return item.name, f"{_string(item.name)}:", item.default is None, QUICK.get(kind, {}), write

    return tuple(map(entry, fields(cls)))


def json_text(value: Any, path: str) -> str:
    """Any plain value, as ``encode_json`` says; the usual ones in one go."""
    text = _usual(value)
    return _plain_text(encode_json(value, path)) if text is None else text


def _usual(value: Any) -> str | None:
    """The text of a value of a usual kind; None for one that needs ``encode_json``."""
    write = _USUAL.get(type(value))
    return None if write is None else write(value)


def _usual_int(value: int) -> str | None:
    return int.__repr__(value) if -(2**63) <= value < 2**63 else None


def _usual_float(value: float) -> str | None:
    return float.__repr__(value) if isfinite(value) else None


def _usual_list(items: Sequence[Any]) -> str | None:
    texts = [_usual(item) for item in items]
    return None if None in texts else f"[{','.join(texts)}]"  # type: ignore[arg-type]


def _usual_dict(items: dict[Any, Any]) -> str | None:
    parts = []
    for name, item in items.items():
        text = _usual(item) if type(name) is str and name[:1] != "$" else None
        if text is None:
            return None
        parts.append(f"{_string(name)}:{text}")
    return "{" + ",".join(parts) + "}"


def _usual_tuple(items: tuple[Any, ...]) -> str | None:
    text = _usual_list(items)
    return None if text is None else f'{{"$tuple":{text}}}'


def _usual_array(array: np.ndarray[Any, Any]) -> str | None:
    if dtype_name(array.dtype) is None:
        return None
    return f'{{"$array":{_usual_dict(encode_array(array, ""))}}}'


_USUAL: dict[type, Quick] = {
    str: _string,
    int: _usual_int,
    float: _usual_float,
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda _: "null",
    list: _usual_list,
    tuple: _usual_tuple,
    dict: _usual_dict,
    np.ndarray: _usual_array,
}


def _plain_text(data: Any) -> str:
    """The text of what ``encode_json`` made, however unusual."""
    text = _usual(data)
    return _dump(data) if text is None else text


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
    return _plain_text(CODECS["Leaf"].encode(value, path))


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
    return _plain_text(CODECS["Mapping[str, Any]"].encode(value, path)) if text is None else text


# By the field's annotation in records.py. What is of the type that it should be is written at once.
QUICK: dict[str, Mapping[type, Quick]] = {
    kind: {each: _USUAL[each] for each in types}
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
