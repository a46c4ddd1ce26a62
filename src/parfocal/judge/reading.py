"""Reads an array of any dtype, layout and byte order in flat C-order blocks.

Admission of dtypes, the choice of the arithmetic for a pair of dtypes, and the copy of one
block into a native, contiguous buffer live here, so that the kernels see plain 1-D arrays only.
A block that is already native and contiguous is handed out as a view, without a copy. The compiled loops read
an array where it lies (``memory_of``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from ctypes import c_void_p
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from parfocal.backends.checks import dtype_name
from parfocal.errors import InputError
from parfocal.phrases import phrase

Array = NDArray[Any]
Memory = tuple[int, bool]  # where numbers lie, and whether they are of bfloat16

# Of one buffer: large enough that threads rarely wait for the interpreter lock, small enough that
# the few buffers of a block stay in the cache.
BLOCK_BYTES = 1 << 20
KEPT_BYTES = 6 * BLOCK_BYTES  # by one worker between two calls
_ALIGNMENT = 64  # bytes: vector loads that cross a cache line cost twice
_WORTH_ALIGNING = 4096  # elements


# Where NumPy keeps the address of an array's first element: right behind what every object begins with.
_HEADER = object.__basicsize__


def _address_in(array: Any) -> int:
    address = c_void_p.from_address(id(array) + _HEADER).value
    return address or 0


def _address_asked_for(array: Any) -> int:
    address: int = array.ctypes.data
    return address


def _reads_addresses(probes: Sequence[Any]) -> bool:
    """Whether NumPy keeps addresses there, as all its releases have."""
    return all(_address_in(probe) == _address_asked_for(probe) for probe in probes)


# ``array.ctypes.data`` takes longer than the loops do over a small array.
_PROBES = (np.arange(3.0), np.arange(64, dtype=np.uint8)[7:], np.zeros((2, 3, 5), np.float32).T)
address_of = _address_in if _reads_addresses(_PROBES) else _address_asked_for

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FLOAT32 = np.dtype(np.float32)


def memory_of(array: Any) -> Memory | None:
    """Where the compiled loops find an array's numbers, and whether those are of bfloat16.

    None where they cannot read the array as it lies there: only float32 and bfloat16, without gaps.
    """
    dtype = array.dtype
    plain = dtype is _FLOAT32 or (dtype in (_FLOAT32, BFLOAT16) and dtype.isnative)
    return (address_of(array), dtype == BFLOAT16) if plain and array.flags.c_contiguous else None


def is_narrow_float(dtype: np.dtype[Any]) -> bool:
    """Whether ``dtype`` is one of the extension floats (bfloat16, float8_*), all exact in float32."""
    return dtype.kind not in "biufc" and dtype_name(dtype).startswith(("bfloat16", "float8_"))


def admitted(value: Any, side: str) -> Array:
    """``value`` as an array of a dtype that can be compared; an InputError otherwise."""
    array = np.asarray(value)
    if array.dtype.kind in "biufc" or is_narrow_float(array.dtype):
        return array
    raise InputError(
        phrase("{side} has dtype {dtype}, which holds no numbers to compare", side=side, dtype=array.dtype),
        hint=phrase("pass an array of bool, integers, floats or complex numbers"),
    )


def arithmetic(first: np.dtype[Any], second: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype in which a pair is compared.

    Integers and booleans: int64, uint64, or Python integers (object) for uint64 against a signed
    type, always exact. Complex with anything: complex128. Floats of at most 32 bits: float32.
    Everything else (float64, integers against floats): float64.
    """
    kinds = {first.kind, second.kind}
    if "c" in kinds:
        return np.dtype(np.complex128)
    if kinds <= set("biu"):
        if np.uint64 not in (first.type, second.type):
            return np.dtype(np.int64)
        return np.dtype(np.uint64) if kinds <= set("bu") else np.dtype(object)
    if all(_fits_float32(dtype) for dtype in (first, second)):
        return np.dtype(np.float32)
    return np.dtype(np.float64)


def _fits_float32(dtype: np.dtype[Any]) -> bool:
    return is_narrow_float(dtype) or (dtype.kind == "f" and dtype.itemsize <= 4)


def block_length(dtype: np.dtype[Any]) -> int:
    """Elements of one block; Python integers take 32 bytes besides their pointer."""
    return BLOCK_BYTES // (64 if dtype.hasobject else dtype.itemsize)


def aligned_empty(count: int, dtype: np.dtype[Any]) -> Array:
    """An uninitialised 1-D array that begins at a cache line."""
    if dtype.hasobject or count < _WORTH_ALIGNING:
        return np.empty(count, dtype)
    raw = np.empty(count * dtype.itemsize + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + count * dtype.itemsize].view(dtype)


class Scratch:
    """Named buffers of one worker: they grow to what is asked for and are used again and again."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, np.dtype[Any]], Array] = {}

    def get(self, name: str, dtype: np.dtype[Any], count: int) -> Array:
        """The first ``count`` elements of a buffer; its content is whatever was left there."""
        buffer = self._buffers.get((name, dtype))
        if buffer is None or len(buffer) < count:
            buffer = self._buffers[name, dtype] = aligned_empty(count, dtype)
        return buffer[:count]

    def trim(self) -> None:
        """Let go of everything if it is more than one kind of work needs, or holds Python objects."""
        held = sum(buffer.nbytes for buffer in self._buffers.values())
        if held > KEPT_BYTES or any(dtype.hasobject for _, dtype in self._buffers):
            self._buffers.clear()


# Elements from a start to a stop in C order; valid until the next read with this scratch.
Read = Callable[[int, int, Scratch], Array]


def block_reader(array: Array, dtype: np.dtype[Any], name: str) -> Read:
    """What reads an array in flat blocks in the dtype of the arithmetic; ``name``: that of its buffer."""
    contiguous = array.flags.c_contiguous
    if contiguous and array.dtype == dtype and array.dtype.isnative:
        whole = array.reshape(-1)
        return lambda start, stop, scratch: whole[start:stop]
    widens = array.dtype == BFLOAT16 and dtype == np.float32
    numbers = array.view(np.uint16) if widens else array
    source = numbers.reshape(-1) if contiguous else numbers

    def read(start: int, stop: int, scratch: Scratch) -> Array:
        buffer = scratch.get(name, dtype, stop - start)
        target = buffer.view(np.uint32) if widens else buffer
        _copy_range(source, start, stop, target)
        if widens:  # a bfloat16 is the upper half of a float32
            np.left_shift(target, np.uint32(16), out=target)
        return buffer

    return read


def _copy_range(source: Array, start: int, stop: int, target: Array) -> None:
    """Copy elements ``start`` to ``stop`` (C order) of a strided array, as few rectangles."""
    if source.ndim <= 1:
        np.copyto(target, source.reshape(-1)[start:stop], casting="unsafe")
        return
    row = math.prod(source.shape[1:])
    first, head = divmod(start, row)
    last, tail = divmod(stop, row)
    if first == last:
        _copy_range(source[first], head, tail, target)
        return
    position = 0
    if head:
        position = row - head
        _copy_range(source[first], head, row, target[:position])
        first += 1
    whole = source[first:last]
    np.copyto(target[position : position + whole.size].reshape(whole.shape), whole, casting="unsafe")
    if tail:
        _copy_range(source[last], 0, tail, target[position + whole.size :])
