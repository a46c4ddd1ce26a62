"""Pairs for one trait each: a GAN, outputs at several scales, another layout, fused layers."""

from __future__ import annotations

import numpy as np
import paddle
import torch
from torch import nn

from examples.pairs.pair import Pair, features, images, pair
from parfocal.inputs import Sides, sides

GAIN = 2.0**0.5


class TorchGenerator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(20, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
            nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(True),
            nn.ConvTranspose2d(16, 3, 4, 2, 1), nn.Tanh(),
        )  # fmt: skip

    def forward(self, noise: torch.Tensor) -> torch.Tensor:
        return self.main(noise)


class PaddleGenerator(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        up = paddle.nn.Conv2DTranspose
        self.project = up(20, 32, 4, 1, 0, bias_attr=False)
        self.norm1 = paddle.nn.BatchNorm2D(32)
        self.up1 = up(32, 16, 4, 2, 1, bias_attr=False)
        self.norm2 = paddle.nn.BatchNorm2D(16)
        self.up2 = up(16, 3, 4, 2, 1)

    def forward(self, noise: paddle.Tensor) -> paddle.Tensor:
        relu = paddle.nn.functional.relu
        x = relu(self.norm1(self.project(noise)))
        return paddle.tanh(self.up2(relu(self.norm2(self.up1(x)))))


def torch_discriminator() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 4, 2, 1), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(16, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(32, 1, 4, 1, 0), nn.Flatten(), nn.Sigmoid(),
    )  # fmt: skip


def paddle_discriminator() -> paddle.nn.Layer:
    return paddle.nn.Sequential(
        paddle.nn.Conv2D(3, 16, 4, 2, 1), paddle.nn.LeakyReLU(0.2),
        paddle.nn.Conv2D(16, 32, 4, 2, 1, bias_attr=False), paddle.nn.BatchNorm2D(32),
        paddle.nn.LeakyReLU(0.2),
        paddle.nn.Conv2D(32, 1, 4, 1, 0), paddle.nn.Flatten(), paddle.nn.Sigmoid(),
    )  # fmt: skip


class TorchDetector(nn.Module):
    """Three scales; the same head looks at each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU())
        self.down1 = nn.Sequential(nn.Conv2d(16, 24, 3, 2, 1), nn.BatchNorm2d(24), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(24, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.SiLU())
        self.lateral = nn.ModuleList(nn.Conv2d(width, 16, 1) for width in (16, 24, 32))
        self.head = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.ReLU())
        self.score = nn.Conv2d(16, 5, 3, 1, 1)
        self.box = nn.Conv2d(16, 4, 3, 1, 1)

    def forward(self, image: torch.Tensor) -> dict[str, list[torch.Tensor]]:
        scales = [self.stem(image)]
        scales.append(self.down1(scales[0]))
        scales.append(self.down2(scales[1]))
        levels = [self.lateral[2](scales[2])]
        for index in (1, 0):
            larger = nn.functional.interpolate(levels[0], scale_factor=2.0, mode="nearest")
            levels.insert(0, self.lateral[index](scales[index]) + larger)
        seen = [self.head(level) for level in levels]
        return {"scores": [self.score(x) for x in seen], "boxes": [self.box(x).exp() for x in seen]}


class PaddleDetector(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        stages = [
            paddle.nn.Sequential(
                paddle.nn.Conv2D(first, second, 3, 2, 1), paddle.nn.BatchNorm2D(second), paddle.nn.Silu()
            )
            for first, second in ((3, 16), (16, 24), (24, 32))
        ]
        self.backbone = paddle.nn.LayerList(stages)
        self.fpn = paddle.nn.LayerList([paddle.nn.Conv2D(width, 16, 1) for width in (16, 24, 32)])
        self.tower = paddle.nn.Sequential(
            paddle.nn.Conv2D(16, 16, 3, 1, 1), paddle.nn.GroupNorm(4, 16), paddle.nn.ReLU()
        )
        self.cls = paddle.nn.Conv2D(16, 5, 3, 1, 1)
        self.reg = paddle.nn.Conv2D(16, 4, 3, 1, 1)

    def forward(self, image: paddle.Tensor) -> tuple[list[paddle.Tensor], list[paddle.Tensor]]:
        scales = []
        for stage in self.backbone:
            image = stage(image)
            scales.append(image)
        lateral = [layer(scale) for layer, scale in zip(self.fpn, scales, strict=True)]
        for index in (1, 0):
            larger = paddle.nn.functional.interpolate(lateral[index + 1], scale_factor=2, mode="nearest")
            lateral[index] = lateral[index] + larger
        scores, boxes = [], []
        for level in lateral:
            seen = self.tower(level)
            scores.append(self.cls(seen))
            boxes.append(paddle.exp(self.reg(seen)))
        return scores, boxes


class TorchResidual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + x)


def torch_small_cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        TorchResidual(16), TorchResidual(16), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip


class NhwcResidual(paddle.nn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        for name in ("1", "2"):
            conv = paddle.nn.Conv2D(width, width, 3, padding=1, bias_attr=False, data_format="NHWC")
            setattr(self, f"conv{name}", conv)
            setattr(self, f"bn{name}", paddle.nn.BatchNorm2D(width, data_format="NHWC"))
        self.relu = paddle.nn.ReLU()

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        return self.relu(self.bn2(self.conv2(y)) + x)


class NhwcCnn(paddle.nn.Layer):
    """The small CNN with channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = paddle.nn.Conv2D(3, 16, 3, 2, 1, bias_attr=False, data_format="NHWC")
        self.norm = paddle.nn.BatchNorm2D(16, data_format="NHWC")
        self.relu = paddle.nn.ReLU()
        self.pool = paddle.nn.MaxPool2D(3, 2, 1, data_format="NHWC")
        self.blocks = paddle.nn.Sequential(NhwcResidual(16), NhwcResidual(16))
        self.fc = paddle.nn.Linear(16, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.blocks(self.pool(self.relu(self.norm(self.stem(x)))))
        return self.fc(x.mean([1, 2]))


def _two_layouts(generator: np.random.Generator) -> Sides:
    image = images(2, 32)(generator)
    return sides(image, np.ascontiguousarray(image.transpose(0, 2, 3, 1)))


class FusedResidual(paddle.nn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv_a = paddle.nn.Conv2D(width, width, 3, padding=1, bias_attr=False)
        self.bn_a = paddle.nn.BatchNorm(width, act="relu")
        self.conv_b = paddle.nn.Conv2D(width, width, 3, padding=1, bias_attr=False)
        self.bn_b = paddle.nn.BatchNorm(width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.nn.functional.relu(self.bn_b(self.conv_b(self.bn_a(self.conv_a(x)))) + x)


class FusedCnn(paddle.nn.Layer):
    """The small CNN whose normalisation applies the activation as well."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = paddle.nn.Conv2D(3, 16, 3, 2, 1, bias_attr=False)
        self.bn = paddle.nn.BatchNorm(16, act="relu")
        self.pool = paddle.nn.MaxPool2D(3, 2, 1)
        self.block1 = FusedResidual(16)
        self.block2 = FusedResidual(16)
        self.fc = paddle.nn.Linear(16, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.block2(self.block1(self.pool(self.bn(self.conv(x)))))
        return self.fc(paddle.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1))


PAIRS: tuple[Pair, ...] = (
    pair("gan_generator", TorchGenerator, PaddleGenerator, features(4, 20, 1, 1), "gan", gain=GAIN),
    pair("gan_discriminator", torch_discriminator, paddle_discriminator, images(4, 16), "gan"),
    pair("detector", TorchDetector, PaddleDetector, images(2, 32), "cnn", "outputs", gain=GAIN),
    pair("nhwc_cnn", torch_small_cnn, NhwcCnn, _two_layouts, "cnn", "layout", gain=GAIN),
    pair("fused_cnn", torch_small_cnn, FusedCnn, images(2, 32), "cnn", "fused", gain=GAIN),
)
