"""PyTorch at an extreme of rounding: every op of the table has another kernel where the graph is recorded.

A kernel there is seen by no function mode, no dispatch mode and no patch of a name, and it is what backward
and optimizers call as well.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import CodeType
from typing import Any

import torch
from torch._C._functorch import is_functorch_wrapped_tensor

from .noise import move
from .setting import Rounding
from .table import OPS, Op

NARROW = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}
BITS = {torch.float32: torch.int32, torch.bfloat16: torch.int16, torch.float16: torch.int16}
KEY = "AutogradCPU"
eval_frame = torch._C._dynamo.eval_frame
SKIPPED = eval_frame._FrameExecStrategy(eval_frame._FrameAction.SKIP, eval_frame._FrameAction.SKIP)
HIDDEN = "<frozen rounding>"  # whoever asks where in the user's code a call was made is not told this file


def install(rounding: Rounding) -> ExitStack:
    """Puts the kernels in place; closing what is given back takes them away again."""
    undo = ExitStack()
    library = torch.library.Library("aten", "IMPL")
    undo.callback(library._destroy)
    key = rounding.key("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are replaced is what is wanted
        for op in OPS:
            for name in op.torch:
                own = torch.library.get_kernel(f"aten::{name}", KEY)
                library.impl(name, _kernel(op, own, key), KEY, with_keyset=True, allow_override=True)
    return undo


def _kernel(op: Op, own: Any, key: int | None) -> Callable[..., Any]:
    def call(keys: Any, *args: Any, **kwargs: Any) -> Any:
        dtype = _narrow_dtype(args, kwargs)
        if dtype is None or op.by_row("torch", args, kwargs):
            return own.call_boxed(keys, *args, **kwargs)
        adds = (
            op.torch_adds is not None and dtype is torch.float32
        )  # in half precision paddle adds it at once
        bias = args[op.torch_adds] if adds else None
        if bias is not None:
            args = (*args[: op.torch_adds], None, *args[op.torch_adds + 1 :])
        wide = [_widened(each, dtype, key) for each in args]
        found = own.call_boxed(
            keys, *wide, **{name: _widened(each, dtype, key) for name, each in kwargs.items()}
        )
        for position in op.torch_writes:
            if len(args) > position and args[position] is not None:
                with torch.no_grad():
                    args[position].copy_(_narrowed(wide[position].detach(), dtype, key))
        if isinstance(found, (tuple, list)):
            return tuple(_narrowed(each, dtype, key) for each in found)
        narrow = _narrowed(found, dtype, key)
        return narrow if bias is None else narrow + bias.view(-1, *(1,) * (narrow.dim() - 2))

    call.__code__ = _hidden(call.__code__)
    return call


def _hidden(code: CodeType) -> CodeType:
    """Under no file of ours, and nothing that ``torch.compile`` looks into."""
    found = code.replace(
        co_filename=HIDDEN,
        co_consts=tuple(_hidden(each) if isinstance(each, CodeType) else each for each in code.co_consts),
    )
    eval_frame.set_code_exec_strategy(found, SKIPPED)
    return found


def _narrow_dtype(args: Any, kwargs: Any) -> Any:
    """What all tensors of floating numbers have in common, where that can be widened."""
    tensors = list(_tensors((*args, *kwargs.values())))
    floating = [each for each in tensors if each.is_floating_point()]
    dtypes = {each.dtype for each in floating}
    if len(dtypes) != 1 or not dtypes <= NARROW.keys():
        return None
    if not all(each.device.type == "cpu" and each.layout == torch.strided for each in tensors):
        return None
    return dtypes.pop()


def _tensors(values: Any) -> Any:
    for each in values:
        if isinstance(each, torch.Tensor):
            yield each
        elif isinstance(each, (tuple, list)):
            yield from _tensors(each)


def _widened(value: Any, dtype: Any, key: int | None) -> Any:
    if isinstance(value, (tuple, list)):
        return [_widened(each, dtype, key) for each in value]
    if isinstance(value, torch.dtype):
        return torch.float64 if value == dtype else value
    if not isinstance(value, torch.Tensor) or value.dtype != dtype:
        return value
    wide = value.to(torch.float64)
    if key is not None and wide.requires_grad:
        wide.register_hook(partial(_moved_gradient, dtype, key))
    return wide


def _moved_gradient(dtype: Any, key: int, gradient: Any) -> Any:
    """What is narrowed next: already so, and moved. A step that can be differentiated once more."""
    with torch.no_grad():
        moved = _narrowed(gradient.detach(), dtype, key).to(torch.float64)
        change = moved - gradient
    return gradient + change if torch.isfinite(change).all() else gradient


def _narrowed(value: Any, dtype: Any, key: int | None) -> Any:
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float64:
        return value
    narrow = value.to(dtype)
    plain = type(narrow) is torch.Tensor and not is_functorch_wrapped_tensor(narrow)
    if key is not None and plain and narrow.numel():
        with torch.no_grad():
            exact = narrow.detach().to(torch.float64) == value.detach()
            bits = narrow.detach().view(BITS[dtype]).numpy()
            move(bits.view(f"u{bits.itemsize}"), exact.numpy(), NARROW[dtype], key)
    return narrow


for _each in (_narrow_dtype, _tensors, _widened, _moved_gradient, _narrowed, move):
    _each.__code__ = _hidden(_each.__code__)
