"""How weights begin: distributions are compared, defaults of both frameworks known, no alarm on equals."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import EmptyComparisonError, InputError
from tests.pairs.vision import torchvision_models

initializer = paddle.nn.initializer


class TorchNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(8, 16, 3)
        self.norm = torch.nn.BatchNorm2d(16)
        self.fc = torch.nn.Linear(64, 32)
        self.table = torch.nn.Embedding(50, 16)


def like_torch(layer: Any, fan_in: int) -> Any:
    bound = fan_in**-0.5
    initializer.Uniform(-bound, bound)(layer.weight)
    initializer.Uniform(-bound, bound)(layer.bias)
    return layer


class PaddleNet(paddle.nn.Layer):
    """Begins as the torch model does, but for what a test changes."""

    def __init__(self, change: Callable[[Any], None] = lambda net: None) -> None:
        super().__init__()
        self.conv = like_torch(paddle.nn.Conv2D(8, 16, 3), 72)
        self.norm = paddle.nn.BatchNorm2D(16)
        self.fc = like_torch(paddle.nn.Linear(64, 32), 64)
        self.table = paddle.nn.Embedding(50, 16)
        initializer.Normal(0.0, 1.0)(self.table.weight)
        change(self)


def test_a_port_that_begins_alike_is_the_same() -> None:
    report = pf.compare_init(TorchNet, PaddleNet)
    assert report.ok, report
    assert report.coverage.count("parameters") == 7


DEFAULTS = {"conv.weight": "Kaiming normal", "fc.weight": "Xavier uniform", "table.weight": "Xavier uniform"}


class PaddleDefaults(paddle.nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.conv = paddle.nn.Conv2D(8, 16, 3)
        self.norm = paddle.nn.BatchNorm2D(16)
        self.fc = paddle.nn.Linear(64, 32)
        self.table = paddle.nn.Embedding(50, 16)


def test_the_defaults_of_both_frameworks_are_told_by_name() -> None:
    report = pf.compare_init(TorchNet, PaddleDefaults)
    found = {each.port.path: each.cause for each in report.divergences if each.port and each.cause}
    assert found.keys() == {"conv.weight", "conv.bias", "fc.weight", "fc.bias", "table.weight"}
    for path, name in DEFAULTS.items():
        assert f"{name} (std" in found[path].message, found[path].message
        assert "the default of paddle's" in found[path].message
    assert "Kaiming uniform, a=√5 (std" in found["fc.weight"].message
    assert "the default of torch's Linear" in found["fc.weight"].message
    assert found["fc.weight"].code == "init.scale"
    assert found["conv.weight"].code == "init.distribution"
    assert found["table.weight"].code == "init.distribution"
    assert {found["fc.bias"].code, found["conv.bias"].code} == {"init.bias"}
    assert "KaimingUniform(negative_slope=5**0.5" in found["fc.weight"].fix
    assert (
        found["fc.bias"].fix == "paddle.nn.initializer.Uniform(-0.125, 0.125)(port.fc.bias)"
    )  # 1 / sqrt(64)


def test_the_fixes_mend_it() -> None:
    """Every line is run on the port as it stands."""
    report = pf.compare_init(TorchNet, PaddleDefaults)
    lines = [each.cause.fix for each in report.divergences if each.cause]

    def mended() -> Any:
        port = PaddleDefaults()
        for line in lines:
            exec(line, {"paddle": paddle, "port": port})
        return port

    again = pf.compare_init(TorchNet, mended)
    assert again.ok, again


CHANGES: dict[str, tuple[Callable[[Any], None], str, str]] = {
    "scale": (lambda net: initializer.Normal(0.0, 0.5)(net.table.weight), "table.weight", "init.scale"),
    "a fifth too large": (
        lambda net: initializer.Normal(0.0, 1.2)(net.table.weight),
        "table.weight",
        "init.scale",
    ),
    "uniform": (
        lambda net: initializer.Uniform(-(3**0.5), 3**0.5)(net.table.weight),
        "table.weight",
        "init.distribution",
    ),
    "uniform from 0": (
        lambda net: initializer.Uniform(0, 1)(net.table.weight),
        "table.weight",
        "init.distribution",
    ),
    "bias": (lambda net: initializer.Constant(0.0)(net.fc.bias), "fc.bias", "init.bias"),
    "constant": (lambda net: initializer.Constant(0.0)(net.norm.weight), "norm.weight", "init.distribution"),
    "truncated": (
        lambda net: initializer.TruncatedNormal(0.0, 1.0, -1.0, 1.0)(net.table.weight),
        "table.weight",
        "init.distribution",
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_one_wrong_tensor_is_named_and_no_other(name: str) -> None:
    change, path, code = CHANGES[name]
    report = pf.compare_init(TorchNet, lambda: PaddleNet(change))
    assert [each.port.path for each in report.divergences if each.port] == [path]
    assert report.first is not None
    assert report.first.phase == "init"
    assert report.first.cause is not None
    assert report.first.cause.code == code


MODELS = [
    "resnet18", "resnet34", "squeezenet1_0", "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small",
    "mobilenet_v3_large", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5", "densenet121",
    "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "efficientnet_b0", "efficientnet_b1", "regnet_x_400mf",
    "regnet_y_400mf", "regnet_y_800mf", "googlenet",
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_no_alarm_on_a_model_against_itself(name: str) -> None:
    def make() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of googlenet, about its initialisation
            return getattr(torchvision_models, name)(num_classes=10)

    numbers = iter(range(1000, 2000))

    def other() -> Any:
        torch.manual_seed(next(numbers))  # other numbers of the same kind
        return make()

    report = pf.compare_init(make, other, seeds=2)
    assert report.ok, report


def test_what_only_one_side_has_is_left_out() -> None:
    class More(PaddleNet):
        def __init__(self) -> None:
            super().__init__()
            self.extra = paddle.nn.LayerNorm(7)

    report = pf.compare_init(TorchNet, More)
    assert report.ok, report
    assert "extra.weight (only the port has it)" in " ".join(str(report).split())


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(InputError, match="at least two are needed"):
        pf.compare_init(TorchNet, PaddleNet, seeds=1)
    with pytest.raises(InputError, match="compared with itself"):
        pf.compare_init(TorchNet, TorchNet)
    with pytest.raises(InputError, match="pass a function without arguments"):
        pf.compare_init(lambda x: TorchNet(), PaddleNet)
    with pytest.raises(EmptyComparisonError):
        pf.compare_init(torch.nn.ReLU, paddle.nn.ReLU)


def test_one_seed_for_everything() -> None:
    def numbers() -> list[float]:
        return [
            random.random(),
            float(np.random.rand()),
            float(torch.rand(1)),
            float(paddle.rand([1]).item()),
        ]

    assert pf.seed(7) == 7
    first = numbers()
    pf.seed(7)
    assert numbers() == first
    pf.seed(8)
    assert all(a != b for a, b in zip(numbers(), first, strict=True))
    with pytest.raises(InputError, match="a seed is a whole number"):
        pf.seed(-1)
