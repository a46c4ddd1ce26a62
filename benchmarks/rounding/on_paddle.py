"""PaddlePaddle at an extreme of rounding: every op of the table is exchanged under all its names.

Paddle's graph calls the kernels of backward itself, so they cannot be exchanged; but the op is recorded in
float64, between two casts, and so backward is in float64 as well.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import paddle
from paddle.base import core, framework

from .noise import WORDS, move
from .setting import Rounding
from .table import OPS, Op

_cast, _expand, _assign_out = paddle._C_ops.cast, paddle._C_ops.expand, paddle._C_ops.assign_out_
FLOAT64 = paddle.float64
NARROW = {paddle.float32: "float32", paddle.bfloat16: "bfloat16", paddle.float16: "float16"}
HIDDEN = "<frozen rounding>"  # whoever asks where in the user's code a call was made is not told this file
FOREIGN = ("paddle.base.libpaddle", "paddle.base.core")  # what was compiled, and the tables of its names


def install(rounding: Rounding) -> ExitStack:
    """Puts the functions in place; closing what is given back takes them away again."""
    undo = ExitStack()
    key = rounding.key("paddle")
    functions: dict[int, tuple[Any, Callable[..., Any]]] = {}
    for op in OPS:
        for name in op.paddle:
            own = _present(name)
            if own is not None:  # other versions have other kernels
                functions[id(own)] = own, _function(op, own, key)
    for owner in _owners():
        for name, own in list(vars(owner).items()):
            if id(own) in functions:
                undo.callback(setattr, owner, name, own)
                setattr(owner, name, functions[id(own)][1])
    return undo


def _present(name: str) -> Any:
    owner: Any = paddle.Tensor if name.startswith("__") else paddle if "." in name else paddle._C_ops
    *path, last = name.split(".")
    return vars(functools.reduce(getattr, path, owner)).get(last)


def _owners() -> Iterator[Any]:
    """What has a function under a name of its own: modules, and the tensor as a method."""
    yield paddle.Tensor
    for name, module in list(sys.modules.items()):
        if (name == "paddle" or name.startswith("paddle.")) and not name.startswith(FOREIGN):
            yield module


def _function(op: Op, own: Callable[..., Any], key: int | None) -> Callable[..., Any]:
    @functools.wraps(own)
    def call(*args: Any, **kwargs: Any) -> Any:
        dtype = _narrow_dtype(args, kwargs)
        if dtype is None or op.by_row("paddle", args, kwargs):
            return own(*args, **kwargs)
        if op.broadcasts:
            return own(*_expanded(args, dtype, key), **kwargs)
        wide = [_widened(each, dtype, key) for each in args]
        found = own(*wide, **{name: _widened(each, dtype, key) for name, each in kwargs.items()})
        if found is NotImplemented:
            return own(*args, **kwargs)
        for position in op.paddle_writes:
            if len(args) > position and args[position] is not None:
                with paddle.no_grad():
                    _assign_out(_narrowed(wide[position].detach(), dtype, key), args[position])
        return _narrowed(found, dtype, key)

    call.__code__ = call.__code__.replace(co_filename=HIDDEN)
    return call


def _narrow_dtype(args: Any, kwargs: Any) -> Any:
    """What all tensors of floating numbers have in common, where that can be widened."""
    if kwargs.get("out") is not None:
        return None
    tensors = list(_tensors((*args, *kwargs.values())))
    if not tensors or framework._dygraph_tracer()._amp_level != core.AmpLevel.O0:
        return None
    floating = [each for each in tensors if each.is_floating_point() and each._is_initialized()]
    dtypes = {each.dtype for each in floating}
    if len(dtypes) != 1 or not dtypes <= NARROW.keys():
        return None
    if not all(each.is_dense() and each.place.is_cpu_place() for each in floating):
        return None
    return dtypes.pop()


def _expanded(args: Any, dtype: Any, key: int | None) -> Any:
    """Two tensors in one shape: an op of its own, whose backward sums in float64."""
    if len(args) < 2 or not all(isinstance(each, paddle.Tensor) and each.dtype == dtype for each in args[:2]):
        return args
    shapes = [tuple(each.shape) for each in args[:2]]
    if shapes[0] == shapes[1] or 0 in shapes[0] + shapes[1]:
        return args
    shape = np.broadcast_shapes(*shapes)
    both = [
        each if own == shape else _narrowed(_expand(_widened(each, dtype, key), list(shape)), dtype, key)
        for each, own in zip(args[:2], shapes, strict=True)
    ]
    return *both, *args[2:]


def _tensors(values: Any) -> Any:
    for each in values:
        if isinstance(each, paddle.Tensor):
            yield each
        elif isinstance(each, (tuple, list)):
            yield from _tensors(each)


def _widened(value: Any, dtype: Any, key: int | None) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_widened(each, dtype, key) for each in value)
    if isinstance(value, core.DataType):
        return FLOAT64 if value == dtype else value
    if not isinstance(value, paddle.Tensor) or value.dtype != dtype or not value._is_initialized():
        return value  # what has no values yet is written by the op
    wide = _cast(value, FLOAT64)
    if key is not None and not wide.stop_gradient:
        wide.register_hook(functools.partial(_moved_gradient, dtype, key))
    return wide


def _moved_gradient(dtype: Any, key: int, gradient: Any) -> Any:
    """What is narrowed next: already so, and moved. A step that can be differentiated once more."""
    with paddle.no_grad():
        moved = _cast(_narrowed(gradient.detach(), dtype, key), FLOAT64)
        change = moved - gradient.detach()
        finite = bool(paddle.isfinite(change).all())
    return gradient + change if finite else gradient


def _narrowed(value: Any, dtype: Any, key: int | None) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(_narrowed(each, dtype, key) for each in value)
    if not isinstance(value, paddle.Tensor) or value.dtype != FLOAT64 or not value._is_initialized():
        return value
    narrow = _cast(value, dtype)
    if key is not None and narrow.size:
        with paddle.no_grad():
            exact = (_cast(narrow, FLOAT64) == value).numpy()
        word = WORDS[narrow.element_size()]
        held = (ctypes.c_char * (exact.size * np.dtype(word).itemsize)).from_address(narrow.data_ptr())
        move(np.frombuffer(held, word).reshape(exact.shape), exact, NARROW[dtype], key)
    return narrow


for _each in (_narrow_dtype, _expanded, _tensors, _widened, _moved_gradient, _narrowed):
    _each.__code__ = _each.__code__.replace(co_filename=HIDDEN)
