"""Telling a watcher about functional ops, for any framework that can intercept them.

An op is reported when the innermost call under way belongs to code a user wrote; what a
framework's own layer does inside counts as that layer, and what an op calls in turn counts
as that op. Frameworks bring the interception and the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from parfocal.backends.calls import CallTracker, Frame, callback_running, in_callback
from parfocal.backends.protocol import OnOp, OpCall

Copy = Callable[[Any], Any]
# They give no tensor and change gradients all the same: their output is the handle that takes them away.
HOOKS = frozenset({"register_hook"})


class OpReporter:
    """The ops of one watch."""

    def __init__(self, tracker: CallTracker, on_op: OnOp) -> None:
        self._tracker = tracker
        self._on_op = on_op
        self._orders = count()

    def listening(self) -> Frame | None:
        """The call whose code is running, if its ops are to be reported."""
        if in_callback():
            return None
        frame = self._tracker.current()
        return None if frame is None or frame.place.folds or frame.in_op else frame

    def report(
        self,
        frame: Frame,
        name: str,
        native: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: Any,
        function: Callable[..., Any],
    ) -> Any:
        """Tell the watcher; returns the output or its replacement."""
        order, call = next(self._orders), frame.call.order
        op = OpCall(order, frame.place.path, call, name, native, args, kwargs, output, function)
        with callback_running():
            replaced = self._on_op(op)
        return output if replaced is None else replaced


def base_name(native: str, renamed: Mapping[str, str]) -> str:
    """The common name of ``native``: its last word, without the mark of an op in place."""
    name = native.rpartition(".")[2]
    if name.endswith("_") and not name.endswith("__"):
        name = name.rstrip("_")
    return renamed.get(name, name.strip("_") if name.startswith("__") else name)


def works_in_place(native: str, kwargs: Mapping[str, Any]) -> bool:
    """Whether the op overwrites its first argument: ``add_``, ``x += y``, ``x[0] = y``, inplace=True."""
    name = native.rpartition(".")[2]
    if name.startswith("__"):
        return name in IN_PLACE_DUNDERS
    return name.endswith("_") or kwargs.get("inplace") is True


IN_PLACE_DUNDERS = frozenset(
    f"__{name}__"
    for name in (
        *("iadd", "isub", "imul", "idiv", "itruediv", "ifloordiv", "imod", "ipow", "imatmul"),
        *("iand", "ior", "ixor", "ilshift", "irshift", "setitem"),
    )
)


def as_passed(args: tuple[Any, ...], is_tensor: Callable[[object], bool], copy: Copy) -> tuple[Any, ...]:
    """The arguments of an op that is about to overwrite the first one, with the values it has now."""
    return (copy(args[0]), *args[1:]) if args and is_tensor(args[0]) else args


def holds_tensor(value: Any, is_tensor: Callable[[object], bool]) -> bool:
    """Whether a value is a tensor or a sequence with one somewhere inside."""
    if is_tensor(value):
        return True
    return isinstance(value, (list, tuple)) and any(holds_tensor(item, is_tensor) for item in value)
