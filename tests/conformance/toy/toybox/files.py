"""Files of tensors by name: NumPy's own archive, with the dtypes beside it that NumPy does not know."""

from __future__ import annotations

import numpy as np
from toybox.functions import dtype_of
from toybox.tape import Tensor

_MARK = "|"  # before the dtype of what lies there as bits


def save(tensors: dict[str, Tensor], path: str) -> None:
    arrays = {
        f"{name}{_MARK}{each.dtype.name}": each.data.view(f"u{each.dtype.itemsize}")
        if each.dtype.kind == "V"
        else each.data
        for name, each in tensors.items()
    }
    with open(path, "wb") as file:
        np.savez(file, **arrays)


def load(path: str) -> dict[str, Tensor]:
    found = {}
    with np.load(path) as arrays:
        for key in arrays:
            name, _, dtype = key.rpartition(_MARK)
            found[name] = Tensor(arrays[key].view(dtype_of(dtype)))
    return found
