"""What the models and training loops of this benchmark need of a framework, once for each.

The frameworks share most names. A ``Kit`` has those that they do not share, so that a model is written
once and built in either framework.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import paddle
import torch


@dataclass(frozen=True)
class Kit:
    """One framework."""

    name: str
    library: Any
    base: Any  # class of modules
    modules: Any  # class of a list of modules
    conv: Any
    batch_norm: Callable[..., Any]
    gru: Callable[..., Any]
    square: bool  # whether a linear layer keeps its weight as [inputs, outputs]

    @property
    def nn(self) -> Any:
        return self.library.nn

    @property
    def functional(self) -> Any:
        return self.library.nn.functional

    def tensor(self, array: Any) -> Any:
        return self.library.to_tensor(array) if self.square else torch.from_numpy(np.ascontiguousarray(array))

    def permute(self, x: Any, axes: Sequence[int]) -> Any:
        return x.transpose(list(axes)) if self.square else x.permute(*axes)

    def join(self, parts: Sequence[Any], axis: int) -> Any:
        return (paddle.concat if self.square else torch.cat)(list(parts), axis)

    def silu(self, x: Any) -> Any:
        return self.functional.silu(x)

    def linear(self, inputs: int, outputs: int, bias: bool = True) -> Any:
        if self.square:
            return paddle.nn.Linear(inputs, outputs, bias_attr=None if bias else False)
        return torch.nn.Linear(inputs, outputs, bias=bias)

    def scale(self, size: int) -> Any:
        """A parameter of ones."""
        if self.square:
            return paddle.create_parameter(
                [size], "float32", default_initializer=paddle.nn.initializer.Constant(1.0)
            )
        return torch.nn.Parameter(torch.ones(size))

    def named_modules(self, model: Any) -> Iterator[tuple[str, Any]]:
        return model.named_sublayers(include_self=True) if self.square else model.named_modules()

    def module_at(self, model: Any, path: str) -> Any:
        return dict(self.named_modules(model))[path]

    def parameters(self, model: Any) -> dict[str, Any]:
        """What is trained: paddle lists running statistics too."""
        named = model.named_parameters()
        return {name: value for name, value in named if not name.endswith(("._mean", "._variance"))}

    def load(self, model: Any, weights: Sequence[np.ndarray]) -> None:
        """In the order of the model's parameters, linear ones as [outputs, inputs]."""
        turned = self._turned(model)
        for (name, parameter), array in zip(self.parameters(model).items(), weights, strict=False):
            self.assign(parameter, array.T.copy() if name in turned else array)

    def shapes(self, model: Any) -> dict[str, tuple[int, ...]]:
        turned = self._turned(model)
        found = {name: tuple(parameter.shape) for name, parameter in self.parameters(model).items()}
        return {name: shape[::-1] if name in turned else shape for name, shape in found.items()}

    def assign(self, tensor: Any, array: np.ndarray) -> None:
        if self.square:
            tensor.set_value(array)
        else:
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.ascontiguousarray(array)))

    def _turned(self, model: Any) -> set[str]:
        if not self.square:
            return set()
        linear = [name for name, module in self.named_modules(model) if type(module) is paddle.nn.Linear]
        return {f"{name}.weight" if name else "weight" for name in linear}

    def freeze(self, parameter: Any) -> None:
        if self.square:
            parameter.stop_gradient = True
        else:
            parameter.requires_grad_(False)

    def set_mode(self, model: Any, training: bool) -> None:
        if training:
            model.train()
        else:
            model.eval()


def _torch_gru(inputs: int, outputs: int) -> Any:
    return torch.nn.GRU(inputs, outputs, batch_first=True)


def _paddle_batch_norm(size: int, *, momentum: float, **options: Any) -> Any:
    """Paddle's momentum is the share of the past that is kept."""
    return paddle.nn.BatchNorm2D(size, momentum=1.0 - momentum, **options)


def _torch_batch_norm(size: int, *, momentum: float, epsilon: float = 1e-5) -> Any:
    return torch.nn.BatchNorm2d(size, momentum=momentum, eps=epsilon)


TORCH = Kit(
    "torch",
    torch,
    torch.nn.Module,
    torch.nn.ModuleList,
    torch.nn.Conv2d,
    _torch_batch_norm,
    _torch_gru,
    square=False,
)
PADDLE = Kit(
    "paddle",
    paddle,
    paddle.nn.Layer,
    paddle.nn.LayerList,
    paddle.nn.Conv2D,
    _paddle_batch_norm,
    paddle.nn.GRU,
    square=True,
)
KITS = {kit.name: kit for kit in (TORCH, PADDLE)}
