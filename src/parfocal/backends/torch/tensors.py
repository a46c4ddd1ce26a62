"""What PyTorch does with one tensor: arrays in and out, other values in the same graph, gradients.

A tensor in main memory is read and written through a NumPy view of its own storage, so
nothing is copied twice and strides, aliases and ``requires_grad`` stay as they are. ``Widened`` gives code
that asks for float32 float64 instead.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from parfocal.backends.checks import as_native, check_write, dtype_name, no_dtype
from parfocal.backends.protocol import Array
from parfocal.errors import UnsupportedError
from parfocal.phrases import phrase

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2"),
)
DTYPES: dict[str, torch.dtype] = {name: getattr(torch, name) for name in _NAMES if hasattr(torch, name)}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

# NumPy has no such type: the bits travel as integers of the same width.
BITS: dict[str, tuple[torch.dtype, Any]] = {
    "bfloat16": (torch.int16, ml_dtypes.bfloat16),
    "float8_e4m3fn": (torch.uint8, ml_dtypes.float8_e4m3fn),
    "float8_e5m2": (torch.uint8, ml_dtypes.float8_e5m2),
}

_LAZY = torch.nn.parameter.UninitializedTensorMixin
# What NumPy can look at as it lies there, unless it is negated lazily.
_READABLE = frozenset(
    dtype for name, dtype in DTYPES.items() if name not in BITS and not name.startswith("complex")
)


class _Substitute(torch.autograd.Function):
    """Other values forward, the same gradient backward; none where the values have another shape."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, make: Callable[[], Any]) -> Any:
        ctx.shape = tensor.shape
        return make()  # made inside: a tensor that comes in and goes out counts as a view of itself

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        same = gradients[0].shape == ctx.shape
        return (gradients[0] if same else gradients[0].new_zeros(ctx.shape)), None


class Tensors:
    """What ``TensorBackend`` asks for, and of ``ModelBackend`` what is about one tensor."""

    name = "torch"
    framework_version = str(torch.__version__)
    dtypes = frozenset(DTYPES)
    leaves_gradients_alone = True  # it adds in place only to what nobody else holds

    def threads(self) -> int:
        return torch.get_num_threads()

    def devices(self) -> list[str]:
        return ["cpu", *(f"cuda:{number}" for number in range(torch.cuda.device_count()))]

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, torch.Tensor)

    def dtype(self, tensor: Any) -> str:
        return DTYPE_NAMES.get(tensor.dtype) or str(tensor.dtype).removeprefix("torch.")

    def shape(self, tensor: Any) -> tuple[int, ...]:
        return tuple(tensor.shape)

    def device(self, tensor: Any) -> str:
        return str(tensor.device)

    def to_array(self, tensor: Any, *, copy: bool = True) -> Array:
        plain = self._dense(tensor).detach()
        if plain.is_cpu and plain.dtype in _READABLE and not plain.is_neg():
            array = plain.numpy()
            return np.array(array, copy=True, order="C") if copy else array
        local = plain.cpu().resolve_conj().resolve_neg()
        array = self._view(local)
        # ``local`` is the tensor itself when nothing had to be moved or resolved.
        return np.array(array, copy=True, order="C") if copy and local is plain else array

    def from_array(
        self, array: Array, *, requires_grad: bool = False, device: str = "cpu", copy: bool = True
    ) -> Any:
        name = dtype_name(array.dtype)
        if name not in DTYPES:
            raise no_dtype("torch", array.dtype, DTYPES)
        shared = not copy and array.flags.writeable
        owned = (np.asarray if shared else np.array)(as_native(array), order="C")
        if name in BITS:
            tensor = torch.from_numpy(owned.view(f"i{owned.itemsize}")).view(DTYPES[name])
        else:
            tensor = torch.from_numpy(owned)
        return tensor.to(device).requires_grad_(requires_grad)

    def cast(self, tensor: Any, dtype: str) -> Any:
        if dtype not in DTYPES:
            raise no_dtype("torch", dtype, DTYPES)
        return tensor.to(DTYPES[dtype])

    def write(self, tensor: Any, array: Array) -> None:
        check_write(self.shape(tensor), self.dtype(self._dense(tensor)), array)
        # ``data`` shares the storage, not the version counter: what autograd saved stays valid.
        target = tensor.data
        if target.device.type == "cpu" and not (target.is_conj() or target.is_neg()):
            np.copyto(self._view(target), array)
        else:
            target.copy_(self.from_array(array))

    def requires_grad(self, tensor: Any) -> bool:
        return bool(tensor.requires_grad)

    def is_leaf(self, tensor: Any) -> bool:
        return bool(tensor.is_leaf)

    def require_grad(self, tensor: Any) -> None:
        tensor.requires_grad_(True)

    def alias(self, tensor: Any) -> Any:
        return tensor.view_as(tensor)

    def duplicate(self, tensor: Any) -> Any:
        copied = deepcopy(tensor.detach())  # where a clone would lay some tensors out anew
        if tensor.requires_grad:
            copied.requires_grad_(True)
        return copied if tensor.is_leaf else copied.clone()

    def substitute(self, tensor: Any, array: Array, *, copy: bool = True) -> Any:
        def make() -> Any:
            return self.from_array(array, copy=copy).to(device=tensor.device, dtype=tensor.dtype)

        return _Substitute.apply(tensor, make) if tensor.requires_grad else make()

    def overwrite(self, tensor: Any, array: Array) -> None:
        tensor.data.copy_(self.from_array(array))  # what goes through .data is not counted

    def assign(self, tensor: Any, value: Any) -> None:
        tensor.copy_(value)

    def changes_behind_hooks(self, tensor: Any) -> Callable[[], int] | None:
        if not tensor._is_view() or tensor.is_inference():
            return None
        counter = tensor.detach()  # shares the counter of changes
        counter.data = counter.new_empty(0)  # and no longer the memory
        return lambda: int(counter._version)

    def version(self, tensor: Any) -> int:
        return 0 if tensor.is_inference() else int(tensor._version)

    def watch_gradient(self, tensor: Any, callback: Callable[[Any], Any]) -> Callable[[], None] | None:
        # The hook stays with the value the tensor has now, also when it is changed in place later.
        return tensor.register_hook(callback).remove if tensor.requires_grad else None

    def _view(self, tensor: Any) -> Array:
        name = self.dtype(tensor)
        if name not in DTYPES:
            raise no_dtype("NumPy", name, DTYPES)
        if name not in BITS:
            return np.asarray(tensor.numpy())
        bits, dtype = BITS[name]
        return np.asarray(tensor.view(bits).numpy()).view(dtype)

    def _dense(self, tensor: Any) -> Any:
        if isinstance(tensor, _LAZY):
            raise UnsupportedError(
                phrase("this parameter of a lazy module has no shape and no values yet"),
                hint=phrase("run the model once on an input before handing it over"),
            )
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_meta:
            form = "meta" if tensor.is_meta else "quantized" if tensor.is_quantized else str(tensor.layout)
            raise UnsupportedError(
                phrase(
                    "a {form} tensor of shape {shape} has no plain array of values",
                    form=form,
                    shape=self.shape(tensor),
                ),
                hint=phrase("make it a dense tensor first (.to_dense(), .dequantize(), or load its weights)"),
            )
        return tensor


_MAKING = frozenset(
    {
        *(torch.arange, torch.linspace, torch.logspace, torch.full, torch.tensor, torch.as_tensor),
        *(torch.zeros, torch.ones, torch.eye, torch.scalar_tensor),
    }
)
_WHOLE = frozenset({torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64})


class Widened(TorchFunctionMode):
    """For a run in float64: code that asks for float32 is given float64.

    A model's own code says ``x.float()`` or ``torch.arange(n, dtype=torch.float32)``, and divides whole
    numbers; what it computes from them would be rounded as before. What is drawn at random stays as it is.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        func = torch.Tensor.double if func is torch.Tensor.float else func
        args = tuple(map(_wider, args))
        kwargs = {name: _wider(value) for name, value in (kwargs or {}).items()}
        output = func(*args, **kwargs)
        if not isinstance(output, torch.Tensor) or output.dtype is not torch.float32:
            return output
        if func in _MAKING:
            return func(*args, **{**kwargs, "dtype": torch.float64})
        tensors = [each for each in args if isinstance(each, torch.Tensor)]
        if tensors and all(each.dtype in _WHOLE for each in tensors):  # a quotient or a root of them
            return func(
                *(each.double() if isinstance(each, torch.Tensor) else each for each in args), **kwargs
            )
        return output


def _wider(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value
