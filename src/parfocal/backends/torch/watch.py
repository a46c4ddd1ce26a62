"""Tier 2 for PyTorch, running: hooks around module calls, gradients, backward.

Our first hook runs before any of the user's and our last ones after them, so whatever the
user's hooks do counts as part of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from parfocal.backends import tree
from parfocal.backends.calls import CallTracker, ModulePosition, own_hook
from parfocal.backends.checks import check_backward
from parfocal.backends.protocol import OnEnter, OnExit, OnOp
from parfocal.backends.torch import kinds, ops
from parfocal.backends.torch.models import Models, is_compiled, watched_children
from parfocal.native.library import lend_threads

# The threads that the kernels run on: of the library that came with PyTorch, or of the system's.
_OPENMP = (*map(str, Path(torch.__file__).parent.glob("lib/libgomp*.so*")), "libgomp.so.1")


class Watching(Models):
    """What ``ModelBackend`` asks for while a model runs."""

    @contextmanager
    def watch(
        self,
        model: Any,
        on_enter: OnEnter | None = None,
        on_exit: OnExit | None = None,
        on_op: OnOp | None = None,
    ) -> Iterator[None]:
        lend_threads(*_OPENMP)
        modules = tree.first_paths(model, watched_children)
        places = {
            id(module): ModulePosition(path, kinds.runs_framework_code(module))
            for path, module in modules.items()
        }
        tracker = CallTracker(places, on_enter, on_exit)
        with ExitStack() as undo:
            undo.enter_context(_without_fast_path())
            hook = _hooks(tracker)
            handles: list[Any] = []
            undo.callback(_remove, handles)
            for module in modules.values():
                handles += hook(module)
            if on_op is not None:
                undo.enter_context(ops.watch_ops(tracker, on_op))
            yield

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        chosen = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(_fast_path_before[0] if _fast_path_before else chosen)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(chosen)

    def watch_gradient(self, tensor: Any, callback: Callable[[Any], Any]) -> Callable[[], None] | None:
        # The hook stays with the value the tensor has now, also when it is changed in place later.
        return tensor.register_hook(callback).remove if tensor.requires_grad else None

    def backward(
        self, outputs: Sequence[Any], gradients: Sequence[Any | None], *, retain: bool = False
    ) -> None:
        check_backward(self, outputs, gradients)
        torch.autograd.backward(list(outputs), list(gradients), retain_graph=retain)


def _remove(handles: list[Any]) -> None:
    """Take hooks off, the last one first."""
    while handles:
        handles.pop().remove()


def _hooks(tracker: CallTracker) -> Callable[[Any], Iterator[Any]]:
    """Sets the hooks of a watch on a module."""

    def begin(module: Any, args: Any, kwargs: Any) -> Any:
        return tracker.begin(module, args, kwargs)

    def end(module: Any, args: Any, output: Any) -> Any:
        return tracker.end(module, output)

    own_hook(begin)
    own_hook(end)

    def hook(module: Any) -> Iterator[Any]:
        # the compiler of a module that was compiled in place would go through its hooks, too
        first, last = begin, end
        if is_compiled(module):
            first, last = (own_hook(torch.compiler.disable(each)) for each in (begin, end))
        yield module.register_forward_pre_hook(first, prepend=True, with_kwargs=True)
        yield module.register_forward_hook(last, always_call=True)

    return hook


_fast_path_before: list[bool] = []  # of each watch under way, the first one knows the user's choice


@contextmanager
def _without_fast_path() -> Iterator[None]:
    """The fused path of torch's transformer layers calls no submodule; do without it."""
    before = torch.backends.mha.get_fastpath_enabled()
    _fast_path_before.append(before)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        _fast_path_before.pop()
        torch.backends.mha.set_fastpath_enabled(before)
