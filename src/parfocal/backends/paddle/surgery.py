"""Tier 2 for PaddlePaddle, replaying: layers in another dtype, without dropout, with gradients kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
import paddle

from parfocal.backends.calls import drop_own_hooks
from parfocal.backends.module_copies import ModuleCopies
from parfocal.backends.muting import rate_of
from parfocal.backends.paddle.capabilities import ROUNDED
from parfocal.backends.paddle.exchanging import exchanged
from parfocal.backends.paddle.models import Models
from parfocal.backends.paddle.tensors import BITS, widened

_DROPPING = (
    *("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),
    "scaled_dot_product_attention",
)


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


class Surgery(Models, ModuleCopies):
    """What replaying asks of a backend for modules."""

    recurrent = (paddle.nn.layer.rnn.RNNBase,)

    def no_functional_dropout(self) -> AbstractContextManager[None]:
        def undropped(kernel: Any, x: Any, seed: Any, probability: Any, *rest: Any) -> Any:
            return kernel(x, seed, 0.0, *rest)

        return exchanged(paddle._C_ops, ("dropout", "dropout_"), undropped)

    def watch_dropout(self, on_drop: Callable[[float], None]) -> AbstractContextManager[None]:
        inside: list[bool] = []  # attention asks another of them for it

        def heard(function: Any, *args: Any, **kwargs: Any) -> Any:
            given = signature(function).bind(*args, **kwargs)
            given.apply_defaults()
            rate = rate_of(given.arguments.get("p", given.arguments.get("dropout_p")))
            if inside or rate == 0 or not given.arguments["training"]:
                return function(*args, **kwargs)
            on_drop(rate)
            inside.append(True)
            try:
                return function(*args, **kwargs)
            finally:
                inside.pop()

        return exchanged(paddle.nn.functional, _DROPPING, heard)

    def widened(self) -> AbstractContextManager[None]:
        return widened()

    def mixed_precision(self, model: Any, level: str, dtype: str) -> AbstractContextManager[Any]:
        if self.lowers(model, dtype):
            found: AbstractContextManager[Any] = paddle.amp.auto_cast(level=level, dtype=dtype)
            return found
        return _rounded(level, dtype)

    def lowers(self, model: Any, dtype: str) -> bool:
        # on a CPU auto_cast warns and does nothing, and hardly a kernel takes bfloat16
        first = next(iter(model.parameters()), None)
        return first is not None and not first.place.is_cpu_place()

    @contextmanager
    def gradients_kept(self, model: Any) -> Iterator[None]:
        # a copy, because clearing a gradient frees its memory
        kept = [
            (parameter, None if parameter.grad is None else parameter.grad.clone())
            for parameter in model.parameters()
        ]
        try:
            for parameter, _ in kept:
                parameter.clear_gradient(False)
            yield
        finally:
            for parameter, gradient in kept:
                parameter.clear_gradient(False)
                if gradient is not None:
                    parameter.grad = gradient

    def make_bare(self, twin: Any) -> None:
        for part in twin.sublayers(include_self=True):
            drop_own_hooks(part._forward_pre_hooks, *_flags(part, "_forward_pre_hooks_with_kwargs_flag"))
            drop_own_hooks(part._forward_post_hooks, *_flags(part, "_forward_post_hooks_always_called"))
        for parameter in twin.parameters():
            if parameter.trainable:
                parameter.clear_gradient(False)

    def convert(self, twin: Any, dtype: str) -> Any:
        twin._to_impl(dtype=dtype, floating_only=True)  # Layer.to makes floats of indices and masks too
        return twin


def _flags(layer: Any, name: str) -> list[Any]:
    """What a layer notes of its hooks under a name, in versions of paddle that do."""
    return [getattr(layer, name)] if hasattr(layer, name) else []


def _rounded(level: str, dtype: str) -> AbstractContextManager[None]:
    """Mixed precision on a CPU, where paddle has none: what it would lower is rounded to lower precision.

    Operands and results have the values that they would have; sums inside of a product are longer, as those
    of kernels for lower precision are. Gradients are rounded on their way back in the same places.
    """
    names = PRODUCTS + (FOLLOWING if level == "O2" else ())
    return exchanged(paddle._C_ops, names, partial(_called, dtype))


def _called(dtype: str, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    given = [_lowered(value, dtype) for value in args]
    return _lowered(kernel(*given, **{name: _lowered(value, dtype) for name, value in kwargs.items()}), dtype)


def _nearest(tensor: Any, dtype: str) -> Any:
    if dtype in ROUNDED:
        return tensor.astype(dtype).astype("float32")
    return _Nearest.apply(tensor, dtype)


class _Nearest(paddle.autograd.PyLayer):
    """Values and gradients rounded to a dtype to which paddle's own cast does not round."""

    @staticmethod
    def forward(ctx: Any, tensor: Any, dtype: str) -> Any:
        ctx.dtype = dtype
        return _rounded_values(tensor, dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _rounded_values(gradient, ctx.dtype)


def _rounded_values(tensor: Any, dtype: str) -> Any:
    lower = np.dtype(BITS[dtype][1] if dtype in BITS else dtype)
    return paddle.to_tensor(tensor.numpy().astype(lower).astype("float32"), place=tensor.place)


def _lowered(value: Any, dtype: str) -> Any:
    if isinstance(value, paddle.Tensor):
        return _nearest(value, dtype) if value.dtype == paddle.float32 else value
    if isinstance(value, (list, tuple)):
        return type(value)(_lowered(each, dtype) for each in value)
    return value
