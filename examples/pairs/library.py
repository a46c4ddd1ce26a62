"""Convolutional networks as torchvision and paddle.vision ship them.

The classifiers of VGG and AlexNet are replaced by small ones on both sides: a hundred million
weights of plain Linear layers would show nothing more.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import paddle
import torch
from paddle.vision import models as paddle_models

from examples.pairs.pair import Pair, images, pair

_OPERATORS = ("nms", "qnms")
_SCHEMA = "{}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_libraries: list[Any] = []  # the schemas live as long as the library object does

RELU_GAIN = 2.0**0.5
CLASSES = 10


def torchvision_models() -> Any:
    """torchvision.models, also on a CPU build of torch that cannot load torchvision's operators.

    Only when the import fails for that reason are the missing schemas defined; nothing calls them.
    """
    try:
        return importlib.import_module("torchvision.models")
    except RuntimeError as error:
        if "does not exist" not in str(error):
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    library = torch.library.Library("torchvision", "DEF")
    for operator in _OPERATORS:
        library.define(_SCHEMA.format(operator))
    _libraries.append(library)
    return importlib.import_module("torchvision.models")


def reference(name: str) -> Callable[[], torch.nn.Module]:
    return lambda: getattr(torchvision_models(), name)(weights=None, num_classes=CLASSES)


def port(name: str) -> Callable[[], paddle.nn.Layer]:
    return lambda: getattr(paddle_models, name)(pretrained=False, num_classes=CLASSES)


def _small_head(model: torch.nn.Module, width: int) -> torch.nn.Module:
    relu, dropout = torch.nn.ReLU(inplace=True), torch.nn.Dropout()
    model.classifier = torch.nn.Sequential(
        torch.nn.Linear(width, 64), relu, dropout, torch.nn.Linear(64, CLASSES)
    )
    return model


def _torch_vgg11() -> torch.nn.Module:
    vgg = torchvision_models().vgg
    return _small_head(vgg.VGG(vgg.make_layers(vgg.cfgs["A"]), num_classes=1, init_weights=False), 512 * 49)


def _paddle_vgg11() -> paddle.nn.Layer:
    vgg = paddle_models.vgg
    model = vgg.VGG(vgg.make_layers(vgg.cfgs["A"]), num_classes=1)
    model.classifier = paddle.nn.Sequential(
        paddle.nn.Linear(512 * 49, 64), paddle.nn.ReLU(), paddle.nn.Dropout(), paddle.nn.Linear(64, CLASSES)
    )
    return model


def _torch_alexnet() -> torch.nn.Module:
    model = torchvision_models().alexnet(weights=None, num_classes=CLASSES)
    for place, sizes in {1: (256 * 36, 64), 4: (64, 64), 6: (64, CLASSES)}.items():
        model.classifier[place] = torch.nn.Linear(*sizes)
    return model


def _paddle_alexnet() -> paddle.nn.Layer:
    model = paddle_models.alexnet(num_classes=CLASSES)
    model._fc6 = paddle.nn.Linear(256 * 36, 64)
    model._fc7 = paddle.nn.Linear(64, 64)
    model._fc8 = paddle.nn.Linear(64, CLASSES)
    return model


def _mended_alexnet() -> paddle.nn.Layer:
    """AlexNet whose dropout leaves evaluation alone, as torchvision's does."""
    model = _paddle_alexnet()
    model._drop1.mode = model._drop2.mode = "upscale_in_train"
    return model


def _mended_squeezenet() -> paddle.nn.Layer:
    """SqueezeNet with the padding, the rounding of sizes and the dropout of torchvision's."""
    model = port("squeezenet1_1")()
    model._conv = paddle.nn.Conv2D(3, 64, 3, stride=2)
    model._pool = paddle.nn.MaxPool2D(3, 2, ceil_mode=True)
    model._drop.mode = "upscale_in_train"
    return model


def _shipped(name: str, *tags: str, size: int = 64, **facts: Any) -> Pair:
    return pair(
        name, reference(name), port(name), images(2, size), "cnn", "library", *tags, gain=RELU_GAIN, **facts
    )


PAIRS: tuple[Pair, ...] = (
    _shipped("resnet18"),
    _shipped("resnet50", "slow"),
    _shipped("mobilenet_v2"),
    _shipped("mobilenet_v3_small"),
    _shipped("mobilenet_v3_large"),
    _shipped("densenet121", "slow"),
    pair(
        "squeezenet1_1", reference("squeezenet1_1"), _mended_squeezenet, images(2, 64), "cnn", "library",
        gain=RELU_GAIN,
    ),
    pair(
        "squeezenet1_1_shipped", reference("squeezenet1_1"), port("squeezenet1_1"), images(2, 64),
        "cnn", "library",
        gain=RELU_GAIN,
        expected="the first convolution pads by 1 (torchvision: 0); max pools round sizes down "
        "(torchvision: up); Dropout(mode='downscale_in_infer') halves in eval mode",
        guilty=("_conv", "_drop"),  # at this size the pools see no odd rest
        modes=("eval",),
    ),
    _shipped("shufflenet_v2_x1_0"),
    pair("vgg11", _torch_vgg11, _paddle_vgg11, images(2, 64), "cnn", "library", gain=RELU_GAIN),
    pair("alexnet", _torch_alexnet, _mended_alexnet, images(1, 224), "cnn", "library", gain=RELU_GAIN),
    pair(
        "alexnet_shipped", _torch_alexnet, _paddle_alexnet, images(1, 224), "cnn", "library",
        gain=RELU_GAIN,
        expected="Dropout(mode='downscale_in_infer') halves the activations in eval mode",
        guilty=("_drop1", "_drop2"),
        modes=("eval",),
    ),
)  # fmt: skip
