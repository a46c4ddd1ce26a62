"""Records as JSON text, each tensor's text made once.

The same tensor goes into several records, one right after the other: where it came out, where it
went in, its gradient on both sides. Its text is spliced into each of them. What comes out is what
``encode_fields`` says.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from json.encoder import encode_basestring_ascii as _string
from threading import Lock
from typing import Any

from parfocal.run.codecs import CODECS, check_structure, join
from parfocal.run.jsonvalues import encode_json
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
    parts = [f"{_string(name)}:{_string(value)}" for name, value in more.items()]
    cls: Any = type(instance)
    for name, key, may_be_absent, encode, text in _encoders(cls):
        value = getattr(instance, name)
        if value is None and may_be_absent:
            continue
        where = join(path, name)
        parts.append(key + (plain_text(encode(value, where)) if text is None else text(value, where)))
    return "{" + ",".join(parts) + "}"


@cache
def _encoders(cls: Any) -> tuple[tuple[str, str, bool, Callable[[Any, str], Any], Text | None], ...]:
    def entry(item: Any) -> tuple[str, str, bool, Callable[[Any, str], Any], Text | None]:
        kind = str(item.type)
        return item.name, f"{_string(item.name)}:", item.default is None, CODECS[kind].encode, TEXTS.get(kind)

    return tuple(map(entry, fields(cls)))


# An encoder of the standard library costs more to set up than the few values of a record.
_PLAIN: dict[type, Callable[[Any], str]] = {
    str: _string,
    int: int.__repr__,
    float: float.__repr__,  # finite: the others have a tag
    bool: {True: "true", False: "false"}.__getitem__,
    type(None): lambda _: "null",
    list: lambda items: f"[{','.join(map(plain_text, items))}]",
    dict: lambda items: (
        "{" + ",".join([f"{_string(name)}:{plain_text(item)}" for name, item in items.items()]) + "}"
    ),
}


def plain_text(data: Any) -> str:
    """The text of what ``encode_json`` made: the same as ``json.dumps``, without spaces."""
    return _PLAIN.get(type(data), _dump)(data)


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
    return plain_text(CODECS["Leaf"].encode(value, path))


def _structure(value: Any, path: str) -> str:
    check_structure(value, path)
    leaves = ",".join(
        [
            f"{_string(slot)}:{_leaf(leaf, join(path, f'leaves.{slot}'))}"
            for slot, leaf in value.leaves.items()
        ]
    )
    shape = plain_text(encode_json(value.shape, join(path, "shape")))
    return f'{{"leaves":{{{leaves}}},"shape":{shape}}}'


# By the field's annotation in records.py; the others are small, and written together.
TEXTS: dict[str, Text] = {
    "TensorValue | None": _tensor,
    "Leaf": _leaf,
    "Structure": _structure,
}
