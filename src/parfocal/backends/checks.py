"""Checks on arguments that every backend makes in the same words.

Only NumPy here: dtype names, byte order, the agreement that ``write`` demands, modes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, get_args

import numpy as np

from parfocal.backends.protocol import Array, Mode, TensorBackend
from parfocal.errors import InputError, UnsupportedError
from parfocal.phrases import phrase


@cache
def dtype_name(dtype: np.dtype[Any]) -> str:
    """``dtype.name``, which NumPy spells anew at every access."""
    name: str = dtype.name
    return name


def as_native(array: Array) -> Array:
    """The array in this machine's byte order."""
    return np.asarray(array, dtype=array.dtype.newbyteorder("="))


def check_write(shape: tuple[int, ...], dtype: str, array: Array) -> None:
    """Refuse values that do not fit the tensor exactly: no broadcasting, no conversion."""
    if array.shape != shape:
        raise InputError(
            phrase(
                "cannot write an array of shape {shape} into a tensor of shape {target}",
                shape=array.shape,
                target=shape,
            ),
            hint=phrase("reshape or transpose the array first"),
        )
    if dtype_name(array.dtype) != dtype:
        raise InputError(
            phrase(
                "cannot write an array of dtype {name} into a tensor of dtype {dtype}",
                name=array.dtype.name,
                dtype=dtype,
            ),
            hint=phrase("convert the array first: array.astype({dtype})", dtype=repr(dtype)),
        )


def check_mode(mode: str) -> None:
    """Refuse a mode that does not exist."""
    allowed = get_args(Mode)
    if mode not in allowed:
        raise InputError(
            phrase(
                "there is no mode {mode}; the modes are: {allowed}",
                mode=repr(mode),
                allowed=", ".join(allowed),
            )
        )


def no_dtype(where: str, dtype: Any, allowed: Iterable[str]) -> UnsupportedError:
    """The error for a dtype that one side does not have."""
    return UnsupportedError(
        phrase(
            "{where} has no dtype {dtype}; it has: {allowed}",
            where=where,
            dtype=dtype,
            allowed=", ".join(sorted(allowed)),
        ),
        hint=phrase("convert to one of these first"),
    )


def check_backward(backend: TensorBackend, outputs: Sequence[Any], gradients: Sequence[Any | None]) -> None:
    """Refuse what frameworks answer differently: missing gradients, outputs without a graph."""
    if len(outputs) != len(gradients):
        raise InputError(
            phrase(
                "backward got {outputs} outputs and {gradients} gradients",
                outputs=len(outputs),
                gradients=len(gradients),
            )
        )
    for index, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        shape = backend.shape(output)
        if not backend.requires_grad(output):
            raise InputError(
                phrase(
                    "output {index} of shape {shape} takes no part in autograd, so nothing can flow back",
                    index=index,
                    shape=shape,
                ),
                hint=phrase("leave it out, or make an input or a parameter require a gradient"),
            )
        if gradient is None and math.prod(shape) != 1:
            raise InputError(
                phrase(
                    "output {index} has shape {shape}: only a single number can go without a gradient",
                    index=index,
                    shape=shape,
                ),
                hint=phrase("give a gradient of the same shape, or reduce the output to a scalar"),
            )
        if gradient is not None and backend.shape(gradient) != shape:
            raise InputError(
                phrase(
                    "output {index} has shape {shape} and its gradient {gradient}",
                    index=index,
                    shape=shape,
                    gradient=backend.shape(gradient),
                ),
                hint=phrase("both must be the same"),
            )


def check_plateau(metric: float | None) -> float:
    """Refuse to step a schedule that follows a metric without one."""
    if metric is None:
        raise InputError(
            phrase("this schedule lowers the learning rate when a metric stops improving, and got no metric"),
            hint=phrase("pass the value it should follow, e.g. the validation loss"),
        )
    return metric


def not_of_model(count: int, model: str) -> InputError:
    """The error for an optimizer that has nothing to do with the model it was given with."""
    return InputError(
        phrase(
            "none of the optimizer's {count} parameters is a parameter of this {model}",
            count=count,
            model=model,
        ),
        hint=phrase("make the optimizer from the parameters of the very model that is passed"),
    )


def check_closure(closure: Callable[[], Any] | None) -> Callable[[], Any]:
    """The closure that an optimizer needs to compute the loss again itself."""
    if closure is None:
        raise UnsupportedError(
            phrase("LBFGS computes the loss again inside its step, which a recorded step cannot give it"),
            hint=phrase("compare a step with another optimizer, or call optimizer.step(closure) yourself"),
        )
    return closure
