"""Activations in NumPy, to recognise one by what it does to numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.phrases import phrase

Function = Callable[[Array], Array]


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, x))


def _hardsigmoid(x: Array) -> Array:
    return np.asarray(np.clip(x / 6.0 + 0.5, 0.0, 1.0))


def _gelu_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))))


def _selu(x: Array) -> Array:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0.0)))


# By the name of the functional op that does it in every framework.
ACTIVATIONS: dict[str, Function] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "relu6": lambda x: np.clip(x, 0.0, 6.0),
    "sigmoid": lambda x: scipy.special.expit(x),
    "tanh": np.tanh,
    "silu": lambda x: x * scipy.special.expit(x),
    "gelu": lambda x: x * scipy.special.ndtr(x),
    "gelu(approximate)": _gelu_tanh,
    "hardswish": lambda x: x * _hardsigmoid(x),
    "hardsigmoid": _hardsigmoid,
    "mish": lambda x: x * np.tanh(_softplus(x)),
    "softplus": _softplus,
    "softsign": lambda x: x / (1.0 + np.abs(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0.0))),
    "selu": _selu,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "log_sigmoid": lambda x: -_softplus(-x),
    phrase("softmax over the last axis"): lambda x: scipy.special.softmax(x, -1),
    phrase("log_softmax over the last axis"): lambda x: scipy.special.log_softmax(x, -1),
    "exp": np.exp,
    "neg": np.negative,
    "abs": np.abs,
    "square": np.square,
}
