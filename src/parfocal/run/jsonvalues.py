"""Any plain Python value as JSON, losslessly.

JSON has no tuples, no NaN and no arrays, and only string keys; such a value is written as
an object with one tag that begins with ``$`` (``{"$tuple": [1, 2]}``), and comes back as
what it was. NumPy scalars become Python numbers.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, checked_size, dtype_name

MAX_INT_BITS = 4096  # Python refuses to read back integers of more than 4300 digits


class FieldError(Exception):
    """One field is wrong; the caller adds the file and the line, or the record."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(phrase("{field} {problem}", field=field, problem=problem))
        self.field = field
        self.problem = problem


def encode_json(value: Any, path: str) -> Any:
    """The value as something ``json.dumps`` writes; ``path`` names it in errors."""
    kind = type(value)
    if kind is str or kind is bool or value is None or (kind is float and math.isfinite(value)):
        return value  # nearly all there is
    if kind is int:
        return _encode_int(value, path)
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return _encode_int(value, path)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, tuple):
        return {"$tuple": _encode_items(value, path)}
    if isinstance(value, list):
        return _encode_items(value, path)
    if isinstance(value, Mapping):
        return _encode_mapping(value, path)
    if isinstance(value, np.ndarray):
        return {"$array": encode_array(value, path)}
    raise FieldError(
        path,
        phrase("is a {kind}, which has no plain form; store its repr instead", kind=type(value).__name__),
    )


def decode_json(value: Any, path: str) -> Any:
    """What ``encode_json`` was given."""
    if isinstance(value, list):
        return [decode_json(item, f"{path}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        (tag,) = value
        if tag.startswith("$"):
            if tag not in _DECODERS:
                raise FieldError(path, phrase("has the unknown tag {tag}", tag=repr(tag)))
            return _DECODERS[tag](value[tag], path)
    return {key: decode_json(item, f"{path}.{key}") for key, item in value.items()}


def _encode_int(value: int, path: str) -> int:
    if value.bit_length() > MAX_INT_BITS:
        raise FieldError(
            path,
            phrase(
                "is an integer of {bits} bits; at most {max_int_bits} are allowed",
                bits=value.bit_length(),
                max_int_bits=MAX_INT_BITS,
            ),
        )
    return int(value)


def _encode_items(values: list[Any] | tuple[Any, ...], path: str) -> list[Any]:
    return [encode_json(item, f"{path}[{index}]") for index, item in enumerate(values)]


def _encode_mapping(value: Mapping[Any, Any], path: str) -> Any:
    if all(isinstance(key, str) and not key.startswith("$") for key in value):
        return {key: encode_json(item, f"{path}.{key}") for key, item in value.items()}
    pairs = value.items()
    return {"$dict": [[encode_json(k, path), encode_json(v, f"{path}.{k}")] for k, v in pairs]}


def encode_array(array: np.ndarray[Any, Any], path: str) -> dict[str, Any]:
    """What stands behind the tag ``$array``."""
    name = dtype_name(array.dtype)
    if name is None:
        raise FieldError(path, phrase("is an array of {dtype}, which cannot be stored", dtype=array.dtype))
    data = np.ascontiguousarray(array, dtype=DTYPES[name]).tobytes()
    return {"dtype": name, "shape": list(array.shape), "data": base64.b64encode(data).decode("ascii")}


def _decode_float(value: Any, path: str) -> float:
    if value not in ("nan", "inf", "-inf"):
        raise FieldError(
            path, phrase("has {value} as $float; allowed are nan, inf and -inf", value=repr(value))
        )
    return float(value)


def _decode_tuple(value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise FieldError(path, phrase("has a $tuple that is not a list"))
    return tuple(decode_json(value, path))


def _decode_dict(value: Any, path: str) -> dict[Any, Any]:
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise FieldError(path, phrase("has a $dict that is not a list of pairs"))
    keys = [decode_json(key, path) for key, _ in value]
    if not all(_hashable(key) for key in keys):
        raise FieldError(path, phrase("has a $dict with a key that cannot be one"))
    return {key: decode_json(item, f"{path}.{key}") for key, (_, item) in zip(keys, value, strict=True)}


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _decode_array(value: Any, path: str) -> np.ndarray[Any, Any]:
    match value:
        case {"dtype": str(name), "shape": list(shape), "data": str(text), **rest} if not rest:
            dtype = DTYPES.get(name)
        case _:
            raise FieldError(path, phrase("has an $array without dtype, shape and data"))
    if dtype is None or not all(type(extent) is int for extent in shape):
        raise FieldError(path, phrase("has an $array of unknown dtype {name} or bad shape", name=repr(name)))
    size = checked_size(shape, dtype.itemsize)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise FieldError(
            path, phrase("has an $array whose data is not base64: {error}", error=error)
        ) from None
    if size != len(data):
        raise FieldError(
            path, phrase("has an $array of {count} bytes where {size} are needed", count=len(data), size=size)
        )
    return np.frombuffer(data, dtype=dtype).reshape(shape)


_DECODERS: dict[str, Callable[[Any, str], Any]] = {
    "$float": _decode_float,
    "$tuple": _decode_tuple,
    "$dict": _decode_dict,
    "$array": _decode_array,
}
