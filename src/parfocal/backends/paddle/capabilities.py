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


def _goes_back(view: Callable[[Any, list[int]], Any]) -> bool:
    leaf = paddle._C_ops.empty([1], paddle.float32, paddle.CPUPlace())
    leaf.stop_gradient = False
    tensor = paddle._C_ops.assign(leaf)
    seen = view(tensor, [1])
    tensor._bump_inplace_version()
    try:
        paddle.grad([seen], [leaf])
    except RuntimeError:  # 2.6 has no such kernel, and in 3.0 it wants the tensor as it was
        return False
    return True


# A tensor hands out its memory with its strides, to be written too.
EXPORTS_MEMORY = hasattr(_SAMPLE.get_tensor(), "_to_dlpack_versioned")
# Hooks that go before the user's own, see keyword arguments, and are called when a call raises.
HOOKS_AROUND_CALLS = {"prepend", "with_kwargs"} <= _BEFORE.keys() and "always_call" in _AFTER
# ``tensor.dtype`` is paddle's own object, so that a look at its identity is enough.
ONE_OBJECT_A_DTYPE = _SAMPLE.dtype is paddle.float32
# A backward pass goes through a view of a tensor, also when the tensor was changed in place since.
VIEWS_GO_BACK = _goes_back(paddle._C_ops.view_shape)
