"""The same tiny models in every framework, so that one suite can run over all backends.

A ``Kit`` gives a framework's layers and a few functions neutral names; models are written
once, with operators that mean the same everywhere.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from parfocal.backends import registry


class Kit:
    """What a test needs of one framework besides its backend."""

    name: str
    base: Any

    def __init__(self) -> None:
        self.backend = registry.get(self.name)

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


KITS: dict[str, type[Kit]] = {"torch": TorchKit, "paddle": PaddleKit}


@cache
def kit_for(name: str) -> Any:
    """The one kit of a framework; a framework that is not installed raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a framework says while it is being imported
        return KITS[name]()
