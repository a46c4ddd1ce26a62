"""Vision models written by hand on both sides: ViT, ConvNeXt, U-Net and a CNN in two layouts."""

from __future__ import annotations

from typing import Any

import paddle
import torch
from torch import nn

from examples.pairs.pair import Pair, images, pair

GAIN = 2.0**0.5


class TorchAttention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count, length, width = x.shape
        qkv = self.qkv(x).reshape(count, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        mixed = nn.functional.scaled_dot_product_attention(query, key, value)
        return self.proj(mixed.transpose(1, 2).reshape(count, length, width))


class PaddleAttention(paddle.nn.Layer):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.qkv = paddle.nn.Linear(width, 3 * width)
        self.proj = paddle.nn.Linear(width, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        count, length, width = x.shape
        qkv = (
            self.qkv(x)
            .reshape([count, length, 3, self.heads, width // self.heads])
            .transpose([2, 0, 3, 1, 4])
        )
        query, key, value = qkv[0], qkv[1], qkv[2]
        weights = paddle.nn.functional.softmax(paddle.matmul(query * self.scale, key, transpose_y=True), -1)
        return self.proj(
            paddle.matmul(weights, value).transpose([0, 2, 1, 3]).reshape([count, length, width])
        )


class TorchVitBlock(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = TorchAttention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PaddleVitBlock(paddle.nn.Layer):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.ln_1 = paddle.nn.LayerNorm(width, epsilon=1e-6)
        self.attention = PaddleAttention(width, heads)
        self.ln_2 = paddle.nn.LayerNorm(width, epsilon=1e-6)
        self.fc1 = paddle.nn.Linear(width, 2 * width)
        self.act = paddle.nn.GELU()
        self.fc2 = paddle.nn.Linear(2 * width, width)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = x + self.attention(self.ln_1(x))
        return x + self.fc2(self.act(self.fc1(self.ln_2(x))))


class TorchVit(nn.Module):
    def __init__(self, width: int = 48, heads: int = 4, depth: int = 3) -> None:
        super().__init__()
        self.patch_embed = nn.Conv2d(3, width, 8, 8)
        self.cls_token = nn.Parameter(torch.randn(1, 1, width))
        self.pos_embed = nn.Parameter(0.5 * torch.randn(1, 17, width))
        self.blocks = nn.ModuleList(TorchVitBlock(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class PaddleVit(paddle.nn.Layer):
    def __init__(self, width: int = 48, heads: int = 4, depth: int = 3) -> None:
        super().__init__()
        normal = paddle.nn.initializer.Normal(0.0, 0.5)
        self.class_token = self.create_parameter([1, 1, width], default_initializer=normal)
        self.position = self.create_parameter([1, 17, width], default_initializer=normal)
        self.to_patches = paddle.nn.Conv2D(3, width, 8, 8)
        self.layers = paddle.nn.LayerList([PaddleVitBlock(width, heads) for _ in range(depth)])
        self.ln = paddle.nn.LayerNorm(width, epsilon=1e-6)
        self.fc = paddle.nn.Linear(width, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.to_patches(x).flatten(2).transpose([0, 2, 1])
        x = paddle.concat([self.class_token.expand([x.shape[0], -1, -1]), x], 1) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.fc(self.ln(x)[:, 0])


class TorchConvNextBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.pwconv1 = nn.Linear(width, 4 * width)
        self.act = nn.GELU()
        self.pwconv2 = nn.Linear(4 * width, width)
        self.gamma = nn.Parameter(0.3 + 0.4 * torch.rand(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + (self.gamma * y).permute(0, 3, 1, 2)


class PaddleConvNextBlock(paddle.nn.Layer):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = paddle.nn.Conv2D(width, width, 7, padding=3, groups=width)
        self.norm = paddle.nn.LayerNorm(width, epsilon=1e-6)
        self.pwconv1 = paddle.nn.Linear(width, 4 * width)
        self.act = paddle.nn.GELU()
        self.pwconv2 = paddle.nn.Linear(4 * width, width)
        self.scale = self.create_parameter([width], default_initializer=paddle.nn.initializer.Constant(0.1))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.dwconv(x).transpose([0, 2, 3, 1])
        y = self.pwconv2(self.act(self.pwconv1(self.norm(y))))
        return x + (y * self.scale).transpose([0, 3, 1, 2])


class TorchConvNext(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 4, 4)
        self.stage1 = nn.Sequential(TorchConvNextBlock(24), TorchConvNextBlock(24))
        self.down = nn.Conv2d(24, 48, 2, 2)
        self.stage2 = nn.Sequential(TorchConvNextBlock(48), TorchConvNextBlock(48))
        self.norm = nn.LayerNorm(48, eps=1e-6)
        self.head = nn.Linear(48, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stage2(self.down(self.stage1(self.stem(x))))
        return self.head(self.norm(x.mean((2, 3))))


class PaddleConvNext(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.stem = paddle.nn.Conv2D(3, 24, 4, 4)
        self.downsample = paddle.nn.Conv2D(24, 48, 2, 2)
        self.stages = paddle.nn.LayerList(
            [paddle.nn.Sequential(*(PaddleConvNextBlock(width) for _ in range(2))) for width in (24, 48)]
        )
        self.norm = paddle.nn.LayerNorm(48, epsilon=1e-6)
        self.head = paddle.nn.Linear(48, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.stages[1](self.downsample(self.stages[0](self.stem(x))))
        return self.head(self.norm(x.mean([2, 3])))


def _torch_double(first: int, second: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(first, second, 3, padding=1, bias=False), nn.BatchNorm2d(second), nn.ReLU(inplace=True),
        nn.Conv2d(second, second, 3, padding=1, bias=False), nn.BatchNorm2d(second), nn.ReLU(inplace=True),
    )  # fmt: skip


def _paddle_double(first: int, second: int) -> paddle.nn.Layer:
    layers: list[Any] = []
    for width in (first, second):
        layers += [
            paddle.nn.Conv2D(width, second, 3, padding=1, bias_attr=False),
            paddle.nn.BatchNorm2D(second),
            paddle.nn.ReLU(),
        ]
    return paddle.nn.Sequential(*layers)


class TorchUNet(nn.Module):
    """One way up by bilinear interpolation, one by a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.inc, self.down1, self.down2 = _torch_double(3, 12), _torch_double(12, 24), _torch_double(24, 48)
        self.pool = nn.MaxPool2d(2)
        self.up1 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.conv1 = _torch_double(48 + 24, 24)
        self.up2 = nn.ConvTranspose2d(24, 12, 2, 2)
        self.conv2 = _torch_double(12 + 12, 12)
        self.out = nn.Conv2d(12, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        one = self.inc(x)
        two = self.down1(self.pool(one))
        three = self.down2(self.pool(two))
        two = self.conv1(torch.cat([two, self.up1(three)], 1))
        return self.out(self.conv2(torch.cat([one, self.up2(two)], 1)))


class PaddleUNet(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = paddle.nn.LayerList(
            [_paddle_double(*sizes) for sizes in ((3, 12), (12, 24), (24, 48))]
        )
        self.decoder = paddle.nn.LayerList([_paddle_double(48 + 24, 24), _paddle_double(12 + 12, 12)])
        self.pool = paddle.nn.MaxPool2D(2)
        self.enlarge = paddle.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
        self.up = paddle.nn.Conv2DTranspose(24, 12, 2, 2)
        self.out = paddle.nn.Conv2D(12, 2, 1)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        one = self.encoder[0](x)
        two = self.encoder[1](self.pool(one))
        three = self.encoder[2](self.pool(two))
        two = self.decoder[0](paddle.concat([two, self.enlarge(three)], 1))
        return self.out(self.decoder[1](paddle.concat([one, self.up(two)], 1)))


PAIRS: tuple[Pair, ...] = (
    pair("vit", TorchVit, PaddleVit, images(2, 32), "transformer", "vision"),
    pair("convnext", TorchConvNext, PaddleConvNext, images(2, 32), "cnn", "vision"),
    pair("unet", TorchUNet, PaddleUNet, images(2, 32), "cnn", "vision", gain=GAIN),
)
