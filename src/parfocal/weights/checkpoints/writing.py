"""Writes checkpoints of both frameworks tensor by tensor, without either of them.

A writer gets the list of tensors first (names, shapes, dtypes, ties) and then their values one at
a time, so it never holds more than one. Each format is one generator of chunks of bytes.
"""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from parfocal.errors import InputError, UnsupportedError
from parfocal.phrases import joined, phrase
from parfocal.run.tensorfile import DTYPE_CODES
from parfocal.weights.checkpoints.archives import LOCAL_HEADER, STORAGES, UNTYPED
from parfocal.weights.checkpoints.tensors import Array
from parfocal.weights.views import Shape

ALIGNMENT = 64  # of a tensor's bytes in a .pth, as torch itself aligns them
PADDING_FIELD = b"FB"  # the name of the extra field that makes room for it
ZIP64_FIELD = 20  # bytes that zipfile adds to the header of a large member
LARGE = 2**31 - 1
EPOCH = (1980, 1, 1, 0, 0, 0)  # no time stamps: the same tensors give the same file


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A tensor of the file to be written; ``tied_to`` names an earlier one that it is the same as."""

    name: str
    shape: Shape
    dtype: np.dtype[Any]
    tied_to: str | None = None

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


Values = Callable[[PlannedTensor], Array]  # the values of a tensor, C-contiguous


def write_safetensors(
    file: IO[bytes], tensors: Sequence[PlannedTensor], values: Values, framework: str
) -> None:
    """Eight bytes of length, a JSON header, the values. Ties are written out: the format has none."""
    ordered = sorted(tensors, key=lambda each: -each.dtype.itemsize)  # every tensor aligned to its elements
    header: dict[str, Any] = {"__metadata__": {"format": {"torch": "pt", "paddle": "pd"}[framework]}}
    position = 0
    for each in ordered:
        code = _known(each, DTYPE_CODES, ".safetensors")
        header[each.name] = {
            "dtype": code,
            "shape": list(each.shape),
            "data_offsets": [position, position + each.nbytes],
        }
        position += each.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    file.write(struct.pack("<Q", len(text)) + text)
    for each in ordered:
        file.write(_bytes(values(each)))


# The dtypes that paddle.load gives back as they were, by NumPy's code for them.
PADDLE_DTYPES = {
    **{name: np.dtype(name).str[1:] for name in ("float16", "float32", "float64", "complex64", "complex128")},
    **{name: np.dtype(name).str[1:] for name in ("bool", "uint8", "int8", "int16", "int32", "int64")},
    "bfloat16": "u2",  # paddle stores its bits, and reads uint16 as bfloat16
}


def write_pdparams(file: IO[bytes], tensors: Sequence[PlannedTensor], values: Values, framework: str) -> None:
    """A pickle of a dictionary of arrays, opcode by opcode. A tied tensor is a reference to the first."""
    numbers: dict[str, int] = {}
    file.write(pickle.PROTO + b"\x04" + pickle.EMPTY_DICT + pickle.MARK)
    for each in tensors:
        code = _known(each, PADDLE_DTYPES, ".pdparams")
        file.write(_text(each.name))
        if each.tied_to is not None:
            file.write(pickle.LONG_BINGET + struct.pack("<I", numbers[each.tied_to]))
            continue
        numbers[each.name] = len(numbers)
        file.write(_array_start(code, each.shape))
        length = (
            pickle.BINBYTES + struct.pack("<I", each.nbytes)
            if each.nbytes < 2**32
            else pickle.BINBYTES8 + struct.pack("<Q", each.nbytes)
        )
        file.write(length)
        file.write(_bytes(values(each)))
        file.write(pickle.TUPLE + pickle.BUILD + pickle.LONG_BINPUT + struct.pack("<I", numbers[each.name]))
    file.write(pickle.SETITEMS + pickle.STOP)


def _array_start(code: str, shape: Shape) -> bytes:
    """NumPy's own way to pickle an array, up to its bytes, under names that every NumPy 1 and 2 knows."""
    empty = pickle.BININT1 + b"\x00" + pickle.TUPLE1 + pickle.SHORT_BINBYTES + b"\x01b" + pickle.TUPLE3
    order = _text("|" if code[1:] == "1" else "<")
    nothing = pickle.NONE * 3 + (pickle.BININT + struct.pack("<i", -1)) * 2 + pickle.BININT1 + b"\x00"
    dtype = (
        _global("numpy", "dtype")
        + (_text(code) + pickle.NEWFALSE + pickle.NEWTRUE + pickle.TUPLE3 + pickle.REDUCE)
        + (pickle.MARK + pickle.BININT1 + b"\x03" + order + nothing + pickle.TUPLE + pickle.BUILD)
    )
    return (
        _global("numpy.core.multiarray", "_reconstruct")
        + (_global("numpy", "ndarray") + empty + pickle.REDUCE)
        + (pickle.MARK + pickle.BININT1 + b"\x01" + _integers(shape) + dtype + pickle.NEWFALSE)
    )


TORCH_DTYPES = STORAGES | dict.fromkeys(UNTYPED, "UntypedStorage")


def write_pth(file: IO[bytes], tensors: Sequence[PlannedTensor], values: Values, framework: str) -> None:
    """A zip of stored members: the pickle that describes the tensors, and one member for each storage."""
    own = [each for each in tensors if each.tied_to is None]
    keys = {each.name: str(number) for number, each in enumerate(own)}
    root = "archive"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        _member(archive, file, f"{root}/data.pkl", _torch_pickle(tensors, keys))
        _member(archive, file, f"{root}/byteorder", b"little")
        for each in own:
            _member(archive, file, f"{root}/data/{keys[each.name]}", _bytes(values(each)))
        _member(archive, file, f"{root}/version", b"3\n")


def _member(archive: zipfile.ZipFile, file: IO[bytes], name: str, data: bytes | memoryview) -> None:
    info = zipfile.ZipInfo(name, EPOCH)
    info.file_size = len(data)
    large = len(data) > LARGE
    start = file.tell() + LOCAL_HEADER + len(name.encode()) + len(PADDING_FIELD) + 2
    padding = -(start + ZIP64_FIELD * large) % ALIGNMENT
    info.extra = PADDING_FIELD + struct.pack("<H", padding) + b"Z" * padding
    with archive.open(info, "w", force_zip64=large) as member:
        member.write(data)


def _torch_pickle(tensors: Sequence[PlannedTensor], keys: dict[str, str]) -> bytes:
    """An ordered dictionary of ``torch._utils._rebuild_tensor_v2`` calls."""
    parts = [pickle.PROTO + b"\x02", _old_global("collections", "OrderedDict")]
    parts.append(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.MARK)
    for each in tensors:
        parts += [_text(each.name), _torch_tensor(each, keys[each.tied_to or each.name])]
    parts.append(pickle.SETITEMS + pickle.STOP)
    return b"".join(parts)


def _torch_tensor(each: PlannedTensor, key: str) -> bytes:
    count = int(np.prod(each.shape, dtype=object))
    strides = [int(np.prod(each.shape[axis + 1 :], dtype=object)) for axis in range(len(each.shape))]
    storage = _known(each, TORCH_DTYPES, ".pth")
    typed = each.dtype.name in STORAGES
    module = "torch" if typed else "torch.storage"
    identity = _text("storage") + _old_global(module, storage) + _text(key) + _text("cpu")
    identity += _integer(count if typed else each.nbytes)
    hooks = _old_global("collections", "OrderedDict") + pickle.EMPTY_TUPLE + pickle.REDUCE
    function = "_rebuild_tensor_v2" if typed else "_rebuild_tensor_v3"
    return (
        _old_global("torch._utils", function)
        + (pickle.MARK + pickle.MARK + identity + pickle.TUPLE + pickle.BINPERSID)
        + (_integer(0) + _integers(each.shape) + _integers(strides) + pickle.NEWFALSE + hooks)
        + (b"" if typed else _old_global("torch", each.dtype.name))
        + (pickle.TUPLE + pickle.REDUCE)
    )


# Opcodes with their arguments.


def _text(text: str) -> bytes:
    data = text.encode("utf-8", "surrogatepass")
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def _integer(number: int) -> bytes:
    if number < 2**31:
        return pickle.BININT + struct.pack("<i", number)
    data = pickle.encode_long(number)
    return pickle.LONG1 + struct.pack("<B", len(data)) + data


def _integers(numbers: Sequence[int]) -> bytes:
    return pickle.MARK + b"".join(map(_integer, numbers)) + pickle.TUPLE


def _global(module: str, name: str) -> bytes:
    return _text(module) + _text(name) + pickle.STACK_GLOBAL


def _old_global(module: str, name: str) -> bytes:
    return pickle.GLOBAL + f"{module}\n{name}\n".encode()


def _bytes(array: Array) -> memoryview:
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")


def _known(each: PlannedTensor, table: dict[str, str], suffix: str) -> str:
    code = table.get(each.dtype.name)
    if code is None:
        raise UnsupportedError(
            phrase(
                "{name} is {dtype}, which a {suffix} file cannot hold",
                name=each.name,
                dtype=each.dtype.name,
                suffix=suffix,
            ),
            hint=phrase("a {suffix} file holds {names}", suffix=suffix, names=joined(", ", sorted(table))),
        )
    return code


Writer = Callable[[IO[bytes], Sequence[PlannedTensor], Values, str], None]
WRITERS: dict[str, Writer] = {
    **dict.fromkeys((".pth", ".pt", ".bin"), write_pth),
    ".pdparams": write_pdparams,
    ".safetensors": write_safetensors,
}
OWNERS = {".pth": "torch", ".pt": "torch", ".bin": "torch", ".pdparams": "paddle"}


def writer_for(path: Path) -> Writer:
    """The writer that goes with a file's suffix."""
    if path.suffix not in WRITERS:
        raise InputError(
            phrase(
                "{path}: the suffix {suffix} is not that of a checkpoint",
                path=os.fspath(path),
                suffix=repr(path.suffix),
            ),
            hint=phrase("the suffixes are {writers}", writers=joined(", ", WRITERS)),
        )
    return WRITERS[path.suffix]


def check_framework(suffix: str, framework: str) -> None:
    """Refuse to write one framework's tensors into the other's own format."""
    owner = OWNERS.get(suffix, framework)
    if owner != framework:
        raise InputError(
            phrase(
                "a {suffix} file is {owner}'s, and the port or template is {framework}'s",
                suffix=suffix,
                owner=owner,
                framework=framework,
            ),
            hint=phrase(
                "write .safetensors or {suffix}", suffix=".pth" if framework == "torch" else ".pdparams"
            ),
        )
