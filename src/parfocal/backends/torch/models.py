"""Tier 2 for PyTorch, standing still: modules, what they are, their state, their mode.

What happens while a model runs is in ``watch.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, ClassVar

import torch
import torch.fx

from parfocal.backends.draws import Draws
from parfocal.backends.module_tree import Kinds, ModuleTree, OwnTensor, every_path
from parfocal.backends.protocol import Array
from parfocal.backends.torch import kinds
from parfocal.backends.torch.draws import DrawnElsewhere
from parfocal.backends.torch.tensors import Tensors
from parfocal.phrases import phrase

# Attributes that every module has; a buffer that is new is one that the model made.
_EVERY_MODULE_S = frozenset(vars(torch.nn.Module())) - {"_buffers", "_non_persistent_buffers_set"}


def is_compiled(module: Any) -> bool:
    """By ``torch.compile(module)``, or in place by ``module.compile()``."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")  # loaded by whoever compiles
    if compiler is None:
        return False
    return isinstance(module, compiler.OptimizedModule) or module._compiled_call_impl is not None


def _is_exported(module: Any) -> bool:
    """By ``torch.export``: a graph that cannot be set to train or eval."""
    return isinstance(module, torch.fx.GraphModule) and (
        "eval" in vars(module) or "inline_constraints" in module.meta  # as older versions mark it
    )


def _is_quantised(module: Any) -> bool:
    """Its weights are packed, and are no tensors."""
    return ".quantized" in type(module).__module__ and type(module).__module__.startswith("torch.")


# What a module is that shows neither its calls nor its weights.
OBSTACLES: tuple[tuple[Callable[[Any], bool], str], ...] = (
    (_is_exported, phrase("a torch.export program")),
    (lambda module: isinstance(module, torch.jit.ScriptModule), phrase("a TorchScript module")),
    (_is_quantised, phrase("a quantised model")),
)


class Models(Tensors, ModuleTree):
    """What ``ModelBackend`` asks for, without the watching."""

    module_class = torch.nn.Module
    every_modules = _EVERY_MODULE_S
    kinds: ClassVar[Kinds] = kinds
    children = staticmethod(attrgetter("_modules"))  # asked of every module many times

    @staticmethod
    def own_state(module: Any) -> Iterator[OwnTensor]:
        for name, value in module._parameters.items():
            if value is not None:
                yield name, "parameter", True, value
        for name, value in _own_buffers(module):
            yield name, "buffer", name not in module._non_persistent_buffers_set, value

    @staticmethod
    def own_buffers(module: Any) -> list[tuple[str, Any]]:
        return _own_buffers(module) if module._buffers else []

    def obstacle(self, model: Any) -> str:
        for path, module in self.modules(model).items():
            for holds, words in OBSTACLES:
                if holds(module):
                    name, place = type(module).__name__, path or phrase("the whole model")
                    return phrase("{what} ({name}, {path})", what=words, name=name, path=place)
        for entry in self.state(model):
            if type(entry.value).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
                name = type(entry.value).__name__
                return phrase(
                    "a model whose tensors are of a class of their own ({name}, {path})",
                    name=name,
                    path=entry.path,
                )
        return ""

    def kind(self, module: Any) -> str:
        written = kinds.framework_class(type(module))
        return kinds.kind_of(written) or written.__name__

    def gradient(self, tensor: Any, *, copy: bool = True) -> Array | None:
        gradient = tensor.grad
        if gradient is None:
            return None
        dense = gradient if gradient.layout is torch.strided else gradient.to_dense()
        return self.to_array(dense, copy=copy)

    def clear_gradients(self, model: Any) -> None:
        for _, module in every_path(model, self.children):
            for value in (*module._parameters.values(), *module._buffers.values()):
                if value is not None:
                    value.grad = None

    def no_grad(self) -> Any:
        return torch.no_grad()

    def with_grad(self) -> Any:
        return torch.enable_grad()

    def seed(self, value: int) -> None:
        torch.manual_seed(value)

    def rng_state(self) -> Any:
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return torch.get_rng_state(), cuda

    def set_rng_state(self, state: Any) -> None:
        cpu, cuda = state
        torch.set_rng_state(cpu)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)

    def draws_from(self, draws: Draws) -> Any:
        return DrawnElsewhere(draws)

    def read_in_turn(self, loader: Any) -> Iterator[Any]:
        return iter(loader)  # a loader without workers does

    @contextmanager
    def deterministic(self) -> Iterator[None]:
        chosen = torch.are_deterministic_algorithms_enabled()
        warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
        cudnn = torch.backends.cudnn
        kept = (cudnn.deterministic, cudnn.benchmark)
        try:
            # Warn only: an op without a deterministic kernel must still run.
            torch.use_deterministic_algorithms(True, warn_only=True)
            cudnn.deterministic, cudnn.benchmark = True, False
            yield
        finally:
            torch.use_deterministic_algorithms(chosen, warn_only=warn_only)
            cudnn.deterministic, cudnn.benchmark = kept


def _own_buffers(module: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in module._buffers.items() if value is not None]
