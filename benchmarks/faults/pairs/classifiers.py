"""Two convolutional classifiers: a plain one with many kinds of layers, and a residual one."""

from __future__ import annotations

from typing import Any

import paddle
import torch
from examples.pairs.pair import Pair, images, pair
from paddle.nn import functional as paddle_functional
from torch import nn
from torch.nn import functional as torch_functional

GAIN = 2.0**0.5


class TorchCnn(nn.Module):
    """Squeeze-and-excitation in front of the classifier, which sees the flattened map."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, 2, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(12)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.conv2 = nn.Conv2d(12, 16, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(16)
        self.act2 = nn.Hardswish()
        self.average = nn.AvgPool2d(3, 2, 1)
        self.conv3 = nn.Conv2d(16, 16, 3, 1, 1, groups=16)
        self.bn3 = nn.BatchNorm2d(16)
        self.act3 = nn.LeakyReLU(0.1)
        self.gate = nn.Linear(16, 16)
        self.drop = nn.Dropout(0.2)
        self.fc = nn.Linear(256, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.average(self.act2(self.bn2(self.conv2(x))))
        x = self.act3(self.bn3(self.conv3(x)))
        gate = torch_functional.hardsigmoid(self.gate(x.mean((2, 3))))
        x = x * gate[:, :, None, None]
        return self.fc(self.drop(x.flatten(1)))


class PaddleCnn(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(3, 12, 3, 2, 1, bias_attr=False)
        self.bn1 = paddle.nn.BatchNorm2D(12)
        self.relu = paddle.nn.ReLU()
        self.pool = paddle.nn.MaxPool2D(3, 2, 1)
        self.conv2 = paddle.nn.Conv2D(12, 16, 3, 1, 1)
        self.bn2 = paddle.nn.BatchNorm2D(16)
        self.act2 = paddle.nn.Hardswish()
        self.average = paddle.nn.AvgPool2D(3, 2, 1, exclusive=False)
        self.conv3 = paddle.nn.Conv2D(16, 16, 3, 1, 1, groups=16)
        self.bn3 = paddle.nn.BatchNorm2D(16)
        self.act3 = paddle.nn.LeakyReLU(0.1)
        self.gate = paddle.nn.Linear(16, 16)
        self.drop = paddle.nn.Dropout(0.2)
        self.fc = paddle.nn.Linear(256, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.classify(self.features(x))

    def features(self, x: paddle.Tensor) -> paddle.Tensor:
        x = self.pool(self.relu(self.bn1(self.conv1(x))))
        x = self.average(self.act2(self.bn2(self.conv2(x))))
        x = self.act3(self.bn3(self.conv3(x)))
        gate = self.squeezed(x)
        return x * gate.unsqueeze([2, 3])

    def squeezed(self, x: paddle.Tensor) -> paddle.Tensor:
        return paddle_functional.hardsigmoid(self.gate(x.mean([2, 3])))

    def classify(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(self.drop(x.flatten(1)))


class TorchBlock(nn.Module):
    def __init__(self, first: int, second: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(first, second, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(second)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(second, second, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(second)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(first, second, 1, stride, bias=False), nn.BatchNorm2d(second)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.shortcut(x))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, first: int, second: int, stride: int) -> None:
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(first, second, 3, stride, 1, bias_attr=False)
        self.bn1 = paddle.nn.BatchNorm2D(second)
        self.relu = paddle.nn.ReLU()
        self.conv2 = paddle.nn.Conv2D(second, second, 3, 1, 1, bias_attr=False)
        self.bn2 = paddle.nn.BatchNorm2D(second)
        self.shortcut = paddle.nn.Sequential()
        if stride > 1:
            self.shortcut = paddle.nn.Sequential(
                paddle.nn.Conv2D(first, second, 1, stride, bias_attr=False), paddle.nn.BatchNorm2D(second)
            )

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.shortcut(x))


def _stages(block: Any) -> list[Any]:
    return [block(12, 12, 1), block(12, 16, 2), block(16, 16, 1), block(16, 24, 2)]


class TorchResnet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU())
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.blocks = nn.Sequential(*_stages(TorchBlock))
        self.fc = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(self.blocks(self.pool(self.stem(x))).mean((2, 3)))


class PaddleResnet(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.stem = paddle.nn.Sequential(
            paddle.nn.Conv2D(3, 12, 3, 1, 1, bias_attr=False), paddle.nn.BatchNorm2D(12), paddle.nn.ReLU()
        )
        self.pool = paddle.nn.MaxPool2D(3, 2, 1)
        self.blocks = paddle.nn.Sequential(*_stages(PaddleBlock))
        self.fc = paddle.nn.Linear(24, 10)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.fc(self.blocks(self.pool(self.stem(x))).mean([2, 3]))


PAIRS: tuple[Pair, ...] = (
    pair("cnn", TorchCnn, PaddleCnn, images(4, 32), gain=GAIN),
    pair("resnet", TorchResnet, PaddleResnet, images(4, 16), gain=GAIN),
)
