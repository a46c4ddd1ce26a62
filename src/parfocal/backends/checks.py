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
            f"cannot write an array of shape {array.shape} into a tensor of shape {shape}",
            hint="reshape or transpose the array first",
        )
    if dtype_name(array.dtype) != dtype:
        raise InputError(
            f"cannot write an array of dtype {array.dtype.name} into a tensor of dtype {dtype}",
            hint=f"convert the array first: array.astype({dtype!r})",
        )


def check_mode(mode: str) -> None:
    """Refuse a mode that does not exist."""
    allowed = get_args(Mode)
    if mode not in allowed:
        raise InputError(f"there is no mode {mode!r}; the modes are: {', '.join(allowed)}")


def no_dtype(where: str, dtype: Any, allowed: Iterable[str]) -> UnsupportedError:
    """The error for a dtype that one side does not have."""
    return UnsupportedError(
        f"{where} has no dtype {dtype}; it has: {', '.join(sorted(allowed))}",
        hint="convert to one of these first",
    )


def check_backward(backend: TensorBackend, outputs: Sequence[Any], gradients: Sequence[Any | None]) -> None:
    """Refuse what frameworks answer differently: missing gradients, outputs without a graph."""
    if len(outputs) != len(gradients):
        raise InputError(f"backward got {len(outputs)} outputs and {len(gradients)} gradients")
    for index, (output, gradient) in enumerate(zip(outputs, gradients, strict=True)):
        shape = backend.shape(output)
        if not backend.requires_grad(output):
            raise InputError(
                f"output {index} of shape {shape} takes no part in autograd, so nothing can flow back",
                hint="leave it out, or make an input or a parameter require a gradient",
            )
        if gradient is None and math.prod(shape) != 1:
            raise InputError(
                f"output {index} has shape {shape}: only a single number can go without a gradient",
                hint="give a gradient of the same shape, or reduce the output to a scalar",
            )
        if gradient is not None and backend.shape(gradient) != shape:
            raise InputError(
                f"output {index} has shape {shape} and its gradient {backend.shape(gradient)}",
                hint="both must be the same",
            )


def check_plateau(metric: float | None) -> float:
    """Refuse to step a schedule that follows a metric without one."""
    if metric is None:
        raise InputError(
            "this schedule lowers the learning rate when a metric stops improving, and got no metric",
            hint="pass the value it should follow, e.g. the validation loss",
        )
    return metric


def not_of_model(count: int, model: str) -> InputError:
    """The error for an optimizer that has nothing to do with the model it was given with."""
    return InputError(
        f"none of the optimizer's {count} parameters is a parameter of this {model}",
        hint="make the optimizer from the parameters of the very model that is passed",
    )


def check_closure(closure: Callable[[], Any] | None) -> Callable[[], Any]:
    """The closure that an optimizer needs to compute the loss again itself."""
    if closure is None:
        raise UnsupportedError(
            "LBFGS computes the loss again inside its step, which a recorded step cannot give it",
            hint="compare a step with another optimizer, or call optimizer.step(closure) yourself",
        )
    return closure
