"""``.safetensors`` files as memory-mapped arrays, with every offset checked.

The format is eight bytes of length, a JSON header and the raw values. It is read here
because the library's NumPy loader copies, and lacks bfloat16 and the 8-bit floats.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, checked_size
from parfocal.run.jsonvalues import FieldError
from parfocal.run.storage import map_file

MAX_HEADER_BYTES = 100_000_000  # the format's own limit

_DTYPE_NAMES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}
DTYPE_CODES = {name: code for code, name in _DTYPE_NAMES.items()}


def is_safetensors(start: bytes, size: int) -> bool:
    """Whether a file of this size that begins with these (nine or more) bytes looks like one."""
    return len(start) > 8 and start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= size - 8


def load_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """Name -> read-only array, read from disk as it is looked at."""
    try:
        header, data = _read(path)
        header.pop("__metadata__", None)
        return _arrays(header, data)
    except FieldError as error:
        raise FileFormatError(phrase("{path}: {error}", path=path, error=error)) from None


def read_metadata(path: Path) -> dict[str, str]:
    """What the file says about itself, e.g. ``{"format": "pt"}``."""
    try:
        metadata = _read(path)[0].get("__metadata__")
    except FieldError as error:
        raise FileFormatError(phrase("{path}: {error}", path=path, error=error)) from None
    if not isinstance(metadata, dict):
        return {}
    return {key: value for key, value in metadata.items() if isinstance(value, str)}


def _read(path: Path) -> tuple[dict[str, Any], NDArray[np.uint8]]:
    """The header, and the bytes of the values."""
    data = map_file(path)
    length = int.from_bytes(data[:8].tobytes(), "little")
    if data.nbytes < 8 or length > min(data.nbytes - 8, MAX_HEADER_BYTES):
        raise FileFormatError(
            phrase(
                "{path}: a header of {length} bytes in a file of {nbytes}",
                path=path,
                length=length,
                nbytes=data.nbytes,
            )
        )
    return _parse(data[8 : 8 + length].tobytes()), data[8 + length :]


def _parse(text: bytes) -> dict[str, Any]:
    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise FieldError("header", phrase("is not JSON: {error}", error=error)) from None
    if not isinstance(header, dict):
        raise FieldError("header", phrase("is not a JSON object"))
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise FieldError("header", phrase("has one name twice"))
    return result


def _arrays(header: dict[str, Any], data: NDArray[np.uint8]) -> dict[str, NDArray[Any]]:
    """The arrays, which must cover the data without gaps or overlaps, as the format demands."""
    arrays = {}
    position = 0
    spans = {name: _span(name, entry) for name, entry in header.items()}
    for name, (dtype, shape, begin, end) in sorted(spans.items(), key=lambda item: item[1][2:]):
        size = checked_size(shape, dtype.itemsize)
        if begin != position or size != end - begin or end > data.nbytes:
            raise FieldError(
                f"tensor {name!r}",
                phrase(
                    "({dtype} {shape}) lies at {begin} to {end}; expected {position} to {wanted} "
                    "within {nbytes} bytes",
                    dtype=dtype,
                    shape=tuple(shape),
                    begin=begin,
                    end=end,
                    position=position,
                    wanted=None if size is None else position + size,
                    nbytes=data.nbytes,
                ),
            )
        arrays[name] = data[begin:end].view(dtype).reshape(shape)
        position = end
    if position != data.nbytes:
        raise FieldError(
            "header",
            phrase(
                "describes {position} bytes of values, {nbytes} are there",
                position=position,
                nbytes=data.nbytes,
            ),
        )
    return {name: arrays[name] for name in header}


def _span(name: str, entry: Any) -> tuple[np.dtype[Any], list[int], int, int]:
    match entry:
        case {"dtype": str(code), "shape": list(shape), "data_offsets": [int(begin), int(end)]}:
            pass
        case _:
            raise FieldError(f"tensor {name!r}", phrase("has no dtype, shape and data_offsets"))
    dtype = DTYPES.get(_DTYPE_NAMES.get(code, ""))
    if dtype is None:
        raise FieldError(
            f"tensor {name!r}",
            phrase(
                "has dtype {code}; known are {dtype_names}",
                code=repr(code),
                dtype_names=", ".join(_DTYPE_NAMES),
            ),
        )
    if not all(type(extent) is int for extent in (*shape, begin, end)):
        raise FieldError(f"tensor {name!r}", phrase("has a shape or offsets that are not integers"))
    return dtype, shape, begin, end
