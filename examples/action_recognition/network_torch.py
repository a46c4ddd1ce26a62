"""A network for clips: two-dimensional convolutions on every frame, and fusion of the frames between them."""

import torch
from torch import nn


class MultiViewFusion(nn.Module):
    """Half of the channels are convolved along time, height and width, and added up."""

    def __init__(self, channels, frames):
        super().__init__()
        self.frames = frames
        self.fused = channels // 2
        views = {"groups": self.fused, "bias": False}
        self.time = nn.Conv3d(self.fused, self.fused, (3, 1, 1), padding=(1, 0, 0), **views)
        self.height = nn.Conv3d(self.fused, self.fused, (1, 3, 1), padding=(0, 1, 0), **views)
        self.width = nn.Conv3d(self.fused, self.fused, (1, 1, 3), padding=(0, 0, 1), **views)
        self.norm = nn.BatchNorm3d(self.fused)

    def forward(self, x):
        count, _, height, width = x.shape
        fused, rest = x[:, : self.fused], x[:, self.fused :]
        fused = fused.reshape(-1, self.frames, self.fused, height, width).transpose(1, 2)
        fused = torch.relu(self.norm(self.time(fused) + self.height(fused) + self.width(fused)))
        fused = fused.transpose(1, 2).reshape(count, self.fused, height, width)
        return torch.cat([fused, rest], 1)


class TemporalShift(nn.Module):
    """A quarter of the channels comes from the next frame, a quarter from the one before."""

    def __init__(self, frames):
        super().__init__()
        self.frames = frames

    def forward(self, x):
        count, channels, height, width = x.shape
        x = x.reshape(-1, self.frames, channels, height, width)
        fold = channels // 4
        nothing = torch.zeros_like(x[:, :1, :fold])
        earlier = torch.cat([x[:, 1:, :fold], nothing], 1)
        later = torch.cat([nothing, x[:, :-1, fold : 2 * fold]], 1)
        return torch.cat([earlier, later, x[:, :, 2 * fold :]], 2).reshape(count, channels, height, width)


class Block(nn.Module):
    """A residual block of two convolutions, the frames shifted before the first."""

    def __init__(self, inside, outside, frames, stride):
        super().__init__()
        self.shift = TemporalShift(frames)
        self.conv1 = nn.Conv2d(inside, outside, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outside)
        self.fusion = MultiViewFusion(outside, frames)
        self.conv2 = nn.Conv2d(outside, outside, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outside)
        self.skip = nn.Conv2d(inside, outside, 1, stride=stride, bias=False)

    def forward(self, x):
        out = torch.relu(self.norm1(self.conv1(self.shift(x))))
        out = self.norm2(self.conv2(self.fusion(out)))
        return torch.relu(out + self.skip(x))


class ActionNet(nn.Module):
    def __init__(self, num_classes, frames=8, width=8):
        super().__init__()
        self.frames = frames
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.layer1 = Block(width, 2 * width, frames, stride=2)
        self.layer2 = Block(2 * width, 4 * width, frames, stride=2)
        self.head = nn.Linear(4 * width, num_classes)
        for layer in self.modules():
            if isinstance(layer, (nn.Conv2d, nn.Conv3d)):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.normal_(self.head.weight, 0, 0.01)
        nn.init.zeros_(self.head.bias)

    def forward(self, clip):
        """Clips of [batch, frames, 3, height, width]; each frame votes, the votes are averaged."""
        x = torch.relu(self.norm(self.stem(clip.flatten(0, 1))))
        x = self.layer2(self.layer1(x)).mean((2, 3))
        votes = self.head(x)
        return {"logits": votes.reshape(-1, self.frames, votes.shape[-1]).mean(1)}
