"""Which paddle layer stands for which of torch's and timm's: one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import paddle
from paddle import nn

Maker = Callable[[Any], nn.Layer]


class NormAct(nn.Layer):
    """A norm and its activation as two layers, where timm has them in one."""

    def __init__(self, norm: nn.Layer, act: nn.Layer) -> None:
        super().__init__()
        self.norm = norm
        self.act = act

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.act(self.norm(x))


class ChannelsNorm(nn.Layer):
    """A LayerNorm over the channels of NCHW maps."""

    def __init__(self, channels: int, epsilon: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels, epsilon=epsilon)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.norm(x.transpose([0, 2, 3, 1])).transpose([0, 3, 1, 2])


def convolution(module: Any, padding: Any = None) -> nn.Layer:
    return nn.Conv2D(
        module.in_channels,
        module.out_channels,
        list(module.kernel_size),
        stride=list(module.stride),
        padding=list(module.padding) if padding is None else padding,
        dilation=list(module.dilation),
        groups=module.groups,
        bias_attr=None if module.bias is not None else False,
    )


def batch_norm(module: Any, kind: type[nn.Layer] = nn.BatchNorm2D) -> nn.Layer:
    return kind(module.num_features, momentum=1.0 - module.momentum, epsilon=module.eps)


def linear(module: Any) -> nn.Layer:
    return nn.Linear(
        module.in_features, module.out_features, bias_attr=None if module.bias is not None else False
    )


def layer_norm(module: Any) -> nn.Layer:
    return nn.LayerNorm(list(module.normalized_shape), epsilon=module.eps)


def average_pool(module: Any) -> nn.Layer:
    return nn.AvgPool2D(
        module.kernel_size,
        module.stride,
        module.padding,
        exclusive=not module.count_include_pad,
        ceil_mode=module.ceil_mode,
    )


# By the class's name: timm's own subclasses are called as torch's where they do the same.
LAYERS: dict[str, Maker] = {
    "Conv2d": convolution,
    "Conv2dSame": lambda module: convolution(module, "SAME"),
    "BatchNorm1d": lambda module: batch_norm(module, nn.BatchNorm1D),
    "BatchNorm2d": batch_norm,
    "BatchNormAct2d": lambda module: NormAct(batch_norm(module), layer_for(module.act)),
    "Linear": linear,
    "LayerNorm": layer_norm,
    "LayerNorm2d": lambda module: ChannelsNorm(module.normalized_shape[0], module.eps),
    "GroupNorm1": lambda module: nn.GroupNorm(1, module.num_channels, epsilon=module.eps),
    "AdaptiveAvgPool2d": lambda module: nn.AdaptiveAvgPool2D(1),
    "AvgPool2d": average_pool,
    "AvgPool1d": lambda module: nn.AvgPool1D(*module.kernel_size, *module.stride, *module.padding),
    "MaxPool2d": lambda module: nn.MaxPool2D(
        module.kernel_size, module.stride, module.padding, ceil_mode=module.ceil_mode
    ),
    "Upsample": lambda module: nn.Upsample(scale_factor=module.scale_factor, mode=module.mode),
    "Flatten": lambda module: nn.Flatten(module.start_dim),
    "Softmax": lambda module: nn.Softmax(module.dim),
    "Dropout": lambda module: nn.Dropout(module.p),
    "Identity": lambda module: nn.Identity(),
    "ReLU": lambda module: nn.ReLU(),
    "SiLU": lambda module: nn.Silu(),
    "GELU": lambda module: nn.GELU(),
    "Sigmoid": lambda module: nn.Sigmoid(),
    "Hardsigmoid": lambda module: nn.Hardsigmoid(),
    "Hardswish": lambda module: nn.Hardswish(),
    "LeakyReLU": lambda module: nn.LeakyReLU(module.negative_slope),
}  # fmt: skip


def layer_for(module: Any) -> nn.Layer:
    """The paddle layer for one of torch's."""
    return LAYERS[type(module).__name__](module)
