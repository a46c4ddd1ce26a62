"""Functional ops of PyTorch under watch, and the common names of those that are named otherwise here.

A torch function mode sees every call of PyTorch's API, with whatever that calls in turn
hidden inside it: exactly the ops that a person wrote.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from parfocal.backends.calls import CallTracker
from parfocal.backends.opcalls import HOOKS, OpReporter, as_passed, base_name, holds_tensor, works_in_place
from parfocal.backends.protocol import OnOp
from parfocal.backends.torch.capabilities import MODES_SEE_INDICES
from parfocal.backends.torch.older import indices_seen, name_of

# PyTorch's name, without a trailing underscore -> common name. Others keep their own.
RENAMED = {
    **dict.fromkeys(("__iadd__", "__radd__"), "add"),
    **dict.fromkeys(("subtract", "__isub__"), "sub"),
    **dict.fromkeys(("__rsub__", "rsub"), "rsub"),
    **dict.fromkeys(("multiply", "__imul__", "__rmul__"), "mul"),
    **dict.fromkeys(("divide", "true_divide", "__truediv__", "__itruediv__", "__idiv__"), "div"),
    **dict.fromkeys(("__rdiv__", "__rtruediv__"), "rdiv"),
    **dict.fromkeys(("floor_divide", "__floordiv__", "__ifloordiv__"), "floor_divide"),
    **dict.fromkeys(("remainder", "__mod__", "__imod__"), "remainder"),  # fmod rounds the other way
    **dict.fromkeys(("__ipow__", "__pow__"), "pow"),
    "__rpow__": "rpow",
    "negative": "neg",
    "absolute": "abs",
    **dict.fromkeys(("mm", "bmm", "__matmul__", "__imatmul__"), "matmul"),
    "__rmatmul__": "rmatmul",
    **dict.fromkeys(("view", "view_as", "reshape_as", "flatten", "unflatten", "ravel"), "reshape"),
    **dict.fromkeys(
        ("permute", "t", "T", "mT", "H", "mH", "swapaxes", "swapdims", "movedim", "moveaxis"), "transpose"
    ),
    **dict.fromkeys(("cat", "concatenate"), "concat"),
    **dict.fromkeys(("chunk", "tensor_split", "split_with_sizes"), "split"),
    **dict.fromkeys(("select", "narrow", "slice"), "getitem"),
    **dict.fromkeys(
        (
            *("to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "short", "bool"),
            *("byte", "char", "cfloat", "cdouble"),
        ),
        "cast",
    ),
    **dict.fromkeys(("expand_as", "broadcast_to"), "expand"),
    "repeat": "tile",
    **dict.fromkeys(("clip", "clamp_min", "clamp_max"), "clamp"),
    **dict.fromkeys(("lt", "less", "__lt__"), "less_than"),
    **dict.fromkeys(("le", "__le__"), "less_equal"),
    **dict.fromkeys(("gt", "greater", "__gt__"), "greater_than"),
    **dict.fromkeys(("ge", "__ge__"), "greater_equal"),
    **dict.fromkeys(("eq", "__eq__"), "equal"),
    **dict.fromkeys(("ne", "__ne__"), "not_equal"),
    **dict.fromkeys(("logical_not", "bitwise_not", "__invert__"), "logical_not"),
    **dict.fromkeys(("logical_and", "bitwise_and", "__and__", "__iand__"), "logical_and"),
    **dict.fromkeys(("logical_or", "bitwise_or", "__or__", "__ior__"), "logical_or"),
    **dict.fromkeys(("logical_xor", "bitwise_xor", "__xor__", "__ixor__"), "logical_xor"),
    "logsigmoid": "log_sigmoid",
    "data": "detach",
    "conv_transpose1d": "conv1d_transpose",
    "conv_transpose2d": "conv2d_transpose",
    "conv_transpose3d": "conv3d_transpose",
    "upsample": "interpolate",
    **{f"new_{name}": name for name in ("zeros", "ones", "full", "empty", "tensor")},
    "as_tensor": "tensor",
    "gather": "take_along_axis",
    "vector_norm": "norm",
}
# Attributes that compute; every other one only looks.
COMPUTED_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})
# Give back a tensor without computing one.
NOT_OPS = frozenset({"requires_grad_", "retain_grad", "share_memory_", "pin_memory", "as_subclass", "set_"})


@contextmanager
def watch_ops(tracker: CallTracker, on_op: OnOp) -> Iterator[None]:
    """While inside, ops that the user's modules make are reported."""
    with nullcontext() if MODES_SEE_INDICES else indices_seen(), _Mode(OpReporter(tracker, on_op)):
        yield


class _Mode(TorchFunctionMode):
    def __init__(self, reporter: OpReporter) -> None:
        super().__init__()
        self._reporter = reporter

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        native = _native_name(func)
        frame = self._reporter.listening() if native is not None else None
        if frame is None or native is None:
            return func(*args, **kwargs)
        in_place = works_in_place(native, kwargs) or _inplace_by_position(func, args)
        given = as_passed(args, _is_tensor, _copy) if in_place else args
        output = func(*args, **kwargs)
        if native.endswith("__setitem__"):
            self._reporter.report(frame, "setitem", native, given, kwargs, args[0], func)
            return output
        name = base_name(native, RENAMED)
        if not holds_tensor(output, _is_tensor) and name not in HOOKS:
            return output
        return self._reporter.report(frame, name, native, given, kwargs, output, func)


@cache
def _native_name(func: Any) -> str | None:
    """PyTorch's own name of an op; None for what is not one."""
    name = name_of(func) or f"{func.__module__}.{func.__name__}"
    if name.endswith((".__get__", ".__set__", ".__delete__")):
        attribute, _, access = name.rpartition(".")
        computes = access == "__get__" and attribute.rpartition(".")[2] in COMPUTED_ATTRIBUTES
        return attribute if computes else None
    return None if name.rpartition(".")[2] in NOT_OPS else name


@cache
def _inplace_position(func: Any) -> int | None:
    """Where a function of ``torch.nn.functional`` takes ``inplace``, if it does."""
    try:
        names = list(inspect.signature(func).parameters)
    except (TypeError, ValueError):  # written in C: no signature, and no such argument
        return None
    return names.index("inplace") if "inplace" in names else None


def _inplace_by_position(func: Any, args: tuple[Any, ...]) -> bool:
    position = _inplace_position(func)
    return position is not None and len(args) > position and args[position] is True


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _copy(tensor: Any) -> Any:
    return tensor.detach().clone()
