"""What a recording needs beyond watching: backward passes, steps, and a model not known beforehand.

Each patch and hook is a context manager that puts back exactly what it found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from parfocal.backends.module_calls import backward_watched
from parfocal.backends.protocol import Array
from parfocal.backends.torch.capabilities import ONE_BACKWARD_DOOR
from parfocal.backends.torch.older import engine_watched, step_hooked, steps_hooked


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

    def watch_backward(
        self, on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
    ) -> AbstractContextManager[None]:
        if not ONE_BACKWARD_DOOR:
            return engine_watched(on_start, on_end)
        # the one door for backward() and grad()
        return backward_watched(torch.autograd, ("_engine_run_backward",), on_start, on_end)

    @contextmanager
    def watch_optimizer(
        self, optimizer: Any, before: Callable[[], None], after: Callable[[], None]
    ) -> Iterator[None]:
        with (
            step_hooked(optimizer),
            optimizer.register_step_pre_hook(lambda *_: before()),
            optimizer.register_step_post_hook(lambda *_: after()),
        ):
            yield

    @contextmanager
    def watch_updates(self, before: Callable[[Any], None], after: Callable[[Any], None]) -> Iterator[None]:
        with (
            steps_hooked(),
            register_optimizer_step_pre_hook(lambda optimizer, *_: before(optimizer)),
            register_optimizer_step_post_hook(lambda optimizer, *_: after(optimizer)),
        ):
            yield
