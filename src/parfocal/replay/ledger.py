"""Tensors put aside for later: in memory up to a budget, beyond it in a nameless file.

Memory is taken in large pieces: the system needs longer to provide many small ones than it takes to
fill them. They are smaller than what the C library would give back to the system at once: so the next
alignment of the same process finds memory that is at hand. The file is unlinked as soon as it is open,
so nothing is left on disk however the process ends; what is read from it is an array of its own, never
a mapping.
"""

from __future__ import annotations

import os
import re
import tempfile
from types import TracebackType
from typing import IO

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.errors import InputError, StorageError
from parfocal.native.library import LIBRARY
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData
from parfocal.run.storage import reserve

# By default, of all that is put aside one part in so many. Half of that is what a run holds by itself
# until its gradients come back, so with the run of the port and the copies of gradients an alignment
# grows by about two such runs (docs/align.md).
SHARE = 8
LEAST = 256 * 2**20  # small models are kept in memory
_PIECE = 16 * 2**20  # from 32 MB on the C library keeps nothing
_RESERVED = 64 * 2**20  # room in the file that is asked for at once
_ALIGNMENT = 64
_LARGE = 2**20
_UNITS = {"": 1, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", re.IGNORECASE)


def parse_amount(amount: str | int | None) -> int | None:
    """Bytes from ``"2GB"``, ``"512 MiB"`` or a number; None stays None: in proportion to the run."""
    if amount is None:
        return None
    found = _AMOUNT.fullmatch(str(amount))
    if found is None:
        raise InputError(
            phrase("memory={amount} is not an amount of memory", amount=repr(amount)),
            hint=phrase('write e.g. memory="2GB"'),
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])


class Ledger:
    """Put arrays in, get equal arrays out by their numbers. Use it as a context manager."""

    def __init__(self, budget: int | None = None) -> None:
        """``budget``: bytes to keep in memory; None: in proportion to what is put aside."""
        self.budget = LEAST if budget is None else budget
        self._grows = budget is None
        self._bytes = 0  # of all that was put aside
        self._used = 0  # of the budget
        self._arrays: dict[int, Array] = {}
        self._piece: Array = np.empty(0, np.uint8)  # what is left of the last piece of memory
        self._places: dict[int, tuple[int, np.dtype[np.generic], tuple[int, ...]]] = {}  # in the file
        self._file: IO[bytes] | None = None
        self._end = 0
        self._room = 0  # how far it was asked for
        self._count = 0
        self._last: tuple[int, Array] | None = None  # the last one read from the file

    def put(self, array: Array, *, given: bool = False) -> int:
        """Keep a copy of the array as it is now; or, ``given``, the array itself: nobody writes to it."""
        number, self._count = self._count, self._count + 1
        self._bytes += array.nbytes
        if self._grows:
            self.budget = max(LEAST, self._bytes // SHARE)
        if self._used + array.nbytes <= self.budget:
            self._used += array.nbytes
            kept = array if given and array.flags.c_contiguous else self._copy(array)
            self._arrays[number] = kept
        else:
            self._spill(number, array)
        return number

    def get(self, number: int) -> Array:
        """The array; do not write to it."""
        kept = self._arrays.get(number)
        if kept is not None:
            return kept
        if self._last is None or self._last[0] != number:  # a tensor is looked at, then given
            offset, dtype, shape = self._places[number]
            array = np.empty(shape, dtype)
            self._read(array, offset)
            self._last = number, array
        return self._last[1]

    def supply(self, data: TensorData) -> Array:
        """The values of a recorded tensor; do not write to them."""
        assert data.stored is not None
        return self.get(data.stored)

    def take(self, number: int) -> Array:
        """The array for the last time: from now on the ledger does not hold it."""
        array = self.get(number)
        self._arrays.pop(number, None)
        return array

    def has_in_memory(self, number: int | None) -> bool:
        return number in self._arrays

    def close(self) -> None:
        self._arrays.clear()
        self._piece = np.empty(0, np.uint8)
        self._places.clear()
        self._last = None
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _copy(self, array: Array) -> Array:
        if not 0 < array.nbytes < _PIECE // 2:
            whole: Array = np.empty(array.shape, array.dtype)
            _fill(whole, array)
            return whole
        if array.nbytes > self._piece.nbytes:
            self._piece = np.empty(_PIECE, np.uint8)
        taken, step = self._piece[: array.nbytes], -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
        self._piece = self._piece[step:]
        kept: Array = taken.view(array.dtype).reshape(array.shape)
        _fill(kept, array)
        return kept

    def _spill(self, number: int, array: Array) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="parfocal-", buffering=0)  # noqa: SIM115
            data = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
            position = self._end
            while self._room < position + array.nbytes:
                reserve(self._file.fileno(), self._room, _RESERVED)
                self._room += _RESERVED
            while data:
                written = os.pwrite(self._file.fileno(), data, position)
                data, position = data[written:], position + written
        except OSError as error:
            raise StorageError(
                phrase(
                    "cannot put {nbytes} bytes aside in {gettempdir}: {strerror}",
                    nbytes=array.nbytes,
                    gettempdir=tempfile.gettempdir(),
                    strerror=error.strerror,
                ),
                hint=phrase("free some space there, set TMPDIR to a larger disk, or raise memory="),
            ) from error
        self._places[number] = (self._end, array.dtype, array.shape)
        self._end = position

    def _read(self, array: Array, offset: int) -> None:
        assert self._file is not None
        data = array.reshape(-1).view(np.uint8).data
        while data:
            read = os.preadv(self._file.fileno(), [data], offset)
            if not read:
                raise StorageError(
                    phrase(
                        "{count} of {nbytes} bytes put aside cannot be read back",
                        count=len(data),
                        nbytes=array.nbytes,
                    )
                )
            data, offset = data[read:], offset + read


def _fill(target: Array, source: Array) -> None:
    """Copy values, large arrays on several threads."""
    if LIBRARY is None or source.nbytes < _LARGE or not source.flags.c_contiguous or source.dtype.hasobject:
        np.copyto(target, source)
    else:
        LIBRARY.parfocal_move(target.ctypes.data, source.ctypes.data, source.nbytes)
