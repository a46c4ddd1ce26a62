"""Records to JSON lines and back, strictly.

A record is a JSON object with a ``type`` tag; its fields are coded by their annotation in
``records.py``, looked up in ``CODECS``, so a new record class is one entry in
``RECORD_TYPES``. What cannot be read back exactly is refused on writing; on reading, the
first wrong field is named together with its file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, NoReturn

from parfocal.errors import FileFormatError, InputError
from parfocal.run.dtypes import DTYPES, checked_size
from parfocal.run.jsonvalues import FieldError, decode_json, encode_json
from parfocal.run.records import (
    SCHEMA_VERSION,
    CallRecord,
    Contents,
    GradientRecord,
    Leaf,
    Record,
    RunHeader,
    StateRecord,
    StepRecord,
    Structure,
    TensorRef,
    TensorValue,
    ValueRecord,
)

RECORD_TYPES: dict[str, type[Any]] = {
    "call": CallRecord,
    "gradient": GradientRecord,
    "state": StateRecord,
    "step": StepRecord,
    "value": ValueRecord,
}
_TAGS = {cls: tag for tag, cls in RECORD_TYPES.items()}
_CHECKSUM = re.compile(r"[a-z0-9_]+:[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Codec:
    """How one kind of field becomes JSON and comes back; both raise ``FieldError``."""

    encode: Callable[[Any, str], Any]
    decode: Callable[[Any, str], Any]


def encode_record(record: Record) -> bytes:
    """One line, newline included."""
    tag = _TAGS.get(type(record))
    if tag is None:
        raise InputError(
            f"cannot store a {type(record).__name__}; records are {', '.join(c.__name__ for c in _TAGS)}"
        )
    return _dump({"type": tag, **_encoded(record)}) + b"\n"


def decode_record(line: bytes, where: str) -> Record:
    """The record of one line; ``where`` names file and line in errors."""
    with _Reading(where):
        data = _parse_object(line)
        tag = data.pop("type", None)
        cls = RECORD_TYPES.get(tag) if isinstance(tag, str) else None
        if cls is None:
            raise FieldError("type", f"is {tag!r}; allowed are {', '.join(RECORD_TYPES)}")
        record: Record = _decode_fields(cls, data, "")
        return record


def encode_header(header: RunHeader, contents: Contents | None) -> bytes:
    """The text of ``run.json``; ``contents`` is known only once the run is closed."""
    data = {"type": "run", **_encoded(header)}
    if contents is not None:
        data["contents"] = _encoded(contents)
    return _dump(data, indent=2) + b"\n"


def decode_header(text: bytes, where: str) -> tuple[RunHeader, Contents | None]:
    """Header and contents of a ``run.json``; a newer schema is refused by its number."""
    with _Reading(where):
        data = _parse_object(text)
        if data.pop("type", None) != "run":
            raise FieldError("type", "is not 'run': this file does not describe a Run")
        _check_schema(data.get("schema"), where)
        contents = data.pop("contents", None)
        header: RunHeader = _decode_fields(RunHeader, data, "")
        if header.ranks < 1:
            raise FieldError("ranks", f"is {header.ranks}, at least 1 is needed")
        if contents is None:
            return header, None
        return header, _decode_dataclass(Contents)(contents, "contents")


def _check_schema(schema: object, where: str) -> None:
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise FieldError("schema", f"is {schema!r}, not a version number")
    if schema > SCHEMA_VERSION:
        raise FileFormatError(
            f"{where}: schema version {schema}; this parfocal reads up to {SCHEMA_VERSION}",
            hint="the run was written by a newer parfocal: upgrade",
        )


class _Reading:
    """Everything that can go wrong inside is one ``FileFormatError`` that says where."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, FieldError):
            raise FileFormatError(f"{self.where}: field {error.field!r} {error.problem}") from None
        if isinstance(error, RecursionError):
            raise FileFormatError(f"{self.where}: nested too deeply") from None
        if isinstance(error, (UnicodeDecodeError, ValueError)):  # JSONDecodeError is a ValueError
            raise FileFormatError(f"{self.where}: not a JSON object: {error}") from None


def _dump(data: object, indent: int | None = None) -> bytes:
    separators = (",", ":") if indent is None else None
    return json.dumps(data, allow_nan=False, indent=indent, separators=separators).encode("ascii")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _parse_object(text: bytes) -> dict[str, Any]:
    data = json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    if not isinstance(data, dict):
        raise ValueError(f"found {type(data).__name__}")
    return data


# Dataclasses, field by field.


def _encoded(instance: Any) -> dict[str, Any]:
    try:
        return _encode_dataclass(instance, "")
    except FieldError as error:
        name = type(instance).__name__
        raise InputError(f"cannot store {name}: field {error.field!r} {error.problem}") from None
    except RecursionError:
        raise InputError(f"cannot store {type(instance).__name__}: nested too deeply") from None


def _encode_dataclass(instance: Any, path: str) -> dict[str, Any]:
    data = {}
    for item in fields(instance):
        value = getattr(instance, item.name)
        if value is None and item.default is None:
            continue
        data[item.name] = CODECS[str(item.type)].encode(value, _join(path, item.name))
    return data


def _decode_dataclass(cls: type[Any]) -> Callable[[Any, str], Any]:
    def decode(value: Any, path: str) -> Any:
        return _decode_fields(cls, _expect(dict, value, path), path)

    return decode


def _decode_fields(cls: type[Any], data: dict[str, Any], path: str) -> Any:
    values = {}
    known = {item.name: item for item in fields(cls)}
    for name in data:
        if name not in known:
            raise FieldError(_join(path, name), f"is unknown to {cls.__name__}")
    for name, item in known.items():
        if name in data:
            values[name] = CODECS[str(item.type)].decode(data[name], _join(path, name))
        elif item.default is MISSING and item.default_factory is MISSING:
            raise FieldError(_join(path, name), "is missing")
    return cls(**values)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _expect(kind: type[Any], value: Any, path: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise FieldError(path, f"is {_short(value)}, not {kind.__name__}")
    return value


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


# One pair of functions per kind of field.


def _plain(kind: type[Any]) -> Codec:
    def encode(value: Any, path: str) -> Any:
        item = value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value
        return decode(item, path)

    def decode(value: Any, path: str) -> Any:
        _expect(kind, value, path)
        if kind is int and not -(2**63) <= value < 2**63:
            raise FieldError(path, "does not fit into 64 bits")
        return value

    return Codec(encode, decode)


def _encode_float(value: Any, path: str) -> Any:
    return encode_json(float(value) if hasattr(value, "dtype") else value, path)


def _decode_float(value: Any, path: str) -> float:
    number = decode_json(value, path)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise FieldError(path, f"is {_short(value)}, not a number")
    try:
        return float(number)
    except OverflowError:
        raise FieldError(path, "does not fit into a float") from None


def _optional(codec: Codec) -> Codec:
    return Codec(
        lambda value, path: None if value is None else codec.encode(value, path),
        lambda value, path: None if value is None else codec.decode(value, path),
    )


def _mapping_of(codec: Codec) -> Codec:
    def convert(function: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def apply(value: Any, path: str) -> dict[str, Any]:
            items = _expect(Mapping, value, path).items()
            return {_expect(str, key, path): function(item, _join(path, key)) for key, item in items}

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
        _expect(str, key, path): encode_json(item, _join(path, key))
        for key, item in _expect(Mapping, value, path).items()
    }


def _decode_settings(value: Any, path: str) -> Any:
    items = _expect(dict, value, path).items()
    return {key: decode_json(item, _join(path, key)) for key, item in items}


def _decode_ref(value: Any, path: str) -> TensorRef:
    ref: TensorRef = _decode_dataclass(TensorRef)(value, path)
    for name in ("segment", "offset", "nbytes", "rank"):
        if getattr(ref, name) < 0:
            raise FieldError(_join(path, name), f"is {getattr(ref, name)}, must not be negative")
    if not _CHECKSUM.fullmatch(ref.checksum):
        raise FieldError(_join(path, "checksum"), f"is {_short(ref.checksum)}, not name:hex")
    return ref


def _decode_tensor(value: Any, path: str) -> TensorValue:
    tensor: TensorValue = _decode_dataclass(TensorValue)(value, path)
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        raise FieldError(_join(path, "dtype"), f"is {_short(tensor.dtype)}, which is not a known dtype")
    size = checked_size(tensor.shape, dtype.itemsize)
    if size is None:
        raise FieldError(_join(path, "shape"), f"is {_short(tensor.shape)}, which no array can have")
    if tensor.ref is not None and tensor.ref.nbytes != size:
        shape = "x".join(map(str, tensor.shape)) or "scalar"
        raise FieldError(
            _join(path, "ref.nbytes"),
            f"is {tensor.ref.nbytes}, but {tensor.dtype} {shape} has {size} bytes",
        )
    return tensor


def _encode_leaf(value: Any, path: str) -> Any:
    if isinstance(value, TensorValue):
        return {"$tensor": _encode_dataclass(value, path)}
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
    raise FieldError(path, f"is {_short(value)}, not a tensor, a plain value or a description")


def _encode_structure(value: Any, path: str) -> Any:
    _check_shape(value.shape, value.leaves, _join(path, "shape"))
    return _encode_dataclass(value, path)


def _decode_structure(value: Any, path: str) -> Structure:
    structure: Structure = _decode_dataclass(Structure)(value, path)
    _check_shape(structure.shape, structure.leaves, _join(path, "shape"))
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
            raise FieldError(path, f"is {_short(shape)}, neither a slot nor a container of slots")
    for child in children:
        _check_shape(child, leaves, path)


_INT = _plain(int)
_STR = _plain(str)
_FLOAT = Codec(_encode_float, _decode_float)
_JSON = Codec(encode_json, decode_json)
_SETTINGS = Codec(_encode_settings, _decode_settings)
_REF = Codec(_encode_dataclass, _decode_ref)
_TENSOR = Codec(_encode_dataclass, _decode_tensor)

# By the field's annotation in records.py, as it is written there.
CODECS: dict[str, Codec] = {
    "int": _INT,
    "int | None": _optional(_INT),
    "str": _STR,
    "str | None": _optional(_STR),
    "bool": _plain(bool),
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
