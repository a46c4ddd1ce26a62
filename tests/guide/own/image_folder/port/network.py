"""A small residual network: a stem, three blocks of which two halve the picture, a mean, dropout, a head."""

import math

from paddle import nn


class Block(nn.Layer):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2D(inputs, outputs, 3, stride, padding=1, bias_attr=False)
        self.bn1 = nn.BatchNorm2D(outputs)
        self.conv2 = nn.Conv2D(outputs, outputs, 3, padding=1, bias_attr=False)
        self.bn2 = nn.BatchNorm2D(outputs)
        self.act = nn.LeakyReLU(0.1)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.AvgPool2D(3, stride, padding=1, exclusive=True),
                nn.Conv2D(inputs, outputs, 1, bias_attr=False),
                nn.BatchNorm2D(outputs),
            )

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.act(y + self.shortcut(x))


class SmallResNet(nn.Layer):
    def __init__(self, classes=3, widths=(8, 16, 24), dropout=0.2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2D(3, widths[0], 3, padding=1, bias_attr=False),
            nn.BatchNorm2D(widths[0]),
            nn.LeakyReLU(0.1),
        )
        self.layer1 = Block(widths[0], widths[0], 1)
        self.layer2 = Block(widths[0], widths[1], 2)
        self.layer3 = Block(widths[1], widths[2], 2)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(widths[2], classes)
        for layer in self.sublayers():
            if isinstance(layer, nn.Conv2D):
                outputs, _, height, width = layer.weight.shape
                fan_out = outputs * height * width
                nn.initializer.Normal(std=math.sqrt(2 / fan_out))(layer.weight)
        nn.initializer.Normal(std=0.1)(self.fc.weight)
        nn.initializer.Constant(0.0)(self.fc.bias)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        x = x.mean([2, 3])
        return self.fc(self.dropout(x))
