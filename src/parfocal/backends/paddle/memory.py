"""The memory of a tensor on the CPU as an array, in the way that the installed PaddlePaddle offers.

``shared`` is the one to use. It is chosen when the backend is loaded, by what is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parfocal.backends.paddle.capabilities import EXPORTS_MEMORY
from parfocal.backends.protocol import Array

# What NumPy calls types whose memory both read alike.
MEMORY_TYPES = {
    name: np.dtype(name).str
    for name in (
        *("int8", "int16", "int32", "int64", "uint8", "bool"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_DLPACK_CPU = (1, 0)


class Exported:
    """The memory of a tensor on the CPU as NumPy asks for it, and as nothing frees it.

    The tensor's own ``__dlpack__`` gives the same, but asks a lot about devices first.
    """

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, **_: Any) -> Any:
        return self._tensor.get_tensor()._to_dlpack_versioned()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _DLPACK_CPU


class Addressed:
    """Memory as NumPy asks for it, by its address; an array of it keeps the owner, if there is one.

    Without an owner the memory must outlive the array: paddle frees that of a gradient that is cleared.
    """

    __slots__ = ("__array_interface__", "_owner")

    def __init__(
        self,
        tensor: Any,
        shape: tuple[int, ...],
        kind: str,
        strides: tuple[int, ...] | None = None,
        owner: Any = None,
    ) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.data_ptr(), False),
            "shape": shape,
            "typestr": kind,
            "strides": strides,
        }


def exported(tensor: Any, name: str) -> Array:
    """The tensor's memory by DLPack. ``name`` is that of its dtype."""
    return np.from_dlpack(Exported(tensor))


def addressed(tensor: Any, name: str) -> Array:
    """The tensor's memory by its address.

    Before ``_to_dlpack_versioned``, DLPack gave memory that may not be written, and in 2.6 strides and bool
    were lost on the way. What it gives owns the memory all the same.
    """
    shape, dtype = tuple(tensor.shape), np.dtype(name)
    if 0 in shape:
        return np.empty(shape, dtype)
    strides = tuple(dtype.itemsize * step for step in tensor.get_strides())
    owner = tensor.get_tensor()._to_dlpack()
    return np.asarray(Addressed(tensor, shape, MEMORY_TYPES[name], strides, owner))


shared: Callable[[Any, str], Array] = exported if EXPORTS_MEMORY else addressed
