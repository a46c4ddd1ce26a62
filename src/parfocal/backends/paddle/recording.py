"""What a recording needs beyond watching: backward passes, steps, and a model not known beforehand.

Each patch and hook is a context manager that puts back exactly what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import paddle
from paddle.base import core

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

    @contextmanager
    def watch_backward(
        self, on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
    ) -> Iterator[None]:
        depth = 0

        def watched(original: Callable[..., Any]) -> Callable[..., Any]:
            def run(outputs: Any, *args: Any, **kwargs: Any) -> Any:
                nonlocal depth
                if depth == 0:
                    on_start(tuple(outputs))
                depth += 1
                finished = False
                try:
                    result = original(outputs, *args, **kwargs)
                    finished = True
                finally:
                    depth -= 1
                    if depth == 0:
                        on_end(finished)
                return result

            return run

        with ExitStack() as undo:
            # The doors for Tensor.backward and autograd.backward, and for paddle.grad.
            for name in ("run_backward", "run_partial_grad"):
                original = getattr(core.eager, name)
                undo.callback(setattr, core.eager, name, original)
                setattr(core.eager, name, watched(original))
            yield

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

    @contextmanager
    def watch_outermost(self, on_model: Callable[[Any], None]) -> Iterator[None]:
        layer = paddle.nn.Layer
        original = layer.__call__
        inside = False

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return original(self, *args, **kwargs)
            inside = True
            try:
                on_model(self)
                return original(self, *args, **kwargs)
            finally:
                inside = False

        layer.__call__ = call
        try:
            yield
        finally:
            layer.__call__ = original


def _with_subclasses(kind: type[Any]) -> list[type[Any]]:
    found = [kind]
    for each in found:
        found += [child for child in each.__subclasses__() if child not in found]
    return found
