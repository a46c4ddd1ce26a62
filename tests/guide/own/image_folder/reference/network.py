"""A small residual network: a stem, three blocks of which two halve the picture, a mean, dropout, a head."""

from torch import nn


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.act = nn.LeakyReLU(0.1)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.AvgPool2d(3, stride, padding=1, count_include_pad=False),
                nn.Conv2d(inputs, outputs, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )

    def forward(self, x):
        y = self.act(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return self.act(y + self.shortcut(x))


class SmallResNet(nn.Module):
    def __init__(self, classes=3, widths=(8, 16, 24), dropout=0.2):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, widths[0], 3, padding=1, bias=False), nn.BatchNorm2d(widths[0]), nn.LeakyReLU(0.1)
        )
        self.layer1 = Block(widths[0], widths[0], 1)
        self.layer2 = Block(widths[0], widths[1], 2)
        self.layer3 = Block(widths[1], widths[2], 2)
        self.dropout = nn.Dropout(dropout)
        self.fc = nn.Linear(widths[2], classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.normal_(self.fc.weight, std=0.1)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        x = x.mean((2, 3))
        return self.fc(self.dropout(x))
