"""The port of ``alexnet_torch.py``."""

import paddle
from paddle import nn


class AlexNet(nn.Layer):
    def __init__(self, num_classes=1000, width=64, dropout=0.5):
        super().__init__()
        convolution = {"weight_attr": nn.initializer.KaimingNormal(nonlinearity="relu")}
        linear = {"weight_attr": nn.initializer.Normal(0.0, 0.01)}
        self.features = nn.Sequential(
            nn.Conv2D(3, width, kernel_size=11, stride=4, padding=2, **convolution),
            nn.ReLU(),
            nn.MaxPool2D(kernel_size=3, stride=2),
            nn.Conv2D(width, 3 * width, kernel_size=5, padding=2, **convolution),
            nn.ReLU(),
            nn.MaxPool2D(kernel_size=3, stride=2),
            nn.Conv2D(3 * width, 6 * width, kernel_size=3, padding=1, **convolution),
            nn.ReLU(),
            nn.Conv2D(6 * width, 4 * width, kernel_size=3, padding=1, **convolution),
            nn.ReLU(),
            nn.Conv2D(4 * width, 4 * width, kernel_size=3, padding=1, **convolution),
            nn.ReLU(),
            nn.MaxPool2D(kernel_size=3, stride=2),
        )
        self.avgpool = nn.AdaptiveAvgPool2D((6, 6))
        self.classifier = nn.Sequential(
            nn.Dropout(p=dropout),
            nn.Linear(4 * width * 6 * 6, 64 * width, **linear),
            nn.ReLU(),
            nn.Dropout(p=dropout),
            nn.Linear(64 * width, 64 * width, **linear),
            nn.ReLU(),
            nn.Linear(64 * width, num_classes, **linear),
        )

    def forward(self, x):
        x = self.features(x)
        x = self.avgpool(x)
        x = paddle.flatten(x, 1)
        return self.classifier(x)
