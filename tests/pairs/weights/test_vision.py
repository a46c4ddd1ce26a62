"""Library models, torchvision against paddle.vision: both ways, and with the port in disguise."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
    "resnet50 of half the width": None,
    "resnext50_32x4d": None,
    "mobilenet_v2": None,
    "mobilenet_v3_large": None,
    "densenet121": None,
    "squeezenet1_1": "features.0 Conv2d padding: (0, 0) in the reference, (1, 1) in the port",
    "shufflenet_v2_x1_0": None,
}
# With fewer classes and small images: the layers are the same, the bytes are fewer.
CLASSES = 10
# How each library makes what it has under another name. As in wide_resnet50_2, which is eight times as
# large, the inner width of a block is not what its outer width says.
VARIANTS: dict[str, tuple[str, dict[str, Any], str, dict[str, Any]]] = {
    "vgg16_bn": ("vgg16_bn", {}, "vgg16", {"batch_norm": True}),
    "resnet50 of half the width": ("resnet50", {"width_per_group": 32}, "resnet50", {"width": 32}),
}
SIZES = {"alexnet": 224, "squeezenet1_1": 64, "resnet18": 64, "shufflenet_v2_x1_0": 64}


def make_torch(name: str) -> Any:
    function, options, _, _ = VARIANTS.get(name, (name, {}, name, {}))
    with narrow(torch.nn.Linear):
        model = getattr(torchvision_models, function)(weights=None, num_classes=CLASSES, **options)
    return randomise(model, 1)


def make_paddle(name: str) -> Any:
    _, _, function, options = VARIANTS.get(name, (name, {}, name, {}))
    with narrow(paddle.nn.Linear):
        model = getattr(paddle_models, function)(num_classes=CLASSES, **options)
    return randomise(model, 2)


@contextmanager
def narrow(linear: Any) -> Iterator[None]:
    """The 4096-wide classifiers of the oldest models, 32 wide: a hundred times fewer bytes to make."""
    usual = linear.__init__

    def initialise(self: Any, in_features: int, out_features: int, *rest: Any, **named: Any) -> None:
        usual(self, *(32 if size == 4096 else size for size in (in_features, out_features)), *rest, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear, "__init__", initialise)
        yield


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
