"""Tier 2 for PaddlePaddle, running: hooks around layer calls, gradients, backward.

Our first hook runs before any of the user's and our last ones after them, so whatever the
user's hooks do counts as part of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import paddle

from parfocal.backends import tree
from parfocal.backends.calls import CallTracker, ModulePosition, own_hook
from parfocal.backends.checks import check_backward
from parfocal.backends.paddle import kinds, ops
from parfocal.backends.paddle.models import Models, watched_children
from parfocal.backends.protocol import OnEnter, OnExit, OnOp
from parfocal.native.library import lend_threads

# The threads that the kernels run on.
_OPENMP = ("libiomp5.so", "libgomp.so.1")


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
            hook = _hooks(tracker)
            handles: list[Any] = []
            undo.callback(_remove, handles)
            for module in modules.values():
                handles += hook(module)
            if on_op is not None:
                undo.enter_context(ops.watch_ops(tracker, on_op))
            yield

    def unwatched(self) -> AbstractContextManager[None]:
        return nullcontext()

    def watch_gradient(self, tensor: Any, callback: Callable[[Any], Any]) -> Callable[[], None] | None:
        # The hook stays with the value the tensor has now, also when it is changed in place later.
        return None if tensor.stop_gradient else tensor.register_hook(callback).remove

    def backward(
        self, outputs: Sequence[Any], gradients: Sequence[Any | None], *, retain: bool = False
    ) -> None:
        check_backward(self, outputs, gradients)
        # paddle refuses the same tensor twice: its gradients add up, as the chain rule has it.
        tensors: dict[int, Any] = {}
        sums: dict[int, Any] = {}
        for output, gradient in zip(outputs, gradients, strict=True):
            given = paddle.ones_like(output) if gradient is None else gradient
            sums[id(output)] = sums[id(output)] + given if id(output) in tensors else given
            tensors[id(output)] = output
        paddle.autograd.backward(list(tensors.values()), list(sums.values()), retain_graph=retain)


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
        yield module.register_forward_pre_hook(begin, prepend=True, with_kwargs=True)
        yield module.register_forward_post_hook(end, always_call=True)

    return hook
