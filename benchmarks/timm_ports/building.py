"""A port from a model's tree of modules: layers by table, every block's forward written by hand.

A block's forward is registered under its class's name with ``forward_of``. The port holds the
children under their names; what does nothing (identities, dropout at rate 0) it leaves out, as a
person would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
import torch
from paddle import nn

from benchmarks.timm_ports.layers import LAYERS, layer_for

Forward = Callable[..., Any]
FORWARDS: dict[str, Forward] = {}
PLAIN = (bool, int, float, str, tuple, list, type(None))


def forward_of(*names: str) -> Callable[[Forward], Forward]:
    """Registers the forward pass of the port's blocks, by ``module.Class`` as timm names them."""

    def register(function: Forward) -> Forward:
        FORWARDS.update(dict.fromkeys(names, function))
        return function

    return register


class Block(nn.Layer):
    """The port of one of timm's composite modules; each class of them gets its own ``forward``."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        for name, value in vars(module).items():
            if not name.startswith("_") and name != "training" and isinstance(value, PLAIN):
                setattr(self, name, value)
        for name, parameter in module.named_parameters(recurse=False):
            self.add_parameter(name, self.create_parameter(list(parameter.shape)))
        for name, buffer in module._buffers.items():
            tensor = None if buffer is None else paddle.to_tensor(buffer.numpy())
            self.register_buffer(name, tensor, persistable=False)
        for name, child in module.named_children():
            if not does_nothing(child):
                self.add_sublayer(name, port_of(child))


def does_nothing(module: torch.nn.Module) -> bool:
    rate = getattr(module, "drop_prob", getattr(module, "p", None))  # of timm's DropPath, of torch's Dropout
    return rate == 0.0 or isinstance(module, torch.nn.Identity)


def port_of(module: torch.nn.Module) -> nn.Layer:
    """The port of a module and of everything in it."""
    short = ".".join((type(module).__module__.rpartition(".")[2], type(module).__name__))
    if short in FORWARDS:
        return type(type(module).__name__, (Block,), {"forward": FORWARDS[short]})(module)
    if type(module).__name__ in LAYERS:
        return layer_for(module)
    children = [(name, port_of(child)) for name, child in module.named_children()]
    if isinstance(module, torch.nn.ModuleList):
        return nn.LayerList([child for _, child in children])
    if type(module).forward is torch.nn.Sequential.forward:
        return nn.Sequential(*children)
    raise KeyError(f"no port of {short}: write its forward with forward_of({short!r})")
