"""Models that make or judge pictures: a U-Net, a generator, a discriminator and a detector."""

from __future__ import annotations

import paddle
import torch
from examples.pairs.pair import Pair, features, images, pair
from paddle.nn import functional as paddle_functional
from torch import nn
from torch.nn import functional as torch_functional

GAIN = 2.0**0.5


def _torch_double(first: int, second: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(first, second, 3, padding=1, bias=False), nn.BatchNorm2d(second), nn.ReLU(),
        nn.Conv2d(second, second, 3, padding=1, bias=False), nn.BatchNorm2d(second), nn.ReLU(),
    )  # fmt: skip


def _paddle_double(first: int, second: int) -> paddle.nn.Layer:
    return paddle.nn.Sequential(
        paddle.nn.Conv2D(first, second, 3, padding=1, bias_attr=False), paddle.nn.BatchNorm2D(second),
        paddle.nn.ReLU(),
        paddle.nn.Conv2D(second, second, 3, padding=1, bias_attr=False), paddle.nn.BatchNorm2D(second),
        paddle.nn.ReLU(),
    )  # fmt: skip


class TorchUnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down0, self.down1, self.bottom = _torch_double(3, 8), _torch_double(8, 16), _torch_double(16, 16)
        self.pool = nn.MaxPool2d(2)
        self.enlarge = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.up1 = _torch_double(16 + 16, 8)
        self.up0 = nn.ConvTranspose2d(8, 8, 2, 2)
        self.last = _torch_double(8 + 8, 8)
        self.out = nn.Conv2d(8, 2, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.down0(x)
        two = self.down1(self.pool(one))
        three = self.bottom(self.pool(two))
        two = self.up1(torch.cat([two, self.enlarge(three)], 1))
        return self.out(self.last(torch.cat([one, self.up0(two)], 1)))


class PaddleUnet(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.down0, self.down1 = _paddle_double(3, 8), _paddle_double(8, 16)
        self.bottom = _paddle_double(16, 16)
        self.pool = paddle.nn.MaxPool2D(2)
        self.enlarge = paddle.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.up1 = _paddle_double(16 + 16, 8)
        self.up0 = paddle.nn.Conv2DTranspose(8, 8, 2, 2)
        self.last = _paddle_double(8 + 8, 8)
        self.out = paddle.nn.Conv2D(8, 2, 3, padding=1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        one = self.down0(x)
        two = self.down1(self.pool(one))
        three = self.bottom(self.pool(two))
        two = self.up1(self.inner(two, self.enlarge(three)))
        return self.outermost(self.last(self.outer(one, self.up0(two))))

    def inner(self, skip: paddle.Tensor, below: paddle.Tensor) -> paddle.Tensor:
        return paddle.concat([skip, below], 1)

    def outer(self, skip: paddle.Tensor, below: paddle.Tensor) -> paddle.Tensor:
        return paddle.concat([skip, below], 1)

    def outermost(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.out(x)


class TorchGenerator(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.ConvTranspose2d(20, 16, 4, 1, 0, bias=False)
        self.norm0 = nn.BatchNorm2d(16)
        self.up = nn.ConvTranspose2d(16, 16, 4, 2, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        self.mix = nn.Conv2d(16, 32, 3, padding=1)
        self.shuffle = nn.PixelShuffle(2)
        self.paint = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm0(self.start(x)))
        x = torch.relu(self.norm1(self.up(x)))
        x = torch_functional.leaky_relu(self.shuffle(self.mix(x)), 0.2)
        x = torch_functional.interpolate(x, scale_factor=2.0, mode="bilinear")
        return torch.tanh(self.paint(x))


class PaddleGenerator(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.start = paddle.nn.Conv2DTranspose(20, 16, 4, 1, 0, bias_attr=False)
        self.norm0 = paddle.nn.BatchNorm2D(16)
        self.up = paddle.nn.Conv2DTranspose(16, 16, 4, 2, 1, bias_attr=False)
        self.norm1 = paddle.nn.BatchNorm2D(16)
        self.mix = paddle.nn.Conv2D(16, 32, 3, padding=1)
        self.shuffle = paddle.nn.PixelShuffle(2)
        self.paint = paddle.nn.Conv2D(8, 3, 3, padding=1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.first(self.norm0(self.start(x)))
        x = paddle_functional.relu(self.norm1(self.up(x)))
        x = self.bent(self.shuffle(self.mix(x)))
        return self.coloured(self.paint(self.larger(x)))

    def first(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.relu(x)

    def bent(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.leaky_relu(x, 0.2)

    def larger(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.interpolate(x, scale_factor=2, mode="bilinear")

    def coloured(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle.tanh(x)


class TorchDiscriminator(nn.Module):
    """Reflecting borders, the spread of the batch as one more channel, a score by global mean."""

    def __init__(self) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(3, 12, 3)
        self.act0 = nn.LeakyReLU(0.2)
        self.conv1 = nn.Conv2d(12, 16, 4, 2, 1)
        self.norm1 = nn.InstanceNorm2d(16, affine=True)
        self.act1 = nn.LeakyReLU(0.2)
        self.conv2 = nn.Conv2d(17, 16, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(16)
        self.act2 = nn.ELU()
        self.score = nn.Conv2d(16, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act0(self.conv0(torch_functional.pad(x, (1, 1, 1, 1), mode="reflect")))
        x = self.act1(self.norm1(self.conv1(x)))
        spread = x.var(0, unbiased=False).mean(0, keepdim=True).expand(x.shape[0], 1, -1, -1)
        x = self.act2(self.norm2(self.conv2(torch.cat([x, spread], 1))))
        return torch.sigmoid(self.score(x).mean((2, 3)))


class PaddleDiscriminator(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv0 = paddle.nn.Conv2D(3, 12, 3)
        self.act0 = paddle.nn.LeakyReLU(0.2)
        self.conv1 = paddle.nn.Conv2D(12, 16, 4, 2, 1)
        self.norm1 = paddle.nn.InstanceNorm2D(16)
        self.act1 = paddle.nn.LeakyReLU(0.2)
        self.conv2 = paddle.nn.Conv2D(17, 16, 3, 1, 1, bias_attr=False)
        self.norm2 = paddle.nn.BatchNorm2D(16)
        self.act2 = paddle.nn.ELU()
        self.score = paddle.nn.Conv2D(16, 4, 1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.act0(self.conv0(self.bordered(x)))
        x = self.act1(self.norm1(self.conv1(x)))
        spread = self.spread(x).mean(0, keepdim=True).unsqueeze(0).expand([x.shape[0], 1, -1, -1])
        x = self.act2(self.norm2(self.conv2(paddle.concat([x, spread], 1))))
        return self.judged(self.score(x))

    def bordered(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.pad(x, [1, 1, 1, 1], mode="reflect")

    def spread(self, x: paddle.Tensor) -> paddle.Tensor:
        return x.var(0, unbiased=False)

    def judged(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.sigmoid(x.mean([2, 3]))


class TorchDetector(nn.Module):
    """Two scales, one head for both; boxes are centres in pixels and positive sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.BatchNorm2d(12), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(12, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.SiLU())
        self.lateral1 = nn.Conv2d(12, 16, 1)
        self.lateral2 = nn.Conv2d(16, 16, 1)
        self.tower = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.ReLU())
        self.classes = nn.Conv2d(16, 5, 3, 1, 1)
        self.boxes = nn.Conv2d(16, 2, 3, 1, 1)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        fine = self.down1(x)
        coarse = self.lateral2(self.down2(fine))
        fine = self.lateral1(fine) + torch_functional.interpolate(coarse, scale_factor=2.0, mode="nearest")
        found = []
        for stride, level in ((2, fine), (4, coarse)):
            seen = self.tower(level)
            found += [torch.sigmoid(self.classes(seen)), self.boxes(seen).exp() * stride]
        return found


class PaddleDetector(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        layers = paddle.nn
        self.down1 = layers.Sequential(layers.Conv2D(3, 12, 3, 2, 1), layers.BatchNorm2D(12), layers.Silu())
        self.down2 = layers.Sequential(layers.Conv2D(12, 16, 3, 2, 1), layers.BatchNorm2D(16), layers.Silu())
        self.lateral1 = layers.Conv2D(12, 16, 1)
        self.lateral2 = layers.Conv2D(16, 16, 1)
        self.tower = layers.Sequential(layers.Conv2D(16, 16, 3, 1, 1), layers.GroupNorm(4, 16), layers.ReLU())
        self.classes = layers.Conv2D(16, 5, 3, 1, 1)
        self.boxes = layers.Conv2D(16, 2, 3, 1, 1)

    def forward(self, x: paddle.Tensor) -> list[paddle.Tensor]:
        fine = self.down1(x)
        coarse = self.lateral2(self.down2(fine))
        fine = self.lateral1(fine) + self.larger(coarse)
        found = []
        for stride, level in ((2, fine), (4, coarse)):
            seen = self.tower(level)
            found += [self.likely(self.classes(seen)), self.sized(self.boxes(seen), stride)]
        return found

    def larger(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.interpolate(x, scale_factor=2, mode="nearest")

    def likely(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.sigmoid(x)

    def sized(self, x: paddle.Tensor, stride: int) -> paddle.Tensor:
        return paddle.exp(x) * stride


PAIRS: tuple[Pair, ...] = (
    pair("unet", TorchUnet, PaddleUnet, images(2, 16), gain=GAIN),
    pair("generator", TorchGenerator, PaddleGenerator, features(4, 20, 1, 1), gain=GAIN),
    pair("discriminator", TorchDiscriminator, PaddleDiscriminator, images(4, 12)),
    pair("detector", TorchDetector, PaddleDetector, images(2, 16)),
)
