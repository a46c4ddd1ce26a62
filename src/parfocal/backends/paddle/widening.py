"""For a run in float64: code that asks for float32 is given float64.

A model's own code says ``x.astype("float32")`` or ``paddle.arange(n, dtype="float32")``; what it computes
from that would be rounded as before. What is drawn at random stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import paddle
from paddle.base import core

_MAKING = (
    *("cast", "cast_", "full", "full_", "full_like", "arange", "linspace", "logspace", "eye", "empty"),
    *("empty_like", "assign_value_"),
)


@contextmanager
def widened() -> Iterator[None]:
    before = {name: getattr(paddle._C_ops, name) for name in _MAKING}
    try:
        for name, function in before.items():
            setattr(paddle._C_ops, name, partial(_called, function))
        yield
    finally:
        for name, function in before.items():
            setattr(paddle._C_ops, name, function)


def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*map(_wider, args), **{name: _wider(value) for name, value in kwargs.items()})


def _wider(value: Any) -> Any:
    narrow = isinstance(value, core.DataType) and value == core.DataType.FLOAT32
    return core.DataType.FLOAT64 if narrow else value
