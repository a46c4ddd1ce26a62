"""Functional ops of PaddlePaddle under watch, and the common names of those that are named otherwise here.

Paddle has no mode that sees API calls, so the public functions, the Tensor's methods and
operators and the kernels below them (``paddle._C_ops``, for functions imported by name
earlier) are wrapped while a watch is on, and put back exactly when the last one ends.
"""

from __future__ import annotations

import functools
import operator
import threading
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import paddle

from parfocal.backends.calls import CallTracker
from parfocal.backends.opcalls import HOOKS, OpReporter, as_passed, base_name, holds_tensor, works_in_place
from parfocal.backends.protocol import OnOp

# Paddle's name, without a trailing underscore -> common name. Others keep their own.
RENAMED = {
    **dict.fromkeys(("__add__", "__radd__", "elementwise_add"), "add"),
    **dict.fromkeys(("subtract", "__sub__"), "sub"),
    "__rsub__": "rsub",
    **dict.fromkeys(("multiply", "__mul__", "__rmul__"), "mul"),
    **dict.fromkeys(("divide", "true_divide", "__div__", "__truediv__"), "div"),
    **dict.fromkeys(("__rdiv__", "__rtruediv__"), "rdiv"),
    **dict.fromkeys(("floor_divide", "__floordiv__"), "floor_divide"),
    **dict.fromkeys(("mod", "floor_mod", "remainder", "__mod__"), "remainder"),
    **dict.fromkeys(("__pow__", "elementwise_pow"), "pow"),
    "__rpow__": "rpow",
    **dict.fromkeys(("negative", "__neg__"), "neg"),
    **dict.fromkeys(("__abs__", "absolute"), "abs"),
    **dict.fromkeys(("mm", "bmm", "__matmul__"), "matmul"),
    "__rmatmul__": "rmatmul",
    **dict.fromkeys(("view", "view_as", "flatten", "unflatten", "ravel"), "reshape"),
    **dict.fromkeys(("t", "T", "mT", "permute", "swapaxes", "swapdims", "moveaxis", "movedim"), "transpose"),
    **dict.fromkeys(("cat", "concatenate"), "concat"),
    **dict.fromkeys(("chunk", "tensor_split", "split_with_num"), "split"),
    **dict.fromkeys(("slice", "strided_slice", "narrow", "select"), "getitem"),
    **dict.fromkeys(
        (
            *("astype", "to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long"),
            *("short", "bool", "byte", "char", "cpu", "cuda"),
        ),
        "cast",
    ),
    **dict.fromkeys(("expand_as", "broadcast_to"), "expand"),
    "repeat": "tile",
    "clip": "clamp",
    **dict.fromkeys(("lt", "less", "less_than", "__lt__"), "less_than"),
    **dict.fromkeys(("le", "__le__"), "less_equal"),
    **dict.fromkeys(("gt", "greater", "__gt__"), "greater_than"),
    **dict.fromkeys(("ge", "__ge__"), "greater_equal"),
    **dict.fromkeys(("eq", "__eq__"), "equal"),
    **dict.fromkeys(("ne", "__ne__"), "not_equal"),
    **dict.fromkeys(("logical_not", "bitwise_not", "__invert__"), "logical_not"),
    **dict.fromkeys(("logical_and", "bitwise_and", "__and__", "__rand__"), "logical_and"),
    **dict.fromkeys(("logical_or", "bitwise_or", "__or__", "__ror__"), "logical_or"),
    **dict.fromkeys(("logical_xor", "bitwise_xor", "__xor__", "__rxor__"), "logical_xor"),
    "swish": "silu",
    "logsigmoid": "log_sigmoid",
    "linear_v2": "linear",
    "depthwise_conv2d": "conv2d",
    "lookup_table_v2": "embedding",
    "softmax_with_cross_entropy": "cross_entropy",
    "cross_entropy_with_softmax": "cross_entropy",
    **{f"{mode}_interp": "interpolate" for mode in ("nearest", "bilinear", "bicubic", "linear", "trilinear")},
    **dict.fromkeys(("pad3d", "pad2d"), "pad"),
    "upsample": "interpolate",
    "to_tensor": "tensor",
    **{f"new_{name}": name for name in ("zeros", "ones", "full", "empty", "tensor")},
    "assign": "clone",
    "gather": "index_select",
}
NAMESPACES = (
    *("paddle.nn.functional", "paddle", "paddle.linalg", "paddle.fft", "paddle.incubate.nn.functional"),
    *("paddle.compat", "paddle.compat.nn.functional"),
)
UNLISTED = ("norm", "sigmoid", "cholesky", "eigvalsh", "inverse")  # functions of paddle, not in its __all__
# Give back a tensor without computing one, or are about something else than values.
NOT_OPS = frozenset(
    {
        *("grad", "load", "save", "create_parameter", "create_global_var", "summary", "flops", "seed"),
        *("backward", "gradient", "get_tensor", "set_value", "requires_grad_", "cauchy_"),
        *("numpy", "item", "tolist", "values", "apply", "apply_", "retain_grads", "value", "pin_memory"),
        *("is_tensor", "is_complex", "is_floating_point", "is_integer", "is_empty", "numel", "rank", "shape"),
    }
)
OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *("add", "radd", "sub", "rsub", "mul", "rmul", "div", "truediv", "rdiv", "rtruediv", "floordiv"),
        *("rfloordiv", "pow", "rpow", "mod", "rmod", "matmul", "rmatmul", "gt", "ge", "lt", "le", "eq", "ne"),
        *("neg", "abs", "and", "rand", "or", "ror", "xor", "rxor", "invert", "getitem", "setitem"),
    )
)
COMPUTED_ATTRIBUTES = ("T", "mT")
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)

_lock = threading.Lock()
_reporters: list[OpReporter] = []
_replaced: list[tuple[Any, dict[str, Any]]] = []  # owners, and what they had
_exchanged: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # the same and what was put there, by owner


@contextmanager
def watch_ops(tracker: CallTracker, on_op: OnOp) -> Iterator[None]:
    """While inside, ops that the user's modules make are reported."""
    reporter = OpReporter(tracker, on_op)
    with _lock:
        if not _reporters:
            _install()
        _reporters.append(reporter)
    try:
        yield
    finally:
        with _lock:
            _reporters.remove(reporter)
            if not _reporters:
                _restore()


def _install() -> None:
    try:
        for owner, natives in _targets():
            before, instead = _exchange(owner, natives)
            _replaced.append((owner, before))
            _put(owner, instead)
    except BaseException:
        _restore()
        raise


def _exchange(owner: Any, natives: dict[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an owner has, and what takes its place; mostly it has what it had when it was last asked."""
    before, instead = _exchanged.get(id(owner), ({}, {}))
    now = map(vars(owner).__getitem__, natives)
    if before.keys() != natives.keys() or not all(map(operator.is_, before.values(), now)):
        before = {name: vars(owner)[name] for name in natives}
        instead = {name: _replacement(natives[name], before[name]) for name in natives}
        _exchanged[id(owner)] = before, instead
    return before, instead


def _restore() -> None:
    while _replaced:
        _put(*_replaced.pop())


def _put(owner: Any, values: dict[str, Any]) -> None:
    if isinstance(owner, types.ModuleType):
        vars(owner).update(values)
    else:
        for name, value in values.items():
            setattr(owner, name, value)


@functools.cache
def _replacement(native: str, original: Any) -> Any:
    if isinstance(original, property):
        getter = _wrapped(native, original.fget)
        return property(getter, original.fset, original.fdel, original.__doc__)
    return _wrapped(native, original)


@functools.cache  # two and a half thousand
def _targets() -> list[tuple[Any, dict[str, str]]]:
    """Owners, each with the names of its functions and their full names."""
    found: list[tuple[Any, dict[str, str]]] = []
    for namespace in NAMESPACES:
        module: Any = paddle
        for part in namespace.split(".")[1:]:
            module = getattr(module, part, None)  # paddle.compat came with 3.2
        if module is None:
            continue
        names = (*getattr(module, "__all__", ()), *(UNLISTED if module is paddle else ()))
        found.append((module, _functions(module, namespace, names)))
    methods = _functions(
        paddle.Tensor, "paddle.Tensor", [each for each in vars(paddle.Tensor) if each[0] != "_"]
    )
    special = (name for name in (*OPERATORS, *COMPUTED_ATTRIBUTES) if name in vars(paddle.Tensor))
    found.append((paddle.Tensor, {**methods, **{name: f"paddle.Tensor.{name}" for name in special}}))
    natives = {name: each for name, each in vars(paddle._C_ops).items() if isinstance(each, FUNCTIONS)}
    found.append((paddle._C_ops, {name: f"paddle._C_ops.{name}" for name in natives}))
    return found


def _functions(owner: Any, namespace: str, names: Iterable[str]) -> dict[str, str]:
    there = vars(owner)
    return {
        name: f"{namespace}.{name}"
        for name in names
        if isinstance(there.get(name), FUNCTIONS) and name not in NOT_OPS
    }


def _wrapped(native: str, original: Any) -> Callable[..., Any]:
    name = base_name(native, RENAMED)
    sets_item = native.endswith("__setitem__")

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        listening = [(reporter, frame) for reporter in _reporters if (frame := reporter.listening())]
        if not listening:
            return original(*args, **kwargs)
        for _, frame in listening:
            frame.in_op = True
        try:
            in_place = works_in_place(native, kwargs)
            given = as_passed(args, _is_tensor, _copy) if in_place else args
            output = original(*args, **kwargs)
        finally:
            for _, frame in listening:
                frame.in_op = False
        reported = args[0] if sets_item else output
        if not holds_tensor(reported, _is_tensor) and name not in HOOKS:
            return output
        for reporter, frame in listening:
            reported = reporter.report(frame, name, native, given, kwargs, reported, original)
        return output if sets_item else reported

    return call


def _is_tensor(value: object) -> bool:
    return isinstance(value, paddle.Tensor)


def _copy(tensor: Any) -> Any:
    return tensor.detach().clone()
