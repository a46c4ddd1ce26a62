"""Mixed precision on a CPU, where paddle has none: what it would compute in lower precision is rounded to it.

Operands and results have the values that they would have; sums inside of a product are longer, as those of
kernels for lower precision are. Gradients are rounded on their way back in the same places.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import paddle

from parfocal.backends.paddle.exchanging import exchanged

# Kernels that paddle.amp lowers at both levels ...
PRODUCTS = (
    *("matmul", "linear", "bmm", "addmm", "einsum", "mv"),
    *("conv2d", "conv3d", "depthwise_conv2d", "conv2d_transpose", "conv3d_transpose"),
    "depthwise_conv2d_transpose",
)
# ... and some of those that it lowers at O2 alone: what follows products in most models.
FOLLOWING = (
    *("add", "subtract", "multiply", "divide", "relu", "relu6", "leaky_relu", "gelu", "silu", "hardswish"),
    *("sigmoid", "tanh", "softmax", "pool2d", "pad3d"),
)


def rounded(level: str, dtype: str) -> AbstractContextManager[None]:
    names = PRODUCTS + (FOLLOWING if level == "O2" else ())
    there = [name for name in names if hasattr(paddle._C_ops, name)]
    return exchanged(paddle._C_ops, there, partial(_called, dtype))


def _called(dtype: str, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    given = [_lowered(value, dtype) for value in args]
    return _lowered(kernel(*given, **{name: _lowered(value, dtype) for name, value in kwargs.items()}), dtype)


def _lowered(value: Any, dtype: str) -> Any:
    if isinstance(value, paddle.Tensor):
        return value.astype(dtype).astype("float32") if value.dtype == paddle.float32 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_lowered(each, dtype) for each in value)
    return value
