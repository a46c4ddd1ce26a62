"""Tier 2 for PaddlePaddle, standing still: layers, what they are, their state, their mode.

What happens while a model runs is in ``watch.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
import paddle
from paddle.base import core

from parfocal.backends import reading
from parfocal.backends.draws import Draws
from parfocal.backends.module_tree import Kinds, ModuleTree, OwnTensor, every_path
from parfocal.backends.paddle import kinds
from parfocal.backends.paddle.draws import drawn_elsewhere, read_in_turn
from parfocal.backends.paddle.tensors import Tensors, has_memory
from parfocal.backends.protocol import Array
from parfocal.phrases import phrase

# Registered as parameters, yet what the layer keeps count of: kind -> local names.
STATISTICS = {
    **dict.fromkeys(
        ("BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"), ("_mean", "_variance")
    ),
    "SpectralNorm": ("weight_u", "weight_v"),
}
DETERMINISTIC_FLAGS = ("FLAGS_cudnn_deterministic", "FLAGS_embedding_deterministic")


with paddle.utils.unique_name.guard():  # numbering layers is the user's
    # Attributes that every layer has; a tensor that is set as an attribute becomes a buffer.
    _EVERY_MODULE_S = frozenset(vars(paddle.nn.Layer())) - {"_buffers", "_non_persistable_buffer_names_set"}


class Models(Tensors, ModuleTree):
    """What ``ModelBackend`` asks for, without the watching."""

    module_class = paddle.nn.Layer
    every_modules = _EVERY_MODULE_S
    kinds: ClassVar[Kinds] = kinds
    children = staticmethod(attrgetter("_sub_layers"))  # asked of every layer many times

    def obstacle(self, model: Any) -> str:
        for path, layer in self.modules(model).items():
            if isinstance(layer, paddle.jit.TranslatedLayer):
                place = path or phrase("the whole model")
                what = phrase("a program loaded by paddle.jit.load")
                return phrase("{what} ({name}, {path})", what=what, name=type(layer).__name__, path=place)
        for entry in self.state(model):
            if getattr(entry.value, "is_dist", bool)():
                return phrase(
                    "a model whose tensors are of a class of their own ({name}, {path})",
                    name="DistTensor",
                    path=entry.path,
                )
        return ""

    @staticmethod
    def own_state(module: Any) -> Iterator[OwnTensor]:
        statistics = _statistics(type(module)) if module._parameters else ()
        for name, value in module._parameters.items():
            if value is not None:
                yield name, "buffer" if name in statistics else "parameter", True, value
        for name, value in _registered_buffers(module):
            yield name, "buffer", name not in module._non_persistable_buffer_names_set, value

    @staticmethod
    def own_buffers(module: Any) -> list[tuple[str, Any]]:
        """What a layer keeps count of, registered as parameters or as buffers."""
        parameters = module._parameters
        counted = [(name, parameters.get(name)) for name in _statistics(type(module))] if parameters else []
        known = [(name, value) for name, value in counted if value is not None]
        return [*known, *_registered_buffers(module)]

    def gradient(self, tensor: Any, *, copy: bool = True) -> Array | None:
        gradient = tensor.grad
        if gradient is None:
            return None
        if not gradient.is_selected_rows():
            return self.to_array(gradient, copy=copy)
        dense = np.zeros(self.shape(tensor), dtype=self.dtype(tensor))
        np.add.at(dense, list(gradient.rows()), gradient.numpy())  # a row may come more than once
        return dense

    def clear_gradients(self, model: Any) -> None:
        for _, module in every_path(model, self.children):
            for value in module._parameters.values():
                if value is not None:
                    value.clear_gradient(False)
            for _, value in _registered_buffers(module) if module._buffers else ():
                if value.grad is not None:  # paddle cannot clear what a fresh tensor does not have
                    value.clear_gradient(False)

    def no_grad(self) -> Any:
        return paddle.no_grad()

    def with_grad(self) -> Any:
        return paddle.enable_grad()

    def seed(self, value: int) -> None:
        paddle.seed(value)

    def rng_state(self) -> Any:
        cuda = paddle.get_cuda_rng_state() if paddle.is_compiled_with_cuda() else []
        return core.default_cpu_generator().get_state(), cuda

    def set_rng_state(self, state: Any) -> None:
        cpu, cuda = state
        # what paddle.set_rng_state(state, "cpu") does in the versions in which it takes a name
        core.default_cpu_generator().set_state(cpu)
        if cuda:
            paddle.set_cuda_rng_state(cuda)

    def draws_from(self, draws: Draws) -> Any:
        return drawn_elsewhere(draws)

    def read_in_turn(self, loader: Any) -> Iterator[Any]:
        return read_in_turn(loader)

    @contextmanager
    def deterministic(self) -> Iterator[None]:
        kept = _present_flags()
        try:
            paddle.set_flags(dict.fromkeys(kept, 1))
            yield
        finally:
            paddle.set_flags(kept)


def _present_flags() -> dict[str, Any]:
    """The flags for deterministic kernels that this build has; one for the CPU alone has none."""
    found: dict[str, Any] = {}
    for flag in DETERMINISTIC_FLAGS:
        try:
            found.update(paddle.get_flags([flag]))
        except ValueError:  # not compiled in
            continue
    return found


def _registered_buffers(module: Any) -> list[tuple[str, Any]]:
    if not module._buffers:
        return []
    derived = _derived(module)
    return [
        (name, value)
        for name, value in module._buffers.items()
        if value is not None and name not in derived and has_memory(value)
    ]


@reading.once_per_class
def _statistics(kind: type) -> tuple[str, ...]:
    """Of the parameters of a class of layers, those that it keeps count in."""
    return STATISTICS.get(kinds.kind_of(kind) or "", ())


def _derived(module: Any) -> set[str]:
    """Weights that weight_norm and spectral_norm compute anew before each call: not state."""
    return {
        hook.name
        for hook in module._forward_pre_hooks.values()
        if type(hook).__module__.startswith("paddle.nn.utils.")
    }
