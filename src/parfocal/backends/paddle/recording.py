"""What a recording needs beyond watching: backward passes, steps, and a model not known beforehand.

Each patch and hook is a context manager that puts back exactly what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import paddle
from paddle.base import core

from parfocal.backends.module_calls import backward_watched
from parfocal.backends.protocol import Array


class Recording:
    """What ``ModelBackend`` and ``TrainingBackend`` ask for on behalf of recordings."""

    def counts_changes(self, tensor: Any) -> bool:
        return True

    def grad_enabled(self) -> bool:
        return bool(paddle.is_grad_enabled())

    def gradient_tensor(self, tensor: Any) -> Any:
        return tensor.grad

    def random_values(self) -> Array:
        return paddle.rand([4]).numpy()

    def watch_backward(
        self, on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
    ) -> AbstractContextManager[None]:
        # the doors for Tensor.backward and autograd.backward, and for paddle.grad
        return backward_watched(core.eager, ("run_backward", "run_partial_grad"), on_start, on_end)

    @contextmanager
    def watch_optimizer(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Iterator[None]:
        inside = False

        def watched(original: Callable[..., Any]) -> Callable[..., Any]:
            def step(*args: Any, **kwargs: Any) -> Any:
                nonlocal inside
                if inside:
                    return original(*args, **kwargs)
                inside = True
                try:
                    before()
                    result = original(*args, **kwargs)
                finally:
                    inside = False
                after()
                return result

            return step

        own = vars(optimizer)
        kept = {name: own[name] for name in ("step", "minimize") if name in own}
        try:
            for name in ("step", "minimize"):
                setattr(optimizer, name, watched(getattr(optimizer, name)))
            yield
        finally:
            for name in ("step", "minimize"):
                own.pop(name, None)
            own.update(kept)

    @contextmanager
    def watch_updates(self, before: Callable[[Any], None], after: Callable[[Any], None]) -> Iterator[None]:
        inside = False

        def watched(original: Callable[..., Any]) -> Callable[..., Any]:
            def step(self: Any, *args: Any, **kwargs: Any) -> Any:
                nonlocal inside
                if inside:  # a class's step may call that of its base
                    return original(self, *args, **kwargs)
                inside = True
                try:
                    before(self)
                    result = original(self, *args, **kwargs)
                finally:
                    inside = False
                after(self)
                return result

            return step

        with ExitStack() as undo:
            for kind in _with_subclasses(paddle.optimizer.Optimizer):
                for name in ("step", "minimize"):
                    if name in vars(kind):
                        undo.callback(setattr, kind, name, vars(kind)[name])
                        setattr(kind, name, watched(vars(kind)[name]))
            yield


def _with_subclasses(kind: type[Any]) -> list[type[Any]]:
    found = [kind]
    for each in found:
        found += [child for child in each.__subclasses__() if child not in found]
    return found
