"""A port of ``network_torch.py`` with one mistake: ``parfocal check --project mistaken.toml`` finds it."""

import paddle
from paddle import nn
from paddle.nn.initializer import KaimingNormal, Normal


def kaiming():
    return KaimingNormal(nonlinearity="relu")


class MultiViewFusion(nn.Layer):
    def __init__(self, channels, frames):
        super().__init__()
        self.frames = frames
        self.fused = channels // 2
        views = {"groups": self.fused, "bias_attr": False, "weight_attr": kaiming()}
        self.time = nn.Conv3D(self.fused, self.fused, (3, 1, 1), padding=(1, 0, 0), **views)
        self.height = nn.Conv3D(self.fused, self.fused, (1, 3, 1), padding=(0, 1, 0), **views)
        self.width = nn.Conv3D(self.fused, self.fused, (1, 1, 3), padding=(0, 0, 1), **views)
        self.norm = nn.BatchNorm3D(self.fused)

    def forward(self, x):
        count, _, height, width = x.shape
        fused, rest = x[:, : self.fused], x[:, self.fused :]
        fused = fused.reshape([-1, self.frames, self.fused, height, width]).transpose([0, 2, 1, 3, 4])
        fused = nn.functional.relu(self.norm(self.time(fused) + self.height(fused) + self.width(fused)))
        fused = fused.transpose([0, 2, 1, 3, 4]).reshape([count, self.fused, height, width])
        return paddle.concat([fused, rest], 1)


class TemporalShift(nn.Layer):
    def __init__(self, frames):
        super().__init__()
        self.frames = frames

    def forward(self, x):
        count, channels, height, width = x.shape
        x = x.reshape([-1, self.frames, channels, height, width])
        fold = channels // 4
        nothing = paddle.zeros_like(x[:, :1, :fold])
        earlier = paddle.concat([x[:, 1:, :fold], nothing], 1)
        later = paddle.concat([x[:, 1:, fold : 2 * fold], nothing], 1)
        return paddle.concat([earlier, later, x[:, :, 2 * fold :]], 2).reshape(
            [count, channels, height, width]
        )


class Block(nn.Layer):
    def __init__(self, inside, outside, frames, stride):
        super().__init__()
        begin = {"bias_attr": False, "weight_attr": kaiming()}
        self.shift = TemporalShift(frames)
        self.conv1 = nn.Conv2D(inside, outside, 3, stride=stride, padding=1, **begin)
        self.norm1 = nn.BatchNorm2D(outside)
        self.fusion = MultiViewFusion(outside, frames)
        self.conv2 = nn.Conv2D(outside, outside, 3, padding=1, **begin)
        self.norm2 = nn.BatchNorm2D(outside)
        self.skip = nn.Conv2D(inside, outside, 1, stride=stride, **begin)

    def forward(self, x):
        out = nn.functional.relu(self.norm1(self.conv1(self.shift(x))))
        out = self.norm2(self.conv2(self.fusion(out)))
        return nn.functional.relu(out + self.skip(x))


class ActionNet(nn.Layer):
    def __init__(self, num_classes, frames=8, width=8):
        super().__init__()
        self.frames = frames
        self.stem = nn.Conv2D(3, width, 3, stride=2, padding=1, bias_attr=False, weight_attr=kaiming())
        self.norm = nn.BatchNorm2D(width)
        self.layer1 = Block(width, 2 * width, frames, stride=2)
        self.layer2 = Block(2 * width, 4 * width, frames, stride=2)
        self.head = nn.Linear(4 * width, num_classes, weight_attr=Normal(0.0, 0.01))

    def forward(self, clip):
        x = nn.functional.relu(self.norm(self.stem(clip.flatten(0, 1))))
        x = self.layer2(self.layer1(x)).mean((2, 3))
        votes = self.head(x)
        return {"logits": votes.reshape([-1, self.frames, votes.shape[-1]]).mean(1)}
