"""Two mistakes in one module's code: the second is never said to follow from the first."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

WIDTH, HEADS = 16, 2
EACH = WIDTH // HEADS
X = np.random.default_rng(0).normal(size=(2, 5, WIDTH)).astype("float32")


class TorchBlock(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = torch.nn.Linear(WIDTH, WIDTH)
        self.fc1 = torch.nn.Linear(WIDTH, 2 * WIDTH)
        self.fc2 = torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(batch, length, 3, HEADS, EACH).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * EACH**-0.5
        mask = torch.triu(torch.full((length, length), float("-inf")), 1)
        weights = (scores + mask).softmax(-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.fc2(torch.nn.functional.gelu(self.fc1(x)))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, scale=EACH**-0.5, hidden=float("-inf"), approximate=False):
        super().__init__()
        self.scale, self.hidden, self.approximate = scale, hidden, approximate
        self.norm = paddle.nn.LayerNorm(WIDTH)
        self.qkv = paddle.nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = paddle.nn.Linear(WIDTH, WIDTH)
        self.fc1 = paddle.nn.Linear(WIDTH, 2 * WIDTH)
        self.fc2 = paddle.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape([batch, length, 3, HEADS, EACH]).transpose([2, 0, 3, 1, 4])
        scores = q @ k.transpose([0, 1, 3, 2])
        if self.scale:
            scores = scores * self.scale
        mask = paddle.triu(paddle.full([length, length], self.hidden), 1)
        weights = paddle.nn.functional.softmax(scores + mask, -1)
        x = x + self.proj((weights @ v).transpose([0, 2, 1, 3]).reshape([batch, length, WIDTH]))
        return x + self.fc2(paddle.nn.functional.gelu(self.fc1(x), approximate=self.approximate))


def aligned(**mistakes):
    torch.manual_seed(0)
    reference = torch.nn.Sequential(*(TorchBlock() for _ in range(2)), torch.nn.Linear(WIDTH, 3))
    port = paddle.nn.Sequential(*(PaddleBlock(**mistakes) for _ in range(2)), paddle.nn.Linear(WIDTH, 3))
    return pf.align(reference, port, X)


def own_places(report):
    """What is wrong by itself, forward: the tensors that the blocks' code makes."""
    return [each.what for each in report.divergences if each.phase == "forward" and not each.inherited]


@pytest.mark.parametrize(
    "mistakes",
    [
        {"scale": WIDTH**-0.5, "approximate": True},
        {"scale": None, "hidden": -2.0, "approximate": True},
    ],
    ids=["another scale", "no scale and a soft mask"],
)
def test_a_second_mistake_of_each_block_is_its_own(mistakes):
    report = aligned(**mistakes)
    found = own_places(report)
    for block in "01":
        assert any(f"input 0 of {block}.proj" in what for what in found), found
        assert any(f"input 0 of {block}.fc2" in what for what in found), found
    codes = {each.cause.code for each in report.divergences if each.cause is not None}
    assert "op.approximation" in codes


def test_what_is_right_with_the_mistake_mended_is_no_mistake_of_its_own():
    report = aligned(scale=WIDTH**-0.5)
    assert {what.partition(",")[0] for what in own_places(report)} == {
        "input 0 of 0.proj",
        "input 0 of 1.proj",
    }


class TorchResidual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.norm, self.proj = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = torch.nn.Linear(WIDTH, 2 * WIDTH), torch.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        scores = torch.softmax(self.query(x) @ self.key(x).transpose(-1, -2) / WIDTH**0.5, -1)
        x = x + self.proj(scores @ x)
        given = self.norm(x)
        return x + self.outer(torch.nn.functional.gelu(self.inner(given)))


class PaddleResidual(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.query, self.key = paddle.nn.Linear(WIDTH, WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.norm, self.proj = paddle.nn.LayerNorm(WIDTH), paddle.nn.Linear(WIDTH, WIDTH)
        self.inner, self.outer = paddle.nn.Linear(WIDTH, 2 * WIDTH), paddle.nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose([0, 2, 1]) / EACH**0.5
        x = x + self.proj(paddle.nn.functional.softmax(scores, axis=1) @ x)
        given = self.norm(x)
        return given + self.outer(paddle.nn.functional.gelu(self.inner(given), approximate=True))


def test_another_order_on_the_line_of_a_mistake_is_its_own():
    torch.manual_seed(0)
    report = pf.align(TorchResidual(), PaddleResidual(), X)
    causes = [each.cause for each in report.divergences if each.cause is not None and not each.inherited]
    assert "op.approximation" in [each.code for each in causes]
    assert any("return x + self.outer" in each.fix for each in causes)
