"""``.pth``: the zip archives that ``torch.save`` writes, read without torch.

``data.pkl`` says which tensors there are and where they lie in which member; the members are
stored as they are, so a tensor is a view of the mapped file. The pickle goes through the restricted
reader of ``parfocal.run``; what torch names in it stands for the entries of the tables below.
"""

from __future__ import annotations

import io
import os
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError
from parfocal.phrases import phrase
from parfocal.run.dtypes import DTYPES, checked_size
from parfocal.run.npy import ZIP_ERRORS
from parfocal.run.standins import (
    GLOBALS,
    NUMPY,
    GlobalName,
    MalformedError,
    PickleDialect,
    Reducer,
    WorkBudget,
)
from parfocal.run.storage import map_file, open_for_reading, storage_errors
from parfocal.run.unpickle import load_pickle
from parfocal.weights.checkpoints.tensors import Array, FileTensor, of_array

MAGIC = b"PK\x03\x04"
MAX_PICKLE_BYTES = 2**28
MAX_REPEATED_BYTES = 2**30  # what strides of zero may make out of a small storage
LOCAL_HEADER = 30  # bytes before the member's name

# torch's storage classes by the dtype of their elements.
STORAGES = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex64": "ComplexFloatStorage",
    "complex128": "ComplexDoubleStorage",
}
# The newer dtypes have no storage class of their own: their bytes are untyped.
UNTYPED = frozenset({
    "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class TorchType:
    """A storage class or a dtype of torch, by the name of its elements; "" for untyped storages."""

    element: str


@dataclass(frozen=True, slots=True)
class Storage:
    """A member of the archive, as the pickle names it."""

    key: str
    element: str
    count: int  # elements; bytes when untyped


@dataclass(frozen=True, slots=True)
class TensorStandIn:
    """A strided window of a storage."""

    storage: Storage
    element: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def load(path: Path) -> dict[str, Any]:
    """What the archive's pickle holds, with every tensor as a ``FileTensor``."""
    data = map_file(path)
    with os.fdopen(open_for_reading(path), "rb") as file, storage_errors("read", path):
        try:
            with zipfile.ZipFile(file) as archive:
                members = {info.filename: info for info in archive.infolist()}
                root = _root(members, path)
                text = _pickle(archive, members, root, path)
                value = load_pickle(io.BytesIO(text), len(text), str(path), TORCH)
        except ZIP_ERRORS as error:
            raise FileFormatError(
                phrase(
                    "{path} ({nbytes} bytes) is a damaged zip archive: {error}",
                    path=path,
                    nbytes=data.nbytes,
                    error=error,
                ),
                hint=phrase("check the file's source and size; a download may have been cut short"),
            ) from None
    if not isinstance(value, dict):
        raise FileFormatError(
            phrase(
                "{path} holds a {kind}, not a mapping from names to tensors",
                path=path,
                kind=type(value).__name__.removesuffix("StandIn"),
            ),
            hint=phrase("save a state dict: torch.save(model.state_dict(), path)"),
        )
    try:
        found: dict[str, Any] = _Archive(path, root, members, data).plain(value)
    except (MalformedError, struct.error) as error:
        raise FileFormatError(phrase("{path}: {error}", path=path, error=error)) from None
    return found


def _root(members: Mapping[str, zipfile.ZipInfo], path: Path) -> str:
    """The folder inside the archive that has everything, with its slash."""
    names = [name for name in members if name.rpartition("/")[2] == "data.pkl" and name.count("/") <= 1]
    if len(names) != 1:
        raise FileFormatError(
            phrase("{path} is a zip archive without the one data.pkl of a torch checkpoint", path=path),
            hint=phrase("give a file that torch.save wrote"),
        )
    return names[0].removesuffix("data.pkl")


def _pickle(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], root: str, path: Path) -> bytes:
    order = members.get(f"{root}byteorder")
    if order is not None and (order.file_size > 16 or archive.read(order) != b"little"):
        raise FileFormatError(
            phrase("{path} was written on a big-endian machine, which is not supported", path=path)
        )
    size = members[f"{root}data.pkl"].file_size
    if size > MAX_PICKLE_BYTES:
        raise FileFormatError(
            phrase(
                "{path}: data.pkl has {size} bytes; at most {max_pickle_bytes} are allowed",
                path=path,
                size=size,
                max_pickle_bytes=MAX_PICKLE_BYTES,
            )
        )
    return archive.read(f"{root}data.pkl")


class _Archive:
    """Turns stand-ins into views of the mapped file."""

    def __init__(
        self, path: Path, root: str, members: Mapping[str, zipfile.ZipInfo], data: NDArray[np.uint8]
    ) -> None:
        self.path = path
        self.root = root
        self.data = data
        self.members = members

    def plain(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.plain(item) for key, item in value.items()}
        if type(value) in (list, tuple):
            return type(value)(self.plain(item) for item in value)
        if isinstance(value, TensorStandIn):
            return self.tensor(value)
        return of_array(value) if isinstance(value, np.ndarray) and value.dtype.name in DTYPES else value

    def tensor(self, stand_in: TensorStandIn) -> FileTensor:
        dtype = DTYPES[stand_in.element]
        memory = self.member(stand_in.storage.key)
        untyped = not stand_in.storage.element
        wanted = stand_in.storage.count * (1 if untyped else DTYPES[stand_in.storage.element].itemsize)
        if wanted > memory.size:
            raise MalformedError(
                phrase(
                    "storage {key} needs {wanted} bytes, {size} are there",
                    key=repr(stand_in.storage.key),
                    wanted=wanted,
                    size=memory.size,
                )
            )
        empty = 0 in stand_in.shape
        steps = zip(stand_in.shape, stand_in.strides, strict=True)
        last = -1 if empty else stand_in.offset + sum((extent - 1) * stride for extent, stride in steps)
        if (last + 1) * dtype.itemsize > wanted:
            raise MalformedError(
                phrase(
                    "a tensor of shape {shape} reaches beyond storage {key}",
                    shape=list(stand_in.shape),
                    key=repr(stand_in.storage.key),
                )
            )
        size = checked_size(stand_in.shape, dtype.itemsize)
        if size is None or size > max(wanted, MAX_REPEATED_BYTES):
            raise MalformedError(
                phrase(
                    "a tensor of shape {shape} is made out of a storage of {wanted} bytes",
                    shape=list(stand_in.shape),
                    wanted=wanted,
                )
            )

        def read() -> Array:
            if empty:
                return np.empty(stand_in.shape, dtype)
            strides = tuple(stride * dtype.itemsize for stride in stand_in.strides)
            start = stand_in.offset * dtype.itemsize
            view: Array = np.ndarray(stand_in.shape, dtype, memory, start, strides)
            return view

        return FileTensor(stand_in.shape, dtype, read, memory=(self.path, stand_in))

    def member(self, key: str) -> NDArray[np.uint8]:
        info = self.members.get(f"{self.root}data/{key}")
        if info is None:
            raise MalformedError(phrase("the archive lacks the member data/{key}", key=key[:60]))
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1:
            raise MalformedError(
                phrase(
                    "the member data/{key} is compressed or encrypted; torch stores it plain", key=key[:60]
                )
            )
        header = self.data[info.header_offset : info.header_offset + LOCAL_HEADER].tobytes()
        magic, name_length, extra_length = struct.unpack("<4s22xHH", header)
        start = info.header_offset + LOCAL_HEADER + name_length + extra_length
        if magic != MAGIC or start + info.file_size > self.data.size:
            raise MalformedError(
                phrase("the member data/{key} does not lie where the archive says", key=key[:60])
            )
        return self.data[start : start + info.file_size]


# What torch names in its pickles.


def _fetch(identity: Any) -> Storage:
    match identity:
        case ("storage", TorchType(element=element), str(key), str(), int(count), *_) if count >= 0:
            return Storage(key, element, count)
        case _:
            raise MalformedError(phrase("a persistent object is not a storage"))


def _tensor(arguments: tuple[Any, ...], budget: WorkBudget) -> TensorStandIn:
    match arguments:
        case (
            Storage() as storage,
            int(offset),
            tuple(shape),
            tuple(strides),
            bool(),
            dict(),
            TorchType() as t,
        ):
            element = t.element
        case (Storage() as storage, int(offset), tuple(shape), tuple(strides), bool(), *_):
            element = storage.element
        case _:
            raise MalformedError(phrase("a tensor is made from something else than a storage"))
    numbers = (offset, *shape, *strides)
    plain = all(type(number) is int and 0 <= number < 2**48 for number in numbers)
    if not plain or len(shape) != len(strides) or len(shape) > 32 or element not in DTYPES:
        raise MalformedError(
            phrase(
                "a tensor has shape {shape}, strides {strides}, offset {offset}, type {element}",
                shape=shape,
                strides=strides,
                offset=offset,
                element=repr(element),
            )
        )
    return TensorStandIn(storage, element, offset, shape, strides)


def _parameter(arguments: tuple[Any, ...], budget: WorkBudget) -> TensorStandIn:
    match arguments:
        case (TensorStandIn() as tensor, *_):
            return tensor
        case _:
            raise MalformedError(phrase("a parameter is made from something else than a tensor"))


def _typed(arguments: tuple[Any, ...], budget: WorkBudget) -> Any:
    match arguments:
        case (GlobalName(meaning="tensor"), GlobalName(meaning="class"), tuple(inner), _):
            return _tensor(inner, budget)
        case _:
            raise MalformedError(phrase("a tensor of another class is made from something unknown"))


def _size(arguments: tuple[Any, ...], budget: WorkBudget) -> tuple[Any, ...]:
    match arguments:
        case (tuple(extents) | list(extents),):
            budget.spend(len(extents))
            return tuple(extents)
        case _:
            raise MalformedError(phrase("a torch.Size is made from something else than extents"))


def _first(kind: type[Any]) -> Callable[[tuple[Any, ...], WorkBudget], Any]:
    def reducer(arguments: tuple[Any, ...], budget: WorkBudget) -> Any:
        if not arguments or type(arguments[0]) is not kind:
            raise MalformedError(
                phrase("something is made from other things than a {kind}", kind=kind.__name__)
            )
        return arguments[0]

    return reducer


_REDUCERS: dict[str, Reducer] = {
    "tensor": _tensor,
    "parameter": _parameter,
    "typed tensor": _typed,
    "size": _size,
    "device": _first(str),
    "counter": _first(dict),
    "set": _first(list),
}

TORCH = PickleDialect(
    globals=GLOBALS
    | {
        ("torch._utils", "_rebuild_tensor_v2"): "tensor",
        ("torch._utils", "_rebuild_tensor_v3"): "tensor",
        ("torch._utils", "_rebuild_parameter"): "parameter",
        ("torch._utils", "_rebuild_parameter_with_state"): "parameter",
        ("torch._tensor", "_rebuild_from_type_v2"): "typed tensor",
        ("torch", "Tensor"): "class",
        ("torch.nn.parameter", "Parameter"): "class",
        ("torch", "Size"): "size",
        ("torch", "device"): "device",
        ("collections", "Counter"): "counter",
        ("__builtin__", "set"): "set",
        ("builtins", "set"): "set",
    },
    reducers=dict(NUMPY.reducers) | _REDUCERS,
    constants={
        **{("torch", storage): TorchType(element) for element, storage in STORAGES.items()},
        **{("torch", element): TorchType(element) for element in (*STORAGES, *UNTYPED)},
        ("torch.storage", "UntypedStorage"): TorchType(""),
        ("torch", "UntypedStorage"): TorchType(""),
    },
    fetch=_fetch,
    attributes=True,
    hint=phrase("save only the state dict: torch.save(model.state_dict(), path)"),
)
