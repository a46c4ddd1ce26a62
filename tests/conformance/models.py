"""The same tiny models in every framework, so that one suite can run over all backends.

A ``Kit`` gives a framework's layers and a few functions neutral names; models are written
once, with operators that mean the same everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

from parfocal.backends import registry

# What some framework may not have, and why the toy does not.
LACKED_BY_TOYBOX = {
    **dict.fromkeys(
        ("LSTM", "TransformerEncoderLayer", "MultiHeadAttention", "LayerList", "utils"),
        "it has a handful of layers, and this is none of them",
    ),
    **dict.fromkeys(
        ("scaled_dot_product_attention", "dropout2d", "a library of functions"),
        "it has a few functions, and this is none of them",
    ),
    "optimizers": "it has no optimizers and no schedules",
    "flags for determinism": "it computes in one order",
    "sparse tensors": "its tensors are NumPy arrays",
    "gradients of gradients": "its tape does not record its own way back",
    "retained gradients": "only leaves keep a gradient",
    "autocast": "it computes in the dtype it is given",
    "recomputation": "it keeps everything",
    "several processes": "it runs in one",
}
CAPABILITIES = frozenset(LACKED_BY_TOYBOX)


class Kit:
    """What a test needs of one framework besides its backend.

    ``lacks`` declares what the framework does not have, with the reason. A test that needs it is skipped with
    these words, and a test that asks for anything else that is not there fails.
    """

    name: str
    base: Any
    lacks: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.backend = registry.get(self.name)

    def need(self, capability: str) -> None:
        """Skip the test where the framework declares that it does not have this."""
        if capability not in CAPABILITIES:
            raise AssertionError(f"{capability!r} is no capability; there are: {', '.join(CAPABILITIES)}")
        if capability in self.lacks:
            pytest.skip(f"{self.name} declares: {self.lacks[capability]}")

    def tensor(self, values: Any, *, grad: bool = False, dtype: str = "float32") -> Any:
        return self.backend.from_array(np.asarray(values, dtype=dtype), requires_grad=grad)

    def array(self, tensor: Any) -> Any:
        return self.backend.to_array(tensor)

    def module(self, forward: Callable[..., Any], /, name: str = "Custom", **children: Any) -> Any:
        """A user's module with these children and this ``forward(self, ...)``."""

        def initialise(module: Any) -> None:
            super(kind, module).__init__()
            for child_name, child in children.items():
                setattr(module, child_name, child)

        kind = type(name, (self.base,), {"__init__": initialise, "forward": forward})
        return kind()

    def fill(self, model: Any, seed: int = 0) -> Any:
        """Give every floating-point tensor of the model small reproducible values."""
        random = np.random.default_rng(seed)
        for entry in self.backend.state(model):
            if entry.tied_to is None and self.backend.dtype(entry.value) == "float32":
                values = random.uniform(0.1, 1.0, self.backend.shape(entry.value)).astype("float32")
                self.backend.write(entry.value, values)
        return model


class TorchKit(Kit):
    name = "torch"

    def __init__(self) -> None:
        import torch

        super().__init__()
        self.torch = torch
        self.nn = torch.nn
        self.functional = torch.nn.functional
        self.base = torch.nn.Module

    def linear(self, inputs: int, outputs: int) -> Any:
        return self.nn.Linear(inputs, outputs)

    def conv(self, inputs: int, outputs: int, kernel: int) -> Any:
        return self.nn.Conv2d(inputs, outputs, kernel)

    def batch_norm(self, channels: int) -> Any:
        return self.nn.BatchNorm2d(channels)

    def sequential(self, *modules: Any) -> Any:
        return self.nn.Sequential(*modules)

    def parameter(self, values: Any) -> Any:
        return self.nn.Parameter(self.tensor(values))

    def add_buffer(self, module: Any, name: str, values: Any, *, persistent: bool = True) -> None:
        module.register_buffer(name, self.tensor(values), persistent=persistent)

    def freeze(self, tensor: Any) -> None:
        tensor.requires_grad_(False)

    def relu_(self, tensor: Any) -> Any:
        return self.functional.relu_(tensor)

    def add_(self, tensor: Any, other: Any) -> Any:
        return tensor.add_(other)

    def random(self) -> Any:
        return self.torch.rand(4)

    def padded_conv(self, inputs: int, outputs: int) -> Any:
        return self.nn.Conv2d(inputs, outputs, 3, padding=1)

    def average_to(self, size: int) -> Any:
        return self.nn.AdaptiveAvgPool2d(size)

    def after_calls(self, module: Any, hook: Callable[..., Any]) -> Any:
        return module.register_forward_hook(hook)

    def hooks(self, module: Any) -> list[Any]:
        return [module._forward_pre_hooks, module._forward_hooks]

    def backward_doors(self) -> list[Any]:
        autograd = self.torch.autograd
        return [autograd.Variable._execution_engine, getattr(autograd, "_engine_run_backward", None)]

    def load(self, path: str) -> Any:
        return self.torch.load(path, weights_only=True)


class PaddleKit(Kit):
    name = "paddle"

    def __init__(self) -> None:
        import paddle

        super().__init__()
        self.paddle = paddle
        self.nn = paddle.nn
        self.functional = paddle.nn.functional
        self.base = paddle.nn.Layer

    def linear(self, inputs: int, outputs: int) -> Any:
        return self.nn.Linear(inputs, outputs)

    def conv(self, inputs: int, outputs: int, kernel: int) -> Any:
        return self.nn.Conv2D(inputs, outputs, kernel)

    def batch_norm(self, channels: int) -> Any:
        return self.nn.BatchNorm2D(channels)

    def sequential(self, *modules: Any) -> Any:
        return self.nn.Sequential(*modules)

    def parameter(self, values: Any) -> Any:
        values = np.asarray(values, dtype="float32")
        parameter = self.paddle.create_parameter(values.shape, "float32")
        self.backend.write(parameter, values)
        return parameter

    def add_buffer(self, module: Any, name: str, values: Any, *, persistent: bool = True) -> None:
        module.register_buffer(name, self.tensor(values), persistable=persistent)

    def freeze(self, tensor: Any) -> None:
        tensor.stop_gradient = True

    def relu_(self, tensor: Any) -> Any:
        return self.functional.relu_(tensor)

    def add_(self, tensor: Any, other: Any) -> Any:
        return tensor.add_(other)

    def random(self) -> Any:
        return self.paddle.rand([4])

    def padded_conv(self, inputs: int, outputs: int) -> Any:
        return self.nn.Conv2D(inputs, outputs, 3, padding=1)

    def average_to(self, size: int) -> Any:
        return self.nn.AdaptiveAvgPool2D(size)

    def after_calls(self, module: Any, hook: Callable[..., Any]) -> Any:
        return module.register_forward_post_hook(hook)

    def hooks(self, module: Any) -> list[Any]:
        return [module._forward_pre_hooks, module._forward_post_hooks]

    def backward_doors(self) -> list[Any]:
        eager = self.paddle.base.core.eager
        return [eager.run_backward, eager.run_partial_grad]

    def load(self, path: str) -> Any:
        return self.paddle.load(path)


class ToyKit(Kit):
    """Of the toy framework in ``toy/``; it is there while ``toy.installed`` is."""

    name = "toybox"
    lacks = LACKED_BY_TOYBOX

    def __init__(self) -> None:
        import toybox

        super().__init__()
        self.toybox = toybox
        self.nn = DeclaredNames(self, toybox.layers)
        self.functional = DeclaredNames(self, toybox)
        self.base = toybox.Layer

    def linear(self, inputs: int, outputs: int) -> Any:
        return self.toybox.layers.Dense(inputs, outputs)

    def conv(self, inputs: int, outputs: int, kernel: int) -> Any:
        return self.toybox.layers.Convolution(inputs, outputs, kernel)

    def batch_norm(self, channels: int) -> Any:
        return self.toybox.layers.BatchNorm(channels)

    def sequential(self, *modules: Any) -> Any:
        return self.toybox.layers.Chain(*modules)

    def parameter(self, values: Any) -> Any:
        return self.toybox.layers.Parameter(np.asarray(values, dtype="float32"))

    def add_buffer(self, module: Any, name: str, values: Any, *, persistent: bool = True) -> None:
        module.add_buffer(name, self.tensor(values), saved=persistent)

    def freeze(self, tensor: Any) -> None:
        tensor.requires_grad = False

    def relu_(self, tensor: Any) -> Any:
        return tensor.relu_()

    def add_(self, tensor: Any, other: Any) -> Any:
        return tensor.add_(other)

    def random(self) -> Any:
        return self.toybox.random(4)

    def padded_conv(self, inputs: int, outputs: int) -> Any:
        return self.toybox.layers.Convolution(inputs, outputs, 3, border=1)

    def average_to(self, size: int) -> Any:
        def forward(module: Any, x: Any) -> Any:
            batch, channels, rows, columns = x.shape
            return x.reshape(batch, channels, size, rows // size, size, columns // size).mean((3, 5))

        return self.module(forward, "AverageTo")

    def after_calls(self, module: Any, hook: Callable[..., Any]) -> Any:
        return module.register_forward_hook(hook)

    def hooks(self, module: Any) -> list[Any]:
        return [module._forward_pre_hooks, module._forward_hooks, module._surrounding_hooks]

    def backward_doors(self) -> list[Any]:
        return [self.toybox.tape.backward]

    def load(self, path: str) -> Any:
        return self.toybox.load(path)


class DeclaredNames:
    """A framework's names, of which those that it declares to lack skip the test."""

    def __init__(self, kit: Kit, space: Any) -> None:
        self._kit, self._space = kit, space

    def __getattr__(self, name: str) -> Any:
        if name in CAPABILITIES:
            self._kit.need(name)
        return getattr(self._space, name)


KITS: dict[str, type[Kit]] = {"torch": TorchKit, "paddle": PaddleKit, "toybox": ToyKit}
TRAINING = [name for name, kit in sorted(KITS.items()) if "optimizers" not in kit.lacks]


@cache
def kit_for(name: str) -> Any:
    """The one kit of a framework; a framework that is not installed raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a framework says while it is being imported
        return KITS[name]()
