"""Functions of toybox under watch: its own listeners hear of every call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import toybox
from toybox import functions

from parfocal.backends.calls import CallTracker
from parfocal.backends.opcalls import HOOKS, OpReporter, as_passed, base_name, holds_tensor, works_in_place
from parfocal.backends.protocol import OnOp

RENAMED = {
    "astype": "cast",
    "swap": "transpose",
    "take": "getitem",
    "convolve": "conv2d",
    "lookup": "embedding",
}


@contextmanager
def listening(listener: Callable[..., Any]) -> Iterator[None]:
    """While inside, it is called as listener(function, name, *args, **kwargs) in place of every function."""
    functions.listeners.append(listener)
    try:
        yield
    finally:
        functions.listeners.remove(listener)


def watch_ops(tracker: CallTracker, on_op: OnOp) -> Any:
    reporter = OpReporter(tracker, on_op)

    def listener(function: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        frame = reporter.listening()
        if frame is None:
            return function(*args, **kwargs)
        native = f"toybox.{name}"
        given = as_passed(args, _is_tensor, _copy) if works_in_place(native, kwargs) else args
        output = function(*args, **kwargs)
        if name.endswith("__setitem__"):
            reporter.report(frame, "setitem", native, given, kwargs, args[0], function)
            return output
        common = base_name(native, RENAMED)
        if not holds_tensor(output, _is_tensor) and common not in HOOKS:
            return output
        return reporter.report(frame, common, native, given, kwargs, output, function)

    return listening(listener)


def _is_tensor(value: object) -> bool:
    return isinstance(value, toybox.Tensor)


def _copy(tensor: Any) -> Any:
    return toybox.Tensor(tensor.data.copy())
