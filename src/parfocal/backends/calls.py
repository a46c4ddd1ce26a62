"""Keeping track of which module call is under way, for frameworks with hooks around calls.

One ``CallTracker`` belongs to one watch. A backend's hooks tell it when a call begins and
when it is over, also by an exception; it numbers the calls, nests them and runs the watcher's
callbacks. Every thread has its own stack, so models running side by side do not mix.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from itertools import count
from types import FunctionType
from typing import Any, NamedTuple
from weakref import WeakSet

from parfocal.backends.protocol import Call, OnEnter, OnExit


class _Callbacks(threading.local):
    running = False


_callbacks = _Callbacks()


def in_callback() -> bool:
    """Whether a watcher's callback is running in this thread: its own ops are not the model's."""
    return _callbacks.running


class callback_running:  # noqa: N801  (used like a function; a generator would cost more than the call)
    """While inside, ``in_callback`` says yes."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = _callbacks.running
        _callbacks.running = True

    def __exit__(self, *error: object) -> None:
        _callbacks.running = self._before


_hooks: WeakSet[Any] = WeakSet()


def own_hook(hook: Any) -> Any:
    """Mark a hook as one of a watch, which copies of a module go without."""
    _hooks.add(hook)
    return hook


def drop_own_hooks(hooks: MutableMapping[int, Any], *flags: MutableMapping[int, Any]) -> None:
    """Take the hooks of watches out of a module's mapping, and what its others say of them."""
    for key in [key for key, hook in hooks.items() if isinstance(hook, FunctionType) and hook in _hooks]:
        for mapping in (hooks, *flags):
            mapping.pop(key, None)


class _Stack(threading.local):
    def __init__(self) -> None:
        self.frames: list[Frame] = []


class ModulePosition(NamedTuple):
    """Where a watched module stands, and whether ops made by its code count as part of itself."""

    path: str
    folds: bool


@dataclass(slots=True)
class Frame:
    """A call that is under way."""

    call: Call
    place: ModulePosition
    handled: BaseException | None  # that the caller was handling when the call began
    in_op: bool = False  # an op is under way: what it calls in turn is part of it


class CallTracker:
    """The calls of one watch."""

    def __init__(
        self, places: Mapping[int, ModulePosition], on_enter: OnEnter | None, on_exit: OnExit | None
    ) -> None:
        self._places = places
        self._on_enter = on_enter
        self._on_exit = on_exit
        self._orders = count()
        self._stack = _Stack()

    def current(self) -> Frame | None:
        """The innermost call that is under way in this thread."""
        stack = self._stack.frames
        return stack[-1] if stack else None

    def hooks(self) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """What a framework is to call before and after the calls of a module."""

        def begin(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            return self.begin(module, args, kwargs)

        def end(module: Any, args: Any, output: Any) -> Any:
            return self.end(module, output)

        return own_hook(begin), own_hook(end)

    def begin(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call begins. Returns replaced ``(args, kwargs)``, or None to keep them."""
        stack = self._stack.frames
        place = self._places[id(module)]
        parent = stack[-1].call.order if stack else None
        call = Call(next(self._orders), parent, len(stack), place.path, module, args, kwargs)
        stack.append(Frame(call, place, sys.exc_info()[1]))
        if self._on_enter is None:
            return None
        outside = _callbacks.running
        _callbacks.running = True
        try:
            replaced = self._on_enter(call)
        finally:
            _callbacks.running = outside
        if replaced is not None:
            call.args, call.kwargs = replaced
        return replaced

    def end(self, module: Any, output: Any) -> Any:
        """A call is over. Returns a replaced output, or None to keep it; of one that raised there is none."""
        stack = self._stack.frames
        if not stack or stack[-1].call.module is not module:
            if not any(frame.call.module is module for frame in stack):
                return None  # the watch was started in the middle of this call
            while stack[-1].call.module is not module:
                stack.pop()  # left by an exception that the framework does not announce
        frame = stack[-1]
        try:
            if self._on_exit is None or sys.exc_info()[1] is not frame.handled:
                return None
            outside = _callbacks.running
            _callbacks.running = True
            try:
                return self._on_exit(frame.call, output)
            finally:
                _callbacks.running = outside
        finally:
            stack.pop()
