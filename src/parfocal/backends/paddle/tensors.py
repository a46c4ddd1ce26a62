"""What PaddlePaddle does with one tensor: arrays in and out, other values in the same graph, gradients.

A tensor in main memory is read and written through a NumPy view of its own storage, so
nothing is copied twice and strides, aliases and ``stop_gradient`` stay as they are. ``widened`` gives code
that asks for float32 float64 instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import ml_dtypes
import numpy as np
import paddle
from paddle.base import core

from parfocal.backends.checks import as_native, check_write, dtype_name, no_dtype
from parfocal.backends.paddle.capabilities import EXPORTS_MEMORY, ONE_OBJECT_A_DTYPE, VIEWS_KEEP_NOTHING
from parfocal.backends.paddle.exchanging import exchanged
from parfocal.backends.paddle.memory import addressed
from parfocal.backends.protocol import Array
from parfocal.errors import UnsupportedError
from parfocal.phrases import phrase

_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("float8_e4m3fn", "float8_e5m2"),
)
DTYPES: dict[str, Any] = {name: getattr(paddle, name) for name in _NAMES if hasattr(paddle, name)}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}

# NumPy has no such type: the bits travel as integers of the same width.
BITS: dict[str, tuple[str, Any]] = {
    "bfloat16": ("int16", ml_dtypes.bfloat16),
    "float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
}


def has_memory(tensor: Any) -> bool:
    """Whether a tensor holds values; paddle calls one without elements uninitialised too."""
    return tensor._is_initialized() or (tensor.size == 0 and _is_somewhere(tensor))


def _is_somewhere(tensor: Any) -> bool:
    """Whether a tensor without elements was made; older versions raise when asked where another is."""
    try:
        return tensor.place is not None
    except RuntimeError:
        return False


# What NumPy calls types whose memory both read alike.
_MEMORY_TYPES = {
    name: np.dtype(name).str
    for name in ("int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64")
}
_HOST = paddle.CPUPlace()
_DLPACK_CPU = (1, 0)
_FLOAT32 = paddle.float32
_same_dtype = operator.is_ if ONE_OBJECT_A_DTYPE else operator.eq


class _Shared:
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


class _Memory:
    """The memory of a new tensor as NumPy asks for it.

    An array of it does not keep the memory: paddle frees that of a gradient that is cleared.
    """

    __slots__ = ("__array_interface__",)

    def __init__(self, tensor: Any, shape: tuple[int, ...], kind: str) -> None:
        self.__array_interface__ = {
            "version": 3,
            "data": (tensor.data_ptr(), False),
            "shape": shape,
            "typestr": kind,
        }


class _Substitute(paddle.autograd.PyLayer):
    """Other values forward, the same gradient backward; none where the values have another shape."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, make: Callable[[], Any]) -> Any:
        ctx.shape = tensor.shape
        return make()  # made inside: a tensor that comes in and goes out counts as changed in place

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient if gradient.shape == ctx.shape else paddle.zeros(ctx.shape, gradient.dtype)


class Tensors:
    """What ``TensorBackend`` asks for, and of ``ModelBackend`` what is about one tensor."""

    name = "paddle"
    framework_version = str(paddle.__version__)
    dtypes = frozenset(DTYPES)
    leaves_gradients_alone = False  # it adds other uses of a tensor to the gradient of the first

    def threads(self) -> int:
        return int(paddle.get_flags("FLAGS_paddle_num_threads")["FLAGS_paddle_num_threads"])

    def devices(self) -> list[str]:
        return ["cpu", *(f"cuda:{number}" for number in range(paddle.device.cuda.device_count()))]

    def is_tensor(self, value: object) -> bool:
        return isinstance(value, paddle.Tensor)

    def dtype(self, tensor: Any) -> str:
        dtype = tensor.dtype
        if dtype is _FLOAT32:  # most are, and paddle takes long to hash one
            return "float32"
        return DTYPE_NAMES.get(dtype) or str(dtype).removeprefix("paddle.")

    def shape(self, tensor: Any) -> tuple[int, ...]:
        return tuple(tensor.shape)

    def device(self, tensor: Any) -> str:
        if tensor.place.is_gpu_place():
            return f"cuda:{tensor.place.gpu_device_id()}"
        return "cpu" if tensor.place.is_cpu_place() else str(tensor.place)

    def to_array(self, tensor: Any, *, copy: bool = True) -> Array:
        on_cpu = tensor.place.is_cpu_place()
        usual = on_cpu and tensor.dtype is _FLOAT32 and tensor.is_dense() and tensor._is_initialized()
        if usual and not copy:  # asked for many times
            return np.from_dlpack(_Shared(tensor)) if EXPORTS_MEMORY else addressed(tensor, "float32")
        plain = self._dense(tensor)
        array = self._view(plain if on_cpu else plain.detach().cpu())
        return np.array(array, copy=True, order="C") if copy and on_cpu else array

    def from_array(
        self, array: Array, *, requires_grad: bool = False, device: str = "cpu", copy: bool = True
    ) -> Any:
        name = dtype_name(array.dtype)
        if name not in DTYPES:
            raise no_dtype("paddle", array.dtype, DTYPES)
        if device == "cpu" and name in _MEMORY_TYPES and array.size:
            # several times faster than paddle.to_tensor, which copies too
            tensor = paddle._C_ops.empty(list(array.shape), DTYPES[name], _HOST)
            np.copyto(np.asarray(_Memory(tensor, array.shape, _MEMORY_TYPES[name])), array)
            tensor.stop_gradient = not requires_grad
            return tensor
        native = as_native(array)
        place = device.replace("cuda", "gpu")
        if name in BITS:
            bits = np.asarray(native, order="C").view(BITS[name][0])
            tensor = paddle.to_tensor(bits, place=place).view(name)
        else:
            # a copy in any case: to free a tensor on foreign memory can block on the interpreter lock
            tensor = paddle.to_tensor(native, place=place)
        tensor.stop_gradient = not requires_grad
        return tensor

    def cast(self, tensor: Any, dtype: str) -> Any:
        if dtype not in DTYPES:
            raise no_dtype("paddle", dtype, DTYPES)
        return tensor.astype(DTYPES[dtype])

    def write(self, tensor: Any, array: Array) -> None:
        check_write(self.shape(tensor), self.dtype(self._dense(tensor)), array)
        if tensor.place.is_cpu_place():
            np.copyto(self._view(tensor), array)
        else:
            with paddle.no_grad():
                paddle.assign(self.from_array(array), output=tensor)

    def requires_grad(self, tensor: Any) -> bool:
        return not tensor.stop_gradient

    def is_leaf(self, tensor: Any) -> bool:
        return bool(tensor.is_leaf)

    def require_grad(self, tensor: Any) -> None:
        tensor.stop_gradient = False

    def alias(self, tensor: Any) -> Any:
        # paddle.reshape would hand back the very same object, and view refuses what is empty
        shape = tensor.shape
        if 0 in shape:
            return paddle._C_ops.assign(tensor)
        if VIEWS_KEEP_NOTHING:
            return paddle._C_ops.view_shape(tensor, shape)
        return paddle._C_ops.reshape(tensor, shape)

    def duplicate(self, tensor: Any) -> Any:
        copied = tensor.detach().clone()
        copied.stop_gradient = tensor.stop_gradient
        return copied if tensor.is_leaf else copied.clone()

    def substitute(self, tensor: Any, array: Array, *, copy: bool = True) -> Any:
        def make() -> Any:
            new = self.from_array(array, copy=copy)
            return new if _same_dtype(new.dtype, tensor.dtype) else new.astype(tensor.dtype)

        if tensor.stop_gradient:
            return make()
        if list(array.shape) == tensor.shape and array.size and paddle.is_grad_enabled():
            other = self.alias(tensor)  # a step of the graph that needs no values to go back
            make()._share_underline_tensor_to(other)
            return other
        # What a hook on a PyLayer's own output returns is not used; on an alias of it it is.
        return self.alias(_Substitute.apply(tensor, make))

    def overwrite(self, tensor: Any, array: Array) -> None:
        values = self.cast(self.from_array(array), self.dtype(tensor))
        self.write(tensor, self.to_array(values, copy=False))

    def assign(self, tensor: Any, value: Any) -> None:
        if value.data_ptr() == tensor.data_ptr():
            # A value on the same memory would count as changed too, and the graph may need it.
            room = paddle.empty_like(tensor)
            while room.inplace_version < tensor.inplace_version:
                room._bump_inplace_version()
            room._share_underline_tensor_to(tensor)
        paddle.assign(value, output=tensor)

    def changes_behind_hooks(self, tensor: Any) -> Callable[[], int] | None:
        return None

    def version(self, tensor: Any) -> int:
        return int(tensor._inplace_version())  # what the property of a like name asks, after a detour

    def watch_gradient(self, tensor: Any, callback: Callable[[Any], Any]) -> Callable[[], None] | None:
        # The hook stays with the value the tensor has now, also when it is changed in place later.
        return None if tensor.stop_gradient else tensor.register_hook(callback).remove

    def _view(self, tensor: Any) -> Array:
        name = self.dtype(tensor)
        if name not in DTYPES:
            raise no_dtype("NumPy", name, DTYPES)
        if name not in BITS:
            return np.from_dlpack(_Shared(tensor)) if EXPORTS_MEMORY else addressed(tensor, name)
        bits, dtype = BITS[name]
        found = tensor.detach().view(bits)
        array = np.from_dlpack(_Shared(found)) if EXPORTS_MEMORY else addressed(found, bits)
        return array.view(dtype)

    def _dense(self, tensor: Any) -> Any:
        if not tensor.is_dense():
            form = "sparse" if tensor.is_sparse() else str(tensor.type)
            raise UnsupportedError(
                phrase(
                    "a {form} tensor of shape {shape} has no plain array of values",
                    form=form,
                    shape=self.shape(tensor),
                ),
                hint=phrase("make it a dense tensor first (.to_dense())"),
            )
        if not has_memory(tensor):
            raise UnsupportedError(
                phrase("the tensor {name} has no memory yet", name=repr(tensor.name)),
                hint=phrase("initialise it (or run the model once) before handing it over"),
            )
        return tensor


_MAKING = (
    *("cast", "cast_", "full", "full_", "full_like", "arange", "linspace", "logspace", "eye", "empty"),
    *("empty_like", "assign_value_"),
)

# Kernels take paddle's dtypes and, where it has two sorts of them, those of its core as well.
_WIDER = tuple(
    {
        type(narrow): (narrow, wide)
        for narrow, wide in (
            (core.DataType.FLOAT32, core.DataType.FLOAT64),
            (paddle.float32, paddle.float64),
        )
    }.values()
)


def widened() -> AbstractContextManager[None]:
    """For a run in float64: code that asks for float32 is given float64.

    A model's own code says ``x.astype("float32")`` or ``paddle.arange(n, dtype="float32")``; what it computes
    from that would be rounded as before. What is drawn at random stays as it is.
    """
    return exchanged(paddle._C_ops, _MAKING, _called)


def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*map(_wider, args), **{name: _wider(value) for name, value in kwargs.items()})


def _wider(value: Any) -> Any:
    for narrow, wide in _WIDER:
        if isinstance(value, type(narrow)) and value == narrow:
            return wide
    return value
