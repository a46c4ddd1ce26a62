"""Tier 1: a tensor of toybox lies on an array, so there is little to do."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import toybox

from parfocal.backends.checks import as_native, check_write, dtype_name, no_dtype

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64"),
    *("complex64", "complex128"),
)
DTYPES = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in _NAMES}


class Tensors:
    name = "toybox"
    framework_version = toybox.__version__
    dtypes = frozenset(DTYPES)

    def threads(self) -> int:
        return 1

    def devices(self) -> list[str]:
        return ["cpu"]

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, toybox.Tensor)

    def dtype(self, tensor: Any) -> str:
        return dtype_name(tensor.dtype)

    def shape(self, tensor: Any) -> tuple[int, ...]:
        return tensor.shape

    def device(self, tensor: Any) -> str:
        return "cpu"

    def to_array(self, tensor: Any, *, copy: bool = True) -> Any:
        return np.array(tensor.data, copy=True, order="C") if copy else tensor.data

    def from_array(
        self, array: Any, *, requires_grad: bool = False, device: str = "cpu", copy: bool = True
    ) -> Any:
        if dtype_name(array.dtype) not in DTYPES:
            raise no_dtype("toybox", array.dtype, DTYPES)
        shared = not copy and array.flags.writeable
        owned = (np.asarray if shared else np.array)(as_native(array), order="C")
        return toybox.Tensor(owned, requires_grad)

    def cast(self, tensor: Any, dtype: str) -> Any:
        if dtype not in DTYPES:
            raise no_dtype("toybox", dtype, DTYPES)
        return tensor.astype(DTYPES[dtype])

    def write(self, tensor: Any, array: Any) -> None:
        check_write(tensor.shape, self.dtype(tensor), array)
        np.copyto(tensor.data, array)

    def requires_grad(self, tensor: Any) -> bool:
        return tensor.requires_grad

    def is_leaf(self, tensor: Any) -> bool:
        return tensor.is_leaf

    def require_grad(self, tensor: Any) -> None:
        tensor.requires_grad = True

    def address(self, tensor: Any) -> int | None:
        return tensor.data_ptr()
