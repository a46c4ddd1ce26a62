"""A small U-Net: strided convolutions down, bilinear upsampling and skip connections up."""

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, wide_in, wide, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(wide_in, wide, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(wide)
        self.conv2 = nn.Conv2d(wide, wide, 3, padding=1, padding_mode="reflect", bias=False)
        self.norm2 = nn.BatchNorm2d(wide)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(x)))


class Up(nn.Module):
    def __init__(self, wide_in, skipped, wide):
        super().__init__()
        self.block = Block(wide_in + skipped, wide)

    def forward(self, x, skip):
        x = F.interpolate(x, size=skip.shape[2:], mode="bilinear", align_corners=False)
        return self.block(torch.cat([skip, x], dim=1))


class UNet(nn.Module):
    def __init__(self, classes=4, width=8, dropout=0.1):
        super().__init__()
        self.stem = Block(3, width)
        self.down1 = Block(width, 2 * width, stride=2)
        self.down2 = Block(2 * width, 2 * width, stride=2)
        self.up1 = Up(2 * width, 2 * width, 2 * width)
        self.up2 = Up(2 * width, width, width)
        self.dropout = nn.Dropout2d(dropout)
        self.head = nn.Conv2d(width, classes, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.normal_(self.head.weight, std=0.01)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        fine = self.stem(x)
        half = self.down1(fine)
        x = self.up1(self.down2(half), half)
        x = self.up2(x, fine)
        return self.head(self.dropout(x))
