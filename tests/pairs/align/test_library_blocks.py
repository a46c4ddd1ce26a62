"""Models of a library that overwrite what they sum up, against ports that do not."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn

import parfocal as pf
from tests.pairs.vision import torchvision_models  # noqa: F401 - its operators, before timm asks for them


def _library() -> Any:
    import timm

    return timm


class RepVGGBlock(nn.Layer):
    """One branch of each size and the norm of the input itself, summed up and activated."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        same = channels == width and stride == 1
        self.identity = nn.BatchNorm2D(channels) if same else None
        self.wide = nn.Sequential(
            nn.Conv2D(channels, width, 3, stride, 1, bias_attr=False), nn.BatchNorm2D(width)
        )
        self.narrow = nn.Sequential(
            nn.Conv2D(channels, width, 1, stride, 0, bias_attr=False), nn.BatchNorm2D(width)
        )

    def forward(self, x: Any) -> Any:
        total = self.narrow(x) + self.wide(x)
        if self.identity is not None:
            total = total + self.identity(x)
        return nn.functional.relu(total)


class CutBlock(RepVGGBlock):
    """One branch sends no gradient back."""

    def forward(self, x: Any) -> Any:
        total = self.narrow(x) + self.wide(x).detach() + self.identity(x)
        return nn.functional.relu(total)


class RepVGG(nn.Layer):
    def __init__(self, widths: tuple[int, ...], depths: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.stem = RepVGGBlock(3, widths[0], 2)
        blocks = []
        channels = widths[0]
        for width, depth in zip(widths[1:], depths, strict=True):
            for index in range(depth):
                blocks.append(RepVGGBlock(channels, width, 2 if index == 0 else 1))
                channels = width
        self.stages = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, classes)

    def forward(self, x: Any) -> Any:
        return self.head(self.stages(self.stem(x)).mean(axis=[2, 3]))


class SqueezeExcite(nn.Layer):
    def __init__(self, width: int, squeezed: int) -> None:
        super().__init__()
        self.squeeze, self.excite = nn.Conv2D(width, squeezed, 1), nn.Conv2D(squeezed, width, 1)

    def forward(self, x: Any) -> Any:
        gate = nn.functional.relu(self.squeeze(x.mean(axis=[2, 3], keepdim=True)))
        return x * nn.functional.sigmoid(self.excite(gate))


class SEBottleneck(nn.Layer):
    def __init__(self, width: int, groups: int, squeezed: int) -> None:
        super().__init__()
        inner = width // 2
        self.reduce = nn.Sequential(nn.Conv2D(width, inner, 1, bias_attr=False), nn.BatchNorm2D(inner))
        self.group = nn.Sequential(
            nn.Conv2D(inner, inner, 3, padding=1, groups=groups, bias_attr=False), nn.BatchNorm2D(inner)
        )
        self.expand = nn.Sequential(nn.Conv2D(inner, width, 1, bias_attr=False), nn.BatchNorm2D(width))
        self.gate = SqueezeExcite(width, squeezed)

    def forward(self, x: Any) -> Any:
        hidden = nn.functional.relu(self.reduce(x))
        hidden = nn.functional.relu(self.group(hidden))
        return nn.functional.relu(self.gate(self.expand(hidden)) + x)


def _alive(model: torch.nn.Module) -> torch.nn.Module:
    """Norms that let signals through, each in its own way."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.6, 1.4, generator=generator)
                module.bias.uniform_(-0.3, 0.3, generator=generator)
    return model.eval()


def _rep_vgg() -> tuple[torch.nn.Module, nn.Layer, tuple[int, ...]]:
    from timm.models.byobnet import ByoBlockCfg, ByobNet, ByoModelCfg

    blocks = tuple(ByoBlockCfg(type="rep", d=depth, c=width) for depth, width in ((2, 16), (2, 24)))
    model = ByobNet(ByoModelCfg(blocks=blocks, stem_type="rep", stem_chs=8), num_classes=7)
    return model, RepVGG((8, 16, 24), (2, 2), 7), (2, 3, 32, 32)


def _se_bottleneck() -> tuple[torch.nn.Module, nn.Layer, tuple[int, ...]]:
    from timm.layers import SEModule
    from timm.models.resnet import Bottleneck

    gate = partial(SEModule, rd_channels=4)
    block = Bottleneck(16, 4, cardinality=2, base_width=64, attn_layer=gate)
    return block, SEBottleneck(16, 2, 4), (2, 16, 9, 9)


def _res_net() -> tuple[torch.nn.Module, nn.Layer, tuple[int, ...]]:
    port = paddle.vision.models.resnet18(num_classes=7)
    return _library().create_model("resnet18", num_classes=7), port, (2, 3, 64, 64)


MODELS = {"rep": _rep_vgg, "squeeze": _se_bottleneck, "residual": _res_net}


@pytest.mark.parametrize("make", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_port_of_a_library_model_is_the_same(make: Any, mode: Any) -> None:
    torch.manual_seed(1)
    model, port, shape = make()
    values = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    report = pf.align(_alive(model), port, values, mode=mode)
    assert report.ok, str(report)
    assert sum(pair.backward is not None for pair in report.pairs) > 0.9 * len(report.pairs)


def test_a_gradient_that_the_port_cuts_is_found() -> None:
    torch.manual_seed(1)
    model, port, shape = _rep_vgg()
    port.stages[1].__class__ = CutBlock
    values = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    report = pf.align(_alive(model), port, values)
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.code == "grad.detached"
    assert report.first.port is not None
    assert report.first.port.path == "stages.1"
