"""Library models, torchvision against paddle.vision: both ways, and with the port in disguise."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import paddle.vision.models as paddle_models
import pytest
import torch

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
SIZES = {"alexnet": 224, "squeezenet1_1": 64, "resnet18": 64, "shufflenet_v2_x1_0": 64}


def make_torch(name: str) -> Any:
    model = getattr(torchvision_models, name)(weights=None, num_classes=CLASSES)
    return randomise(narrowed(model, torch.nn.Linear), 1)


def make_paddle(name: str) -> Any:
    if name == "vgg16_bn":
        model = paddle_models.vgg16(batch_norm=True, num_classes=CLASSES)
    else:
        model = getattr(paddle_models, name)(num_classes=CLASSES)
    return randomise(narrowed(model, paddle.nn.Linear), 2)


def narrowed(model: Any, linear: Any) -> Any:
    """The 4096-wide classifiers of the oldest models, 32 wide: a hundred times fewer bytes to move."""
    for owner in [model, getattr(model, "classifier", None)]:
        children = getattr(owner, "_modules", None) or getattr(owner, "_sub_layers", None) or {}
        for name, layer in children.items():
            if isinstance(layer, linear) and 4096 in layer.weight.shape:
                rows, columns = layer.weight.shape if linear is torch.nn.Linear else layer.weight.shape[::-1]
                children[name] = linear(32 if columns == 4096 else columns, 32 if rows == 4096 else rows)
    return model


def image(name: str) -> np.ndarray:
    size = SIZES.get(name, 32)
    return np.random.default_rng(3).standard_normal((1, 3, size, size)).astype("float32")


def check(name: str, plan: Any, reference: Any, port: Any) -> None:
    """Everything copied; the outputs agree, or they differ and the plan does not say otherwise."""
    assert plan.complete
    off = gap(run(reference, image(name)), run(port, image(name)))
    if MODELS[name] is None:
        assert plan.verified is not False
        assert off < 2e-5
    else:
        assert plan.verified is not True
        assert off > 1e-2


@pytest.mark.parametrize("name", MODELS)
def test_library_model(name: str) -> None:
    """There without inputs, back with them, and both again in disguise."""
    first, second = make_torch(name), make_paddle(name)
    check(name, transfer(first, second), first, second)
    if MODELS[name] is not None:
        plan = transfer(first, second, image(name))
        assert any(str(MODELS[name]) in note for note in plan.notes), str(plan)
    randomise(first, 3)
    check(name, transfer(second, first, image(name)), second, first)
    disguise(randomise(second, 4), 1)
    check(name, transfer(first, second, image(name)), first, second)
    disguise(randomise(first, 5), 2)
    check(name, transfer(second, first, image(name)), second, first)
