"""A small U-Net: strided convolutions down, bilinear upsampling and skip connections up."""

import math

import paddle
from paddle import nn
from paddle.nn import functional as F


class Block(nn.Layer):
    def __init__(self, wide_in, wide, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2D(wide_in, wide, 3, stride, padding=1, bias_attr=False)
        self.norm1 = nn.BatchNorm2D(wide, momentum=0.9, epsilon=1e-5)
        self.conv2 = nn.Conv2D(wide, wide, 3, padding=1, padding_mode="reflect", bias_attr=False)
        self.norm2 = nn.BatchNorm2D(wide, momentum=0.9, epsilon=1e-5)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class Up(nn.Layer):
    def __init__(self, wide_in, skipped, wide):
        super().__init__()
        self.block = Block(wide_in + skipped, wide)

    def forward(self, x, skip):
        x = F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=False)
        return self.block(paddle.concat([skip, x], axis=1))


class UNet(nn.Layer):
    def __init__(self, classes=4, width=8, dropout=0.1):
        super().__init__()
        self.stem = Block(3, width)
        self.down1 = Block(width, 2 * width, stride=2)
        self.down2 = Block(2 * width, 2 * width, stride=2)
        self.up1 = Up(2 * width, 2 * width, 2 * width)
        self.up2 = Up(2 * width, width, width)
        self.dropout = nn.Dropout2D(dropout)
        self.head = nn.Conv2D(width, classes, 1)
        for layer in self.sublayers():
            if isinstance(layer, nn.Conv2D):
                wide, _, high, broad = layer.weight.shape
                nn.initializer.Normal(std=math.sqrt(2 / (wide * high * broad)))(layer.weight)
        nn.initializer.Normal(std=0.01)(self.head.weight)
        nn.initializer.Constant(0.0)(self.head.bias)

    def forward(self, x):
        fine = self.stem(x)
        half = self.down1(fine)
        x = self.up1(self.down2(half), half)
        x = self.up2(x, fine)
        return self.head(self.dropout(x))
