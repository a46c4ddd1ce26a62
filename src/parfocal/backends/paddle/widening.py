"""For a run in float64: code that asks for float32 is given float64.

A model's own code says ``x.astype("float32")`` or ``paddle.arange(n, dtype="float32")``; what it computes
from that would be rounded as before. What is drawn at random stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import paddle
from paddle.base import core

from parfocal.backends.paddle.exchanging import exchanged

_MAKING = (
    *("cast", "cast_", "full", "full_", "full_like", "arange", "linspace", "logspace", "eye", "empty"),
    *("empty_like", "assign_value_"),
)


def widened() -> AbstractContextManager[None]:
    return exchanged(paddle._C_ops, _MAKING, _called)


def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*map(_wider, args), **{name: _wider(value) for name, value in kwargs.items()})


def _wider(value: Any) -> Any:
    narrow = isinstance(value, core.DataType) and value == core.DataType.FLOAT32
    return core.DataType.FLOAT64 if narrow else value
