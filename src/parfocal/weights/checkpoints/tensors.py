"""Tensors that stay in their file until somebody looks, and the bytes behind them.

A tensor whose bytes lie in the file as they are becomes a view of the mapped file, so reading it
takes no memory of its own. Only the oldest pickles store bytes as text and must be decoded.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parfocal.errors import FileFormatError
from parfocal.phrases import phrase
from parfocal.run.standins import DeferredBytes, MalformedError
from parfocal.weights.views import Shape

Array = NDArray[Any]

MAPPED = 4096  # bytes of a pickle from which on a value stays in the file
CHUNK = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class FileTensor:
    """One tensor of a file. Tensors with the same ``memory`` are one and the same."""

    shape: Shape
    dtype: np.dtype[Any]
    read: Callable[[], Array]
    memory: Hashable = field(default_factory=object)

    @property
    def nbytes(self) -> int:
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def of_array(array: Array) -> FileTensor:
    """A tensor whose values are at hand."""
    return FileTensor(tuple(array.shape), array.dtype, lambda: array)


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """What a file says: tensors by name, the framework it is of, and what was left out."""

    path: str
    tensors: Mapping[str, FileTensor]
    framework: str | None  # None: the file does not say
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MappedBytes(DeferredBytes):
    """Bytes of a mapped file."""

    data: NDArray[np.uint8]

    def __len__(self) -> int:
        return self.data.size

    def array(self, shape: Shape, dtype: np.dtype[Any], fortran: bool) -> FileTensor:
        data = self.data
        order = "F" if fortran else "C"

        def read() -> Array:
            return data.view(dtype).reshape(shape, order=order)  # type: ignore[call-overload,no-any-return]

        return FileTensor(shape, dtype, read)


@dataclass(frozen=True, slots=True)
class MappedText:
    """Text of a mapped file, not decoded."""

    data: NDArray[np.uint8]
    file: str

    def encoded(self) -> DecodedBytes:
        return DecodedBytes(self.data, _characters(self.data), self.file)


@dataclass(frozen=True, slots=True)
class DecodedBytes(DeferredBytes):
    """Bytes that the file holds as UTF-8 text of the Latin-1 characters with their numbers."""

    data: NDArray[np.uint8]
    count: int
    file: str

    def __len__(self) -> int:
        return self.count

    def array(self, shape: Shape, dtype: np.dtype[Any], fortran: bool) -> FileTensor:
        def read() -> Array:
            try:
                values = _decode(self.data, self.count)
            except ValueError as error:  # a UnicodeError is one
                raise FileFormatError(
                    phrase(
                        "{file}: text that stands for bytes is damaged: {error}", file=self.file, error=error
                    )
                ) from None
            order = "F" if fortran else "C"
            return values.view(dtype).reshape(shape, order=order)  # type: ignore[call-overload,no-any-return]

        return FileTensor(shape, dtype, read)


def _chunks(data: NDArray[np.uint8]) -> Iterable[NDArray[np.uint8]]:
    return (data[start : start + CHUNK] for start in range(0, data.size, CHUNK))


def _characters(data: NDArray[np.uint8]) -> int:
    """How many characters UTF-8 text has; characters beyond Latin-1 are refused."""
    count = 0
    for chunk in _chunks(data):
        count += int(np.count_nonzero((chunk & 0xC0) != 0x80))
        if chunk.max() > 0xC3:
            raise MalformedError(phrase("text that stands for bytes holds characters beyond Latin-1"))
    return count


def _decode(data: NDArray[np.uint8], count: int) -> NDArray[np.uint8]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    result = np.empty(count, np.uint8)
    position = 0
    for chunk in _chunks(data):
        piece = np.frombuffer(decoder.decode(chunk.tobytes()).encode("latin1"), np.uint8)
        result[position : position + piece.size] = piece
        position += piece.size
    decoder.decode(b"", final=True)
    return result


def mapped_readers(data: NDArray[np.uint8], file: str) -> dict[str, Callable[[Any], Any]]:
    """For ``Dialect.readers``: long bytes and texts of a mapped pickle stay in the file."""

    def reader(length_format: str, *, text: bool) -> Callable[[Any], Any]:
        def read(source: Any) -> Any:
            field = source.read(struct.calcsize(length_format))
            (length,) = struct.unpack(length_format, field)
            if length > source.remaining:
                raise MalformedError(
                    phrase(
                        "{count} bytes are announced, {remaining} are there",
                        count=length,
                        remaining=source.remaining,
                    )
                )
            if length < MAPPED:
                short = source.read(length)
                return short.decode("utf-8", "surrogatepass") if text else short
            start = source.skip(length)
            span = data[start : start + length]
            return MappedText(span, file) if text else MappedBytes(span)

        return read

    return {
        "BINBYTES": reader("<I", text=False),
        "BINBYTES8": reader("<Q", text=False),
        "BINUNICODE": reader("<I", text=True),
        "BINUNICODE8": reader("<Q", text=True),
    }
