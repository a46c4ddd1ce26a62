"""Hooks around a layer's calls, in the way that the installed PaddlePaddle offers.

``set_hooks`` is the one to use. Our first hook runs before any of the user's and our last ones after them, so
whatever the user's hooks do counts as part of the call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import paddle

from parfocal.backends.calls import own_hook
from parfocal.backends.paddle.capabilities import HOOKS_AROUND_CALLS

_CALL = "_dygraph_call_func"  # what calls a layer that has hooks
_pairs: WeakKeyDictionary[Any, tuple[Callable[..., Any], Callable[..., Any]]] = WeakKeyDictionary()
_lock = threading.Lock()
_set: set[_Mark] = set()
_replaced: list[Any] = []


def by_order(module: Any, begin: Callable[..., Any], end: Callable[..., Any]) -> Iterator[Any]:
    """With paddle's own hooks, which can be told their place."""
    yield module.register_forward_pre_hook(begin, prepend=True, with_kwargs=True)
    yield module.register_forward_post_hook(end, always_call=True)


def by_mark(module: Any, begin: Callable[..., Any], end: Callable[..., Any]) -> Iterator[Any]:
    """With a hook that only marks the layer; meanwhile, what calls layers with hooks is replaced.

    Before 3.3 a hook can neither go before the user's nor is it called when a call raises, and in 2.6 it is
    not told of keyword arguments.
    """

    def mark(called: Any, inputs: Any) -> None:
        """Nothing: what it stands for is done around all hooks."""

    _pairs[mark] = begin, end
    yield _Mark(module.register_forward_pre_hook(own_hook(mark)))


set_hooks = by_order if HOOKS_AROUND_CALLS else by_mark


class _Mark:
    """The handle of a hook that marks a layer."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        with _lock:
            if not _set:
                _replaced.append(getattr(paddle.nn.Layer, _CALL))
                setattr(paddle.nn.Layer, _CALL, _calling_pairs(_replaced[0]))
            _set.add(self)

    def remove(self) -> None:
        self._handle.remove()
        with _lock:
            _set.discard(self)
            if not _set and _replaced:
                setattr(paddle.nn.Layer, _CALL, _replaced.pop())


def _calling_pairs(original: Callable[..., Any]) -> Callable[..., Any]:
    def call(layer: Any, *inputs: Any, **kwargs: Any) -> Any:
        hooks = layer._forward_pre_hooks.values()
        pairs = [_pairs[hook] for hook in hooks if isinstance(hook, FunctionType) and hook in _pairs]
        output, ended = None, 0
        try:
            for begin, _ in reversed(pairs):
                exchanged = begin(layer, inputs, kwargs)
                inputs, kwargs = (inputs, kwargs) if exchanged is None else exchanged
            output = original(layer, *inputs, **kwargs)
            for _, end in pairs:
                ended += 1
                result = end(layer, inputs, output)
                output = output if result is None else result
        except Exception:
            for _, end in pairs[ended:]:
                end(layer, inputs, output)
            raise
        return output

    return call
