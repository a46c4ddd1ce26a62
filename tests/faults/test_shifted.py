"""Windows that are shifted, cut by a helper, mixed, put together by another one and shifted back."""

from __future__ import annotations

from pathlib import Path

import pytest

import parfocal as pf
from tests.faults.mending import Pair, apply_fix, build, reference_of

REFERENCE = """
import torch
from torch import nn


def cut(x, size):
    b, h, w, c = x.shape
    x = x.view(b, h // size, size, w // size, size, c)
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, size * size, c)


def joined(windows, size, h, w):
    x = windows.view(-1, h // size, w // size, size, size, windows.shape[-1])
    return x.permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, h, w, windows.shape[-1])


class Block(nn.Module):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift
        self.mix = nn.Linear(4, 4)
        self.out = nn.Linear(5, 5)

    def forward(self, x):
        b, h, w, c = x.shape
        y = torch.roll(x, shifts=(-self.shift, -self.shift), dims=(1, 2)) if self.shift else x
        y = self.mix(cut(y, 2).transpose(1, 2)).transpose(1, 2)
        y = joined(y, 2, h, w)
        if self.shift:
            y = torch.roll(y, shifts=(self.shift, self.shift), dims=(1, 2))
        y = y + x
        return self.out(y)


def build():
    return nn.Sequential(Block(0), Block(1), nn.Linear(5, 3))
"""
PORT = """
import paddle
from paddle import nn


def cut(x, size):
    b, h, w, c = x.shape
    x = x.reshape([b, h // size, size, w // size, size, c])
    return x.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, size * size, c])


def joined(windows, size, h, w):
    x = windows.reshape([-1, h // size, w // size, size, size, windows.shape[-1]])
    return x.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, h, w, windows.shape[-1]])


class Block(nn.Layer):
    def __init__(self, shift):
        super().__init__()
        self.shift = shift
        self.mix = nn.Linear(4, 4)
        self.out = nn.Linear(5, 5)

    def forward(self, x):
        b, h, w, c = x.shape
        y = paddle.roll(x, shifts=(-self.shift, -self.shift), axis=(1, 2)) if self.shift else x
        y = self.mix(cut(y, 2).transpose([0, 2, 1])).transpose([0, 2, 1])
        y = joined(y, 2, h, w)
        if self.shift:
            y = paddle.roll(y, shifts=(self.shift, self.shift), axis=(1, 2))
        y = y + x
        return self.out(y)


def build():
    return nn.Sequential(Block(0), Block(1), nn.Linear(5, 3))
"""
PAIR = Pair(REFERENCE, PORT, ((2, 6, 6, 5),))
BACK = (
    "        if self.shift:\n            y = paddle.roll(y, shifts=(self.shift, self.shift), axis=(1, 2))\n"
)


@pytest.mark.parametrize(
    ("right", "wrong", "code", "says"),
    [
        ("shifts=(-self.shift, -self.shift)", "shifts=(self.shift, self.shift)", "config.other",
         "shifts of roll is (-1, -1) in the reference, (1, 1) in the port"),
        ("roll(y, shifts=(self.shift, self.shift)", "roll(y, shifts=(-self.shift, -self.shift)",
         "config.other", "shifts of roll is (1, 1) in the reference, (-1, -1) in the port"),
        (BACK, "", "op.missing", "the reference applies roll"),
    ],
)  # fmt: skip
def test_the_shift_is_named_at_its_line_and_mended(
    tmp_path: Path, right: str, wrong: str, code: str, says: str
) -> None:
    text = PORT.replace(right, wrong)
    line = PORT[: PORT.index(right)].count("\n") + 1
    reference, port = reference_of(tmp_path, PAIR), build(tmp_path, "port", text)
    first = pf.align(reference, port, PAIR.inputs()).first
    assert first is not None
    assert first.cause is not None
    assert first.port is not None
    assert (first.port.path, first.port.line, first.cause.code) == ("1", line, code)
    assert says in first.cause.message
    mended = apply_fix(tmp_path, text, port, reference, first.cause.fix)
    assert pf.align(reference, mended, PAIR.inputs()).ok


def test_a_step_that_is_missing_in_a_helper_is_missing_there(tmp_path: Path) -> None:
    text = PORT.replace("x.transpose([0, 1, 3, 2, 4, 5]).reshape([-1, h, w", "x.reshape([-1, h, w")
    reference, port = reference_of(tmp_path, PAIR), build(tmp_path, "port", text)
    first = pf.align(reference, port, PAIR.inputs()).first
    assert first is not None
    assert first.port is not None
    assert first.port.line == PORT[: PORT.index("def joined")].count("\n") + 3


def test_nothing_is_wrong_with_the_port_as_it_is(tmp_path: Path) -> None:
    assert pf.align(reference_of(tmp_path, PAIR), build(tmp_path, "port", PORT), PAIR.inputs()).ok
