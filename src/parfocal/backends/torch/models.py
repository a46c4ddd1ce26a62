"""Tier 2 for PyTorch, standing still: modules, what they are, their state, their mode.

What happens while a model runs is in ``watch.py``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from parfocal.backends import reading, tree
from parfocal.backends.checks import check_mode
from parfocal.backends.protocol import Array, Mode, StateTensor
from parfocal.backends.torch import kinds
from parfocal.backends.torch.tensors import Tensors

# Attributes that every module has; a buffer that is new is one that the model made.
_EVERY_MODULE_S = frozenset(vars(torch.nn.Module())) - {"_buffers", "_non_persistent_buffers_set"}


def children(module: Any) -> Mapping[str, Any]:
    """A module's named children, as registered."""
    return module._modules


def watched_children(module: Any) -> Mapping[str, Any]:
    """The children whose calls can be watched: none of a compiled module, whose code runs as one piece."""
    return {} if is_compiled(module) else children(module)


def is_compiled(module: Any) -> bool:
    """By ``torch.compile(module)``, or in place by ``module.compile()``."""
    compiler = sys.modules.get("torch._dynamo.eval_frame")  # loaded by whoever compiles
    if compiler is None:
        return False
    return isinstance(module, compiler.OptimizedModule) or module._compiled_call_impl is not None


class Models(Tensors):
    """What ``ModelBackend`` asks for, without the watching."""

    def is_model(self, value: object) -> bool:
        return isinstance(value, torch.nn.Module)

    def modules(self, model: Any) -> dict[str, Any]:
        return tree.first_paths(model, children)

    def kind(self, module: Any) -> str:
        written = kinds.framework_class(type(module))
        return kinds.kind_of(written) or written.__name__

    def is_framework_layer(self, module: Any) -> bool:
        return kinds.is_framework_class(type(module))

    def plain_attributes(self, module: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(module).items() if name not in _EVERY_MODULE_S}

    def settings(self, module: Any) -> dict[str, Any]:
        return reading.read(module, kinds.settings_of(type(module)))

    def state(self, model: Any) -> list[StateTensor]:
        first: dict[int, str] = {}
        found: list[StateTensor] = []
        for path, module in tree.every_path(model, children):
            start = f"{path}." if path else ""
            for name, role, persistent, value in _own_state(module):
                whole = start + name
                known = first.setdefault(id(value), whole)
                trainable = role == "parameter" and bool(value.requires_grad)
                tied_to = known if known != whole else None
                found.append(StateTensor(whole, path, name, role, trainable, persistent, tied_to, value))
        return found

    def buffers(self, model: Any) -> list[tuple[str, Any]]:
        return [
            (tree.join(path, name), value)
            for path, module in tree.every_path(model, children)
            if module._buffers
            for name, value in _own_buffers(module)
        ]

    def gradient(self, tensor: Any, *, copy: bool = True) -> Array | None:
        gradient = tensor.grad
        if gradient is None:
            return None
        dense = gradient if gradient.layout is torch.strided else gradient.to_dense()
        return self.to_array(dense, copy=copy)

    def clear_gradients(self, model: Any) -> None:
        for _, module in tree.every_path(model, children):
            for value in (*module._parameters.values(), *module._buffers.values()):
                if value is not None:
                    value.grad = None

    def training_flags(self, model: Any) -> dict[str, bool]:
        return {path: bool(module.training) for path, module in self.modules(model).items()}

    @contextmanager
    def mode(self, model: Any, mode: Mode) -> Iterator[None]:
        check_mode(mode)
        before = [(module, module.training) for module in self.modules(model).values()]
        try:
            if mode != "keep":
                model.train(mode == "train")
            yield
        finally:
            for module, training in before:
                if module.training != training:
                    module.training = training

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


def _own_state(module: Any) -> Iterator[tuple[str, Any, bool, Any]]:
    for name, value in module._parameters.items():
        if value is not None:
            yield name, "parameter", True, value
    for name, value in _own_buffers(module):
        yield name, "buffer", name not in module._non_persistent_buffers_set, value


def _own_buffers(module: Any) -> list[tuple[str, Any]]:
    return [(name, value) for name, value in module._buffers.items() if value is not None]
