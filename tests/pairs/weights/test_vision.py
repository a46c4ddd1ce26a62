"""Library models, torchvision against paddle.vision: both ways, and with the port in disguise."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle.vision.models as paddle_models
import pytest

from parfocal.weights.transfer import transfer
from tests.pairs.vision import torchvision_models
from tests.pairs.weights.tools import disguise, gap, randomise, run

# Name -> how the two sides really differ, as the plan must say; None: they agree.
MODELS: dict[str, str | None] = {
    "alexnet": "_drop1 gives another output than classifier.0",
    "vgg11": None,
    "vgg16_bn": None,
    "resnet18": None,
    "resnet50": None,
    "wide_resnet50_2": None,
    "resnext50_32x4d": None,
    "mobilenet_v2": None,
    "mobilenet_v3_large": None,
    "densenet121": None,
    "squeezenet1_1": "features.0 Conv2d padding: (0, 0) in the reference, (1, 1) in the port",
    "shufflenet_v2_x1_0": None,
}
# With fewer classes and small images: the layers are the same, the bytes are fewer.
CLASSES = 10


def make_torch(name: str) -> Any:
    return randomise(getattr(torchvision_models, name)(weights=None, num_classes=CLASSES), 1)


def make_paddle(name: str) -> Any:
    if name == "vgg16_bn":
        return randomise(paddle_models.vgg16(batch_norm=True, num_classes=CLASSES), 2)
    return randomise(getattr(paddle_models, name)(num_classes=CLASSES), 2)


def image(name: str) -> np.ndarray:
    size = 224 if name == "alexnet" else 32 if name.startswith("vgg") else 64
    return np.random.default_rng(3).standard_normal((1, 3, size, size)).astype("float32")
