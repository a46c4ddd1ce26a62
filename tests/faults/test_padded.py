"""Layers that are given another size, or give one: the code around them is looked at, or their settings."""

from __future__ import annotations

from pathlib import Path

import pytest

import parfocal as pf
from tests.faults.mending import Pair, apply_fix, build, reference_of

REFERENCE = """
import torch
from torch import nn
from torch.nn import functional as F


class Standardised(nn.Conv2d):
    def forward(self, x):
        variance, mean = torch.var_mean(self.weight, dim=[1, 2, 3], keepdim=True, unbiased=False)
        weight = (self.weight - mean) / torch.sqrt(variance + 1e-6)
        return F.conv2d(x, weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Standardised(3, 6, 3, padding=1)
        self.second = Standardised(6, 6, 3, stride=2, padding=2, dilation=2)
        self.third = nn.Conv2d(6, 5, 3, stride=2)
        self.unfold = nn.Unfold(3, padding=1, stride=2)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        y = F.pad(self.second(x), [0, 1, 0, 1])
        return self.third(y), self.unfold(x), self.first(F.adaptive_max_pool2d(x[:, :3], (3, 4)))


def build():
    return Net()
"""
PORT = """
import paddle
from paddle import nn
from paddle.nn import functional as F


class Standardised(nn.Conv2D):
    def forward(self, x):
        mean = paddle.mean(self.weight, axis=[1, 2, 3], keepdim=True)
        variance = paddle.var(self.weight, axis=[1, 2, 3], keepdim=True, unbiased=False)
        weight = (self.weight - mean) / paddle.sqrt(variance + 1e-6)
        return F.conv2d(x, weight, self.bias, self._stride, self._padding, self._dilation, self._groups)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first = Standardised(3, 6, 3, padding=1)
        self.second = Standardised(6, 6, 3, stride=2, padding=2, dilation=2)
        self.third = nn.Conv2D(6, 5, 3, stride=2)
        self.unfold = nn.Unfold(3, paddings=1, strides=2)

    def forward(self, x):
        x = F.tanh(self.first(x))
        y = F.pad(self.second(x), [0, 1, 0, 1])
        return self.third(y), self.unfold(x), self.first(F.adaptive_max_pool2d(x[:, :3], (3, 4)))


def build():
    return Net()
"""
PAIR = Pair(REFERENCE, PORT, ((2, 3, 16, 16),))


def divergence_with(folder: Path, text: str) -> pf.Report:
    return pf.align(reference_of(folder, PAIR), build(folder, "port", text), PAIR.inputs())


@pytest.mark.parametrize(
    ("right", "wrong", "path", "code", "says"),
    [
        # the result has the same size, and only its borders differ
        ("[0, 1, 0, 1]", "[1, 1, 1, 1]", "", "config.padding", "((0, 0), (0, 0), (0, 1), (0, 1)) in the ref"),
        ("(3, 4)))", "(4, 3)))", "", "config.other",
         "output_size of adaptive_max_pool2d is (3, 4) in the reference, (4, 3) in the port"),
        ("strides=2", "strides=1", "unfold", "config.stride", "stride is (2, 2) in the reference"),
        (", unbiased=False", "", "first", "config.other", "unbiased of var is False in the reference"),
        ("paddle.var(self.weight, axis=[1, 2, 3]", "paddle.var(self.weight, axis=[2, 3]", "first", "op.axis",
         "axis of var is (1, 2, 3) in the reference, (2, 3) in the port"),
        ("padding=2, dilation=2", "padding=1", "second", "config.padding",
         "dilation of conv2d is (2, 2) in the reference, (1, 1) in the port"),
        ("6, 3, padding=1)", "6, 3, padding=1, stride=2)", "first", "config.stride",
         "stride of conv2d is (1, 1) in the reference, (2, 2) in the port"),
    ],
)  # fmt: skip
def test_the_setting_is_named_where_it_is(
    tmp_path: Path, right: str, wrong: str, path: str, code: str, says: str
) -> None:
    report = divergence_with(tmp_path, PORT.replace(right, wrong))
    first = report.first
    assert first is not None
    assert first.port is not None
    assert first.cause is not None
    assert (first.phase, first.port.path, first.cause.code) == ("forward", path, code)
    assert says in first.cause.message


def test_a_wrong_padding_is_mended_by_the_line_that_is_told(tmp_path: Path) -> None:
    text = PORT.replace("[0, 1, 0, 1]", "[1, 1, 1, 1]")
    reference, port = reference_of(tmp_path, PAIR), build(tmp_path, "port", text)
    first = pf.align(reference, port, PAIR.inputs()).first
    assert first is not None
    assert first.cause is not None
    mended = apply_fix(tmp_path, text, port, reference, first.cause.fix)
    assert pf.align(reference, mended, PAIR.inputs()).ok


@pytest.mark.parametrize(
    ("right", "other"),
    [
        ("", ""),
        # the layer pads what the reference's code pads
        ("F.pad(self.second(x), [0, 1, 0, 1])", "self.second(x)"),
    ],
)
def test_padding_by_the_layer_or_by_the_code_around_it_is_the_same(
    tmp_path: Path, right: str, other: str
) -> None:
    text = PORT.replace(right, other) if right else PORT
    text = (
        text if not right else text.replace("6, 5, 3, stride=2)", "6, 5, 3, stride=2, padding=[0, 1, 0, 1])")
    )
    assert divergence_with(tmp_path, text).ok
