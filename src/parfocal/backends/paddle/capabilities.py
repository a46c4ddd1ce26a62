"""What the installed PaddlePaddle has, asked once when the backend is loaded.

What differs between versions is looked for here, and never told by a version's number. Whoever needs it
takes the other way where it is not there.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import paddle

_SAMPLE = paddle._C_ops.empty([1], paddle.float32, paddle.CPUPlace())
_BEFORE = signature(paddle.nn.Layer.register_forward_pre_hook).parameters
_AFTER = signature(paddle.nn.Layer.register_forward_post_hook).parameters


def _keeps_input(view: Callable[[Any, list[int]], Any]) -> bool:
    leaf = paddle._C_ops.empty([1], paddle.float32, paddle.CPUPlace())
    leaf.stop_gradient = False
    kept: list[Any] = []
    with paddle.autograd.saved_tensors_hooks(kept.append, lambda saved: saved):
        view(leaf, [1])
    return bool(kept)


def _rounds_to(dtype: str) -> bool:
    """Whether three quarters of the way to the next number of the dtype become that number."""
    digits = {"float16": 10, "bfloat16": 7}[dtype]
    tensor = paddle.to_tensor([1 + 0.75 * 2.0**-digits], "float32", paddle.CPUPlace())
    return bool(tensor.astype(dtype).astype("float32").item() > 1)


# A tensor hands out its memory with its strides, to be written too.
EXPORTS_MEMORY = hasattr(_SAMPLE.get_tensor(), "_to_dlpack_versioned")
# Hooks that go before the user's own, see keyword arguments, and are called when a call raises.
HOOKS_AROUND_CALLS = {"prepend", "with_kwargs"} <= _BEFORE.keys() and "always_call" in _AFTER
# ``tensor.dtype`` is paddle's own object, so that a look at its identity is enough.
ONE_OBJECT_A_DTYPE = _SAMPLE.dtype is paddle.float32
# A view of a tensor needs no values to go back, so the tensor may be changed in place meanwhile.
VIEWS_KEEP_NOTHING = not _keeps_input(paddle._C_ops.view_shape)
# Dtypes that a cast on the CPU rounds to. 3.0 cuts off what is too much of a float16, 2.6 of a bfloat16 too.
ROUNDED = frozenset(dtype for dtype in ("float16", "bfloat16") if _rounds_to(dtype))
