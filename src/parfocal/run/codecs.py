"""How each kind of field in ``records.py`` becomes JSON and comes back.

A field is coded by its annotation, as it is written there, looked up in ``CODECS``: a new
field of a known kind needs nothing here. Every function gets the path of the field, and
raises ``FieldError`` with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any

from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, checked_size
from parfocal.run.jsonvalues import FieldError, decode_json, encode_json
from parfocal.run.records import Leaf, Structure, TensorRef, TensorValue

_CHECKSUM = re.compile(r"[a-z0-9_]+:[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of field becomes JSON and comes back; both raise ``FieldError``."""

    encode: Callable[[Any, str], Any]
    decode: Callable[[Any, str], Any]


def encode_fields(instance: Any, path: str) -> dict[str, Any]:
    """A dataclass instance as a JSON object; an absent value that is absent by default is left out."""
    data = {}
    cls: Any = type(instance)
    for name, may_be_absent, encode in _encoders(cls):
        value = getattr(instance, name)
        if not (value is None and may_be_absent):
            data[name] = encode(value, join(path, name))
    return data


@cache
def _encoders(cls: Any) -> tuple[tuple[str, bool, Callable[[Any, str], Any]], ...]:
    return tuple((item.name, item.default is None, CODECS[str(item.type)].encode) for item in fields(cls))


def decode_fields(cls: type[Any], value: Any, path: str) -> Any:
    """An instance of a dataclass from the object that ``encode_fields`` made of it."""
    data = _expect(dict, value, path)
    values = {}
    known = {item.name: item for item in fields(cls)}
    for name in data:
        if name not in known:
            raise FieldError(join(path, name), phrase("is unknown to {kind}", kind=cls.__name__))
    for name, item in known.items():
        if name in data:
            values[name] = CODECS[str(item.type)].decode(data[name], join(path, name))
        elif item.default is MISSING and item.default_factory is MISSING:
            raise FieldError(join(path, name), phrase("is missing"))
    return cls(**values)


def join(path: str, name: str) -> str:
    """The path of a field inside the one at ``path``."""
    return f"{path}.{name}" if path else name


def _expect(kind: type[Any], value: Any, path: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise FieldError(path, phrase("is {value}, not {kind}", value=_short(value), kind=kind.__name__))
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# One pair of functions per kind of field.


def _plain(kind: type[Any]) -> Codec:
    def encode(value: Any, path: str) -> Any:
        if type(value) is kind and (kind is not int or -(2**63) <= value < 2**63):
            return value  # nearly all there is
        item = value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value
        return decode(item, path)

    def decode(value: Any, path: str) -> Any:
        _expect(kind, value, path)
        if kind is int and not -(2**63) <= value < 2**63:
            raise FieldError(path, phrase("does not fit into 64 bits"))
        return value

    return Codec(encode, decode)


def _encode_float(value: Any, path: str) -> Any:
    return encode_json(float(value) if hasattr(value, "dtype") else value, path)


def _decode_float(value: Any, path: str) -> float:
    number = decode_json(value, path)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise FieldError(path, phrase("is {value}, not a number", value=_short(value)))
    try:
        return float(number)
    except OverflowError:
        raise FieldError(path, phrase("does not fit into a float")) from None


def _optional(codec: Codec) -> Codec:
    return Codec(
        lambda value, path: None if value is None else codec.encode(value, path),
        lambda value, path: None if value is None else codec.decode(value, path),
    )


def _mapping_of(codec: Codec) -> Codec:
    def convert(function: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def apply(value: Any, path: str) -> dict[str, Any]:
            items = _expect(Mapping, value, path).items()
            return {_expect(str, key, path): function(item, join(path, key)) for key, item in items}

        return apply

    return Codec(convert(codec.encode), convert(codec.decode))


def _tuple_of(codec: Codec) -> Codec:
    def encode(value: Any, path: str) -> list[Any]:
        return [codec.encode(item, f"{path}[{i}]") for i, item in enumerate(_expect(tuple, value, path))]

    def decode(value: Any, path: str) -> tuple[Any, ...]:
        items = enumerate(_expect(list, value, path))
        return tuple(codec.decode(item, f"{path}[{i}]") for i, item in items)

    return Codec(encode, decode)


def _encode_settings(value: Any, path: str) -> Any:
    return {
        _expect(str, key, path): encode_json(item, join(path, key))
        for key, item in _expect(Mapping, value, path).items()
    }


def _decode_settings(value: Any, path: str) -> Any:
    items = _expect(dict, value, path).items()
    return {key: decode_json(item, join(path, key)) for key, item in items}


def _decode_ref(value: Any, path: str) -> TensorRef:
    ref: TensorRef = decode_fields(TensorRef, value, path)
    for name in ("segment", "offset", "nbytes", "rank"):
        if getattr(ref, name) < 0:
            raise FieldError(
                join(path, name), phrase("is {value}, must not be negative", value=getattr(ref, name))
            )
    if not _CHECKSUM.fullmatch(ref.checksum):
        raise FieldError(
            join(path, "checksum"), phrase("is {checksum}, not name:hex", checksum=_short(ref.checksum))
        )
    return ref


def _decode_tensor(value: Any, path: str) -> TensorValue:
    tensor: TensorValue = decode_fields(TensorValue, value, path)
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        raise FieldError(
            join(path, "dtype"), phrase("is {dtype}, which is not a known dtype", dtype=_short(tensor.dtype))
        )
    size = checked_size(tensor.shape, dtype.itemsize)
    if size is None:
        raise FieldError(
            join(path, "shape"), phrase("is {shape}, which no array can have", shape=_short(tensor.shape))
        )
    if tensor.ref is not None and tensor.ref.nbytes != size:
        shape = "x".join(map(str, tensor.shape)) or "scalar"
        raise FieldError(
            join(path, "ref.nbytes"),
            phrase(
                "is {nbytes}, but {dtype} {shape} has {size} bytes",
                nbytes=tensor.ref.nbytes,
                dtype=tensor.dtype,
                shape=shape,
                size=size,
            ),
        )
    return tensor


def _encode_leaf(value: Any, path: str) -> Any:
    if isinstance(value, TensorValue):
        return {"$tensor": encode_fields(value, path)}
    data = encode_json(value, path)
    _decode_leaf(data, path)
    return data


def _decode_leaf(value: Any, path: str) -> Leaf:
    if isinstance(value, dict) and value.keys() == {"$tensor"}:
        return _decode_tensor(value["$tensor"], path)
    leaf = decode_json(value, path)
    if leaf is None or isinstance(leaf, (bool, int, float, str)):
        return leaf
    if isinstance(leaf, dict) and all(isinstance(item, str) for pair in leaf.items() for item in pair):
        return leaf
    raise FieldError(
        path, phrase("is {value}, not a tensor, a plain value or a description", value=_short(value))
    )


def check_structure(value: Structure, path: str) -> None:
    """Raise a ``FieldError`` unless the shape is built from the slots of the leaves."""
    _check_shape(value.shape, value.leaves, join(path, "shape"))


def _encode_structure(value: Any, path: str) -> Any:
    check_structure(value, path)
    return encode_fields(value, path)


def _decode_structure(value: Any, path: str) -> Structure:
    structure: Structure = decode_fields(Structure, value, path)
    check_structure(structure, path)
    return structure


def _check_shape(shape: Any, leaves: Mapping[str, Leaf], path: str) -> None:
    """Every slot named in the shape is a leaf, every container is one of the known kinds."""
    match shape:
        case str() if shape in leaves:
            children: Any = ()
        case ["tuple" | "list", list(children)]:
            pass
        case ["dict", dict(items)] | ["object", str(), dict(items)]:
            children = items.values()
        case _:
            raise FieldError(
                path, phrase("is {shape}, neither a slot nor a container of slots", shape=_short(shape))
            )
    for child in children:
        _check_shape(child, leaves, path)


_INT = _plain(int)
_STR = _plain(str)
_FLOAT = Codec(_encode_float, _decode_float)
_JSON = Codec(encode_json, decode_json)
_SETTINGS = Codec(_encode_settings, _decode_settings)
_REF = Codec(encode_fields, _decode_ref)
_TENSOR = Codec(encode_fields, _decode_tensor)

# By the field's annotation in records.py, as it is written there.
CODECS: dict[str, Codec] = {
    "int": _INT,
    "int | None": _optional(_INT),
    "str": _STR,
    "str | None": _optional(_STR),
    "bool": _plain(bool),
    "float": _FLOAT,
    "float | None": _optional(_FLOAT),
    "tuple[int, ...]": _tuple_of(_INT),
    "tuple[str, ...]": _tuple_of(_STR),
    "Mapping[str, str]": _mapping_of(_STR),
    "Mapping[str, int]": _mapping_of(_INT),
    "Mapping[str, Any]": _SETTINGS,
    "Mapping[str, Any] | None": _optional(_SETTINGS),
    "Any": _JSON,
    "TensorRef | None": _optional(_REF),
    "TensorValue | None": _optional(_TENSOR),
    "Leaf": Codec(_encode_leaf, _decode_leaf),
    "Mapping[str, Leaf]": _mapping_of(Codec(_encode_leaf, _decode_leaf)),
    "Structure": Codec(_encode_structure, _decode_structure),
}
