"""Tier 2 for PyTorch, running: hooks around module calls, backward.

Our first hook runs before any of the user's and our last ones after them, so whatever the
user's hooks do counts as part of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch._C import _len_torch_function_stack
from torch.overrides import _pop_mode_temporarily

from parfocal.backends.calls import CallTracker, own_hook
from parfocal.backends.checks import check_backward
from parfocal.backends.module_calls import ModuleCalls
from parfocal.backends.protocol import OnEnter, OnExit, OnOp
from parfocal.backends.torch import ops
from parfocal.backends.torch.capabilities import SWITCHES_FAST_PATH
from parfocal.backends.torch.models import Models, is_compiled
from parfocal.backends.torch.older import FastPath

# The threads that the kernels run on: of the library that came with PyTorch, or of the system's.
_OPENMP = (*map(str, Path(torch.__file__).parent.glob("lib/libgomp*.so*")), "libgomp.so.1")

fast_path: Any = torch.backends.mha if SWITCHES_FAST_PATH else FastPath()


class Watching(Models, ModuleCalls):
    """What ``ModelBackend`` asks for while a model runs."""

    openmp = _OPENMP

    @staticmethod
    def watched_children(module: Any) -> Mapping[str, Any]:
        return {} if is_compiled(module) else Models.children(module)

    @staticmethod
    def set_hooks(module: Any, begin: Callable[..., Any], end: Callable[..., Any]) -> Iterator[Any]:
        if is_compiled(module):  # the compiler of a module compiled in place would go through its hooks, too
            begin, end = (own_hook(torch.compiler.disable(each)) for each in (begin, end))
        yield module.register_forward_pre_hook(begin, prepend=True, with_kwargs=True)
        yield module.register_forward_hook(end, always_call=True)

    def watch_ops(self, tracker: CallTracker, on_op: OnOp) -> AbstractContextManager[None]:
        return ops.watch_ops(tracker, on_op)

    @contextmanager
    def watch(
        self,
        model: Any,
        on_enter: OnEnter | None = None,
        on_exit: OnExit | None = None,
        on_op: OnOp | None = None,
    ) -> Iterator[None]:
        if on_op is not None or _len_torch_function_stack():
            on_enter, on_exit = _unheard(on_enter), _unheard(on_exit)
        with _without_fast_path(), super().watch(model, on_enter, on_exit, on_op):
            yield

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        chosen = fast_path.get_fastpath_enabled()
        fast_path.set_fastpath_enabled(_fast_path_before[0] if _fast_path_before else chosen)
        try:
            yield
        finally:
            fast_path.set_fastpath_enabled(chosen)

    def backward(
        self, outputs: Sequence[Any], gradients: Sequence[Any | None], *, retain: bool = False
    ) -> None:
        check_backward(self, outputs, gradients)
        if len(outputs) == 1 and gradients[0] is None:  # a loss
            outputs[0].backward(retain_graph=retain)
            return
        torch.autograd.backward(list(outputs), list(gradients), retain_graph=retain)


def _unheard(callback: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """The same out of hearing of the innermost mode: to look at a tensor takes a dozen calls."""

    def call(*args: Any) -> Any:
        with _pop_mode_temporarily() if _len_torch_function_stack() else nullcontext():
            return callback(*args) if callback is not None else None

    return None if callback is None else call


_fast_path_before: list[bool] = []  # of each watch under way, the first one knows the user's choice


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """The fused path of torch's transformer layers calls no submodule; do without it."""
    before = fast_path.get_fastpath_enabled()
    _fast_path_before.append(before)
    fast_path.set_fastpath_enabled(False)
    try:
        yield
    finally:
        _fast_path_before.pop()
        fast_path.set_fastpath_enabled(before)
