"""Tier 2 for PaddlePaddle, running: hooks around layer calls, backward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import paddle
from paddle.jit.dy2static.program_translator import StaticFunction

from parfocal.backends.calls import CallTracker
from parfocal.backends.checks import check_backward
from parfocal.backends.module_calls import ModuleCalls
from parfocal.backends.paddle import ops
from parfocal.backends.paddle.layer_hooks import set_hooks
from parfocal.backends.paddle.models import Models
from parfocal.backends.protocol import OnOp


class Watching(Models, ModuleCalls):
    """What ``ModelBackend`` asks for while a model runs."""

    openmp = ("libiomp5.so", "libgomp.so.1")

    @staticmethod
    def watched_children(module: Any) -> Mapping[str, Any]:
        """None of a compiled layer, whose code runs as one program."""
        return {} if isinstance(module.forward, StaticFunction) else Models.children(module)

    set_hooks = staticmethod(set_hooks)

    def watch_ops(self, tracker: CallTracker, on_op: OnOp) -> AbstractContextManager[None]:
        return ops.watch_ops(tracker, on_op)

    def unwatched(self) -> AbstractContextManager[None]:
        return nullcontext()

    def backward(
        self, outputs: Sequence[Any], gradients: Sequence[Any | None], *, retain: bool = False
    ) -> None:
        check_backward(self, outputs, gradients)
        if len(outputs) == 1 and gradients[0] is None:  # a loss: several times faster than the rest
            outputs[0].backward(retain_graph=retain)
            return
        # paddle refuses the same tensor twice: its gradients add up, as the chain rule has it.
        tensors: dict[int, Any] = {}
        sums: dict[int, Any] = {}
        for output, gradient in zip(outputs, gradients, strict=True):
            given = paddle.ones_like(output) if gradient is None else gradient
            sums[id(output)] = sums[id(output)] + given if id(output) in tensors else given
            tensors[id(output)] = output
        paddle.autograd.backward(list(tensors.values()), list(sums.values()), retain_graph=retain)
