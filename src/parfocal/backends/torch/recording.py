"""What a recording needs beyond watching: backward passes, steps, and a model not known beforehand.

Each patch and hook is a context manager that puts back exactly what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from parfocal.backends.protocol import Array


class Recording:
    """What ``ModelBackend`` and ``TrainingBackend`` ask for on behalf of recordings."""

    def counts_changes(self, tensor: Any) -> bool:
        return not tensor.is_inference()

    def grad_enabled(self) -> bool:
        return bool(torch.is_grad_enabled())

    def gradient_tensor(self, tensor: Any) -> Any:
        return tensor.grad

    def random_values(self) -> Array:
        return torch.rand(4).numpy()

    @contextmanager
    def watch_backward(
        self, on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
    ) -> Iterator[None]:
        original = torch.autograd._engine_run_backward  # the one door for backward() and grad()
        depth = 0

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

        torch.autograd._engine_run_backward = run
        try:
            yield
        finally:
            torch.autograd._engine_run_backward = original

    @contextmanager
    def watch_optimizer(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Iterator[None]:
        with (
            optimizer.register_step_pre_hook(lambda *_: before()),
            optimizer.register_step_post_hook(lambda *_: after()),
        ):
            yield

    @contextmanager
    def watch_updates(self, before: Callable[[Any], None], after: Callable[[Any], None]) -> Iterator[None]:
        with (
            register_optimizer_step_pre_hook(lambda optimizer, *_: before(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: after(optimizer)),
        ):
            yield

    @contextmanager
    def watch_outermost(self, on_model: Callable[[Any], None]) -> Iterator[None]:
        original = torch.nn.Module.__call__
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

        torch.nn.Module.__call__ = call
        try:
            yield
        finally:
            torch.nn.Module.__call__ = original
