"""The memory of a tensor as an array, where DLPack does not give it with its strides and to be written.

Before ``_to_dlpack_versioned``, what DLPack gave could not be written, and in 2.6 strides and bool were lost
on the way. It owned the memory all the same, so here it is the owner, and the address is asked for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from parfocal.backends.protocol import Array


class _Owned:
    """Memory as NumPy asks for it; an array of it keeps the owner."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: Any, interface: dict[str, Any]) -> None:
        self._owner = owner
        self.__array_interface__ = interface


def addressed(tensor: Any, name: str) -> Array:
    """The memory of a tensor on the CPU whose dtype has this name."""
    shape, dtype = tuple(tensor.shape), np.dtype(name)
    if 0 in shape:
        return np.empty(shape, dtype)
    interface = {
        "version": 3,
        "data": (tensor.data_ptr(), False),
        "shape": shape,
        "typestr": dtype.str,
        "strides": tuple(dtype.itemsize * step for step in tensor.get_strides()),
    }
    return np.asarray(_Owned(tensor.get_tensor()._to_dlpack(), interface))
