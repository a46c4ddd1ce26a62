"""NumPy's ``.npy`` and ``.npz`` files, read strictly.

The header is matched by a pattern instead of being evaluated, and the shape is compared
with the bytes that are there before an array is made. An object array (what ``reprod_log``
saves) goes through ``unpickle.py``.
"""

from __future__ import annotations

import errno
import os
import re
import struct
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, checked_size
from parfocal.run.standins import MalformedError, check_code_points, dtype_from_spec, with_byte_order
from parfocal.run.storage import map_file, open_for_reading, storage_errors
from parfocal.run.unpickle import load_pickle

NPY_MAGIC = b"\x93NUMPY"
NPZ_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
MAX_NPY_HEADER_BYTES = 2**16

# What a zip may grow to when it is unpacked, whichever is larger.
MAX_NPZ_BYTES = 2**30
MAX_NPZ_RATIO = 64

_LENGTH_FORMATS = {1: "<H", 2: "<I", 3: "<I"}
_HEADER_ITEM = re.compile(
    r"""\s*['"](?P<key>\w+)['"]\s*:\s*"""
    r"""(?P<value>True|False|'[^'\\]*'|"[^"\\]*"|\([0-9L,\s]*\))\s*(?:,|(?=\}))"""
)
_EXTENT = re.compile(r"[0-9]{1,19}L?")
_HEADER_KEYS = {"descr", "fortran_order", "shape"}

# ml_dtypes' own types have no specification of their own in this format; these are unambiguous.
_EXTENDED_DESCRIPTIONS = {"<V2": "bfloat16", "<f1": "float8_e5m2"}

# What zipfile raises on a damaged archive.
ZIP_ERRORS = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    IndexError,  # a name that begins with a zero byte
    RuntimeError,  # encrypted, or (NotImplementedError) packed in a way that zipfile lacks
)


@dataclass(frozen=True, slots=True)
class NpyHeader:
    dtype: np.dtype[Any]
    fortran: bool
    shape: tuple[int, ...]
    end: int  # where the values begin


def load_npy(path: Path) -> Any:
    """The array, memory-mapped; of an object array, what it holds."""
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        size = os.fstat(file.fileno()).st_size
        header = _read_header(file, str(path))
        if header.dtype.kind == "O":
            return _unpacked(load_pickle(file, size - header.end, str(path)))
    return _build(header, map_file(path)[header.end :], str(path))


def load_npz(path: Path) -> dict[str, Any]:
    """All members, by name without ``.npy``."""
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        limit = max(MAX_NPZ_BYTES, MAX_NPZ_RATIO * os.fstat(file.fileno()).st_size)
        try:
            with zipfile.ZipFile(file) as archive:
                _check_archive(archive, path, limit)
                return {
                    info.filename.removesuffix(".npy"): _load_member(archive, info, path)
                    for info in archive.infolist()
                }
        except ZIP_ERRORS as error:
            raise FileFormatError(
                phrase("{path}: damaged zip archive: {error}", path=path, error=error)
            ) from None
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise FileFormatError(
                phrase("{path}: damaged zip archive: an offset is before its start", path=path)
            ) from None


def _check_archive(archive: zipfile.ZipFile, path: Path, limit: int) -> None:
    names = [info.filename.removesuffix(".npy") for info in archive.infolist()]
    if len(set(names)) != len(names):
        raise FileFormatError(phrase("{path}: two members have the same name", path=path))
    for info in archive.infolist():
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise FileFormatError(
                phrase(
                    "{path}: member {filename} is packed in a way NumPy does not use",
                    path=path,
                    filename=repr(info.filename),
                )
            )
    if any(name.endswith("data.pkl") for name in names):
        raise FileFormatError(
            phrase("{path} is a torch checkpoint", path=path),
            hint=phrase("turn it into arrays: parfocal convert"),
        )
    total = sum(info.file_size for info in archive.infolist())
    if total > limit:
        raise FileFormatError(
            phrase(
                "{path}: unpacks to {total} bytes; at most {limit} are allowed",
                path=path,
                total=total,
                limit=limit,
            ),
            hint=phrase(
                "the limit is {max_npz_ratio} times the file's size, and at least {max_npz_bytes} bytes",
                max_npz_ratio=MAX_NPZ_RATIO,
                max_npz_bytes=MAX_NPZ_BYTES,
            ),
        )


def _load_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Any:
    name = f"{path}, member {info.filename!r}"
    with archive.open(info) as member:
        header = _read_header(member, name)
        if header.dtype.kind == "O":
            return _unpacked(load_pickle(member, info.file_size - header.end, name))
        needed = _values_size(header, name)
        # One byte more than needed, so that what follows is noticed.
        data = member.read(needed + 1)
        return _build(header, np.frombuffer(data, np.uint8), name)


def _unpacked(value: Any) -> Any:
    """``numpy.save`` of a dictionary wraps it into an array without dimensions."""
    if isinstance(value, np.ndarray) and value.dtype == object and value.shape == ():
        return value.item()
    return value


def _read_header(file: IO[bytes], name: str) -> NpyHeader:
    start = file.read(len(NPY_MAGIC) + 2)
    if len(start) < len(NPY_MAGIC) + 2 or not start.startswith(NPY_MAGIC):
        raise FileFormatError(
            phrase(
                "{name}: not a NumPy array: it does not begin with {npy_magic}",
                name=name,
                npy_magic=repr(NPY_MAGIC),
            )
        )
    length_format = _LENGTH_FORMATS.get(start[-2])
    if length_format is None:
        raise FileFormatError(
            phrase(
                "{name}: .npy version {major}.{minor}; 1.0 to 3.0 are known",
                name=name,
                major=start[-2],
                minor=start[-1],
            )
        )
    field = file.read(struct.calcsize(length_format))
    if len(field) < struct.calcsize(length_format):
        raise FileFormatError(phrase("{name}: cut within the header", name=name))
    (length,) = struct.unpack(length_format, field)
    if length > MAX_NPY_HEADER_BYTES:
        raise FileFormatError(
            phrase(
                "{name}: a header of {length} bytes; at most {max_npy_header_bytes} are allowed",
                name=name,
                length=length,
                max_npy_header_bytes=MAX_NPY_HEADER_BYTES,
            )
        )
    text = file.read(length)
    if len(text) < length:
        raise FileFormatError(phrase("{name}: cut within the header", name=name))
    try:
        return _parse_header(text.decode("utf-8" if start[-2] == 3 else "latin1"), file.tell())
    except (MalformedError, UnicodeDecodeError) as error:
        raise FileFormatError(phrase("{name}: {error}", name=name, error=error)) from None


def _parse_header(text: str, end: int) -> NpyHeader:
    text = text.strip()
    values: dict[str, str] = {}
    position = 1
    while match := _HEADER_ITEM.match(text, position):
        values[match["key"]] = match["value"]
        position = match.end()
    if not text.startswith("{") or text[position:].strip() != "}" or values.keys() != _HEADER_KEYS:
        raise MalformedError(phrase("not the header of a plain array: {text}", text=repr(text[:120])))
    if values["fortran_order"] not in ("True", "False"):
        raise MalformedError(phrase("not the header of a plain array: {text}", text=repr(text[:120])))
    shape = _parse_shape(values["shape"])
    return NpyHeader(_parse_dtype(values["descr"]), values["fortran_order"] == "True", shape, end)


def _parse_shape(value: str) -> tuple[int, ...]:
    parts = [part.strip() for part in value.strip("()").split(",")]
    extents = parts if parts[-1] else parts[:-1]
    if not value.startswith("(") or not all(map(_EXTENT.fullmatch, extents)):
        raise MalformedError(
            phrase("not the header of a plain array: its shape is {value}", value=repr(value[:60]))
        )
    return tuple(int(extent.rstrip("L")) for extent in extents)  # Python 2 wrote 3L


def _parse_dtype(value: str) -> np.dtype[Any]:
    description = value.strip("'\"")
    if description in _EXTENDED_DESCRIPTIONS:
        return DTYPES[_EXTENDED_DESCRIPTIONS[description]]
    order, spec = (
        (description[0], description[1:]) if description[:1] in tuple("<>|=") else ("=", description)
    )
    return with_byte_order(dtype_from_spec(spec), order)


def _values_size(header: NpyHeader, name: str) -> int:
    needed = checked_size(header.shape, header.dtype.itemsize)
    if needed is None or header.dtype.itemsize == 0:
        raise FileFormatError(
            phrase(
                "{name}: no array can have shape {shape} and dtype {dtype}",
                name=name,
                shape=header.shape,
                dtype=header.dtype,
            )
        )
    return needed


def _build(header: NpyHeader, data: NDArray[np.uint8], name: str) -> NDArray[Any]:
    needed = _values_size(header, name)
    if data.nbytes != needed:
        found = (
            phrase("more follow") if data.nbytes > needed else phrase("{count} are there", count=data.nbytes)
        )
        raise FileFormatError(
            phrase(
                "{name}: {dtype} {shape} needs {needed} bytes of values, {found}",
                name=name,
                dtype=header.dtype,
                shape=header.shape,
                needed=needed,
                found=found,
            ),
            hint=phrase("the file is damaged, or holds several arrays"),
        )
    if header.dtype.kind == "U":
        try:
            check_code_points(data.tobytes(), header.dtype)
        except MalformedError as error:
            raise FileFormatError(phrase("{name}: {error}", name=name, error=error)) from None
    return data.view(header.dtype).reshape(header.shape, order="F" if header.fortran else "C")
