"""Tier 2: models at rest and under watch; what is the same for every framework is inherited."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import toybox
from parfocal_toybox import kinds, ops
from parfocal_toybox.tensors import Tensors
from toybox import tape

from parfocal.backends.building import RecipeBuilder
from parfocal.backends.calls import CallTracker, own_hook
from parfocal.backends.checks import check_backward
from parfocal.backends.draws import Draws
from parfocal.backends.files import complete_or_absent
from parfocal.backends.module_calls import ModuleCalls, backward_watched
from parfocal.backends.module_tree import every_path
from parfocal.backends.protocol import OnOp


class Models(Tensors, ModuleCalls, RecipeBuilder):
    module_class = toybox.Layer
    every_modules = frozenset(vars(toybox.Layer())) - {"_buffers"}
    kinds = kinds
    recipes = kinds.RECIPES
    home = toybox.layers

    @staticmethod
    def children(module: Any) -> Mapping[str, Any]:
        return module._layers

    watched_children = children

    @staticmethod
    def own_state(module: Any) -> Iterator[tuple[str, Any, bool, Any]]:
        for name, value in module._parameters.items():
            yield name, "parameter", True, value
        for name, value in module._buffers.items():
            yield name, "buffer", name not in module._passing, value

    @staticmethod
    def own_buffers(module: Any) -> Iterable[tuple[str, Any]]:
        return module._buffers.items()

    @staticmethod
    def set_hooks(module: Any, begin: Callable[..., Any], end: Callable[..., Any]) -> Iterator[Any]:
        def surround(layer: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
            try:
                args, kwargs = begin(layer, args, kwargs) or (args, kwargs)
                output = call(args, kwargs)
            except BaseException:
                end(layer, args, None)
                raise
            replaced = end(layer, args, output)
            return output if replaced is None else replaced

        yield module.register_surrounding(own_hook(surround))

    def watch_ops(self, tracker: CallTracker, on_op: OnOp) -> AbstractContextManager[None]:
        return ops.watch_ops(tracker, on_op)

    def unwatched(self) -> AbstractContextManager[None]:
        return nullcontext()

    def watch_gradient(self, tensor: Any, callback: Callable[[Any], Any]) -> Callable[[], None] | None:
        return tensor.register_hook(callback).remove if tensor.requires_grad else None

    def backward(self, outputs: Sequence[Any], gradients: Sequence[Any], *, retain: bool = False) -> None:
        check_backward(self, outputs, gradients)
        tape.backward(outputs, gradients, retain_graph=retain)

    def watch_backward(
        self, on_start: Callable[[Sequence[Any]], None], on_end: Callable[[bool], None]
    ) -> AbstractContextManager[None]:
        return backward_watched(tape, ("backward",), on_start, on_end)

    def gradient(self, tensor: Any, *, copy: bool = True) -> Any:
        return None if tensor.grad is None else self.to_array(tensor.grad, copy=copy)

    def gradient_tensor(self, tensor: Any) -> Any:
        return tensor.grad

    def clear_gradients(self, model: Any) -> None:
        for _, module in every_path(model, self.children):
            for _, _, _, value in self.own_state(module):
                value.grad = None

    def no_grad(self) -> AbstractContextManager[None]:
        return toybox.untracked()

    def with_grad(self) -> AbstractContextManager[None]:
        return toybox.tracked()

    def grad_enabled(self) -> bool:
        return toybox.recording()

    def seed(self, value: int) -> None:
        toybox.seed(value)

    def rng_state(self) -> Any:
        return copy.deepcopy(tape.generator.bit_generator.state)

    def set_rng_state(self, state: Any) -> None:
        tape.generator.bit_generator.state = state

    def draws_from(self, draws: Draws) -> AbstractContextManager[None]:
        return nullcontext()  # no dataset is made of it

    def read_in_turn(self, loader: Any) -> Iterator[Any]:
        return iter(loader)

    def random_values(self) -> Any:
        return tape.generator.random(4, dtype=np.float32)

    @contextmanager
    def deterministic(self) -> Iterator[None]:
        yield  # it always is

    def counts_changes(self, tensor: Any) -> bool:
        return True

    def save_checkpoint(self, path: str, state: Iterable[tuple[str, Any]]) -> None:
        with complete_or_absent(path) as partial:
            toybox.save({name: toybox.Tensor(array) for name, array in state}, partial)
