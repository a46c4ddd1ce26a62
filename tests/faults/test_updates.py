"""Buffers that a module's own code moves on: the line that does it wrongly, and the number behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

import parfocal as pf
from tests.faults.mending import Pair, apply_fix, build, reference_of

REFERENCE = """
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, channels, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_square", torch.ones(channels))
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x):
        mean, square = x.mean(dim=(0, 2)), x.pow(2).mean(dim=(0, 2))
        with torch.no_grad():
            self.running_mean.mul_(1 - self.momentum).add_(self.momentum * mean)
            self.running_square.mul_(1 - self.momentum).add_(self.momentum * square)
            self.seen.add_(1.0)
        return (x - mean[None, :, None]) / square[None, :, None].sqrt()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(3, 10, 3)
        self.norm = Norm(10)
        self.head = nn.Conv1d(10, 4, 1)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)))


def build():
    return Net()
"""
PORT = """
import paddle
from paddle import nn


class Norm(nn.Layer):
    def __init__(self, channels, momentum=0.1):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("running_mean", paddle.zeros([channels]))
        self.register_buffer("running_square", paddle.ones([channels]))
        self.register_buffer("seen", paddle.zeros([1]))

    def forward(self, x):
        mean, square = x.mean(axis=(0, 2)), x.pow(2).mean(axis=(0, 2))
        keep = 1 - self.momentum
        with paddle.no_grad():
            self.running_mean.set_value(keep * self.running_mean + self.momentum * mean)
            self.running_square.set_value(keep * self.running_square + self.momentum * square)
            self.seen.set_value(self.seen + 1.0)
        return (x - mean.unsqueeze(-1)) / square.unsqueeze(-1).sqrt()


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1D(3, 10, 3)
        self.norm = Norm(10)
        self.head = nn.Conv1D(10, 4, 1)

    def forward(self, x):
        return self.head(self.norm(self.conv(x)))


def build():
    return Net()
"""
PAIR = Pair(REFERENCE, PORT, ((4, 3, 9),))
MEAN = "keep * self.running_mean + self.momentum * mean"
SQUARE = "keep * self.running_square + self.momentum * square"


@pytest.mark.parametrize(
    ("right", "wrong", "code", "says"),
    [
        ("momentum=0.1", "momentum=0.9", "buffer.momentum", "momentum of norm is 0.9 in the port"),
        (MEAN, "self.momentum * self.running_mean + keep * mean", "buffer.momentum", "9 times as much"),
        (SQUARE, "keep * self.running_square + self.momentum * square.sqrt()", "op.extra", "sqrt"),
        (SQUARE, "keep * self.running_square + square", "op.scale", "0.1"),
    ],
)
def test_a_wrong_update_is_named_and_mended(
    tmp_path: Path, right: str, wrong: str, code: str, says: str
) -> None:
    text = PORT.replace(right, wrong)
    reference, port = reference_of(tmp_path, PAIR), build(tmp_path, "port", text)
    report = pf.align(reference, port, PAIR.inputs(), mode="train")
    (divergence,) = (each for each in report.divergences if not each.inherited)
    assert report.first is divergence
    assert (divergence.phase, divergence.port and divergence.port.path) == ("buffer", "norm")
    assert divergence.cause is not None
    assert divergence.cause.code == code
    assert says in divergence.cause.message
    mended = apply_fix(tmp_path, text, port, reference, divergence.cause.fix)
    assert pf.align(reference, mended, PAIR.inputs(), mode="train").ok


def test_a_right_update_is_no_divergence(tmp_path: Path) -> None:
    report = pf.align(
        reference_of(tmp_path, PAIR), build(tmp_path, "port", PORT), PAIR.inputs(), mode="train"
    )
    assert report.ok


def test_a_share_that_would_spoil_another_buffer_is_not_told(tmp_path: Path) -> None:
    """The number is right for the one buffer and wrong for the other: only a line is."""
    text = PORT.replace(MEAN, "self.momentum * self.running_mean + keep * mean")
    reference, port = reference_of(tmp_path, PAIR), build(tmp_path, "port", text)
    cause = pf.align(reference, port, PAIR.inputs(), mode="train").divergences[0].cause
    assert cause is not None
    assert "momentum = 0.9" not in cause.fix
