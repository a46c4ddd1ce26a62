"""Sums of products by other ops on both sides, with factors of them in other places; and a fix that mends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.mending import Pair, build, reference_of
from tests.faults.test_fixes import Fault, aligned, cause_of, check_named_and_mended

REFERENCE = """
import math
import torch
import torch.nn as nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Conv1d(16, 48, 1)
        self.out = nn.Conv1d(16, 16, 1)

    def forward(self, x):
        batch, width, length = x.shape
        q, k, v = self.qkv(x).reshape(batch * 2, 24, length).split(8, dim=1)
        scale = 1 / math.sqrt(math.sqrt(8))
        weight = torch.softmax(torch.einsum("bct,bcs->bts", q * scale, k * scale), dim=-1)
        return x + self.out(torch.einsum("bts,bcs->bct", weight, v).reshape(batch, width, length))

def build():
    return Net()
"""
PORT = """
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Conv1D(16, 48, 1)
        self.out = nn.Conv1D(16, 16, 1)

    def forward(self, x):
        batch, width, length = x.shape
        q, k, v = paddle.split(self.qkv(x).reshape([batch * 2, 24, length]), 3, axis=1)
        scores = paddle.matmul(q, k, transpose_x=True)
        weight = F.softmax(scores * 8 ** -0.5, axis=-1)
        return x + self.out(paddle.matmul(v, weight, transpose_y=True).reshape([batch, width, length]))

def build():
    return Net()
"""
ATTENTION = Pair(REFERENCE, PORT, ((2, 16, 5),))
FAULTS = [
    Fault("scaled by the whole width", ATTENTION, "8 ** -0.5", "16 ** -0.5", "op.scale"),
    Fault("scaled by the width itself", ATTENTION, "8 ** -0.5", "0.125", "op.scale"),
    Fault(
        "softmax along queries", ATTENTION, "axis=-1)\n        return", "axis=1)\n        return", "op.axis"
    ),
    Fault("keys for values", ATTENTION, "paddle.matmul(v,", "paddle.matmul(k,", "op.order"),
]


def test_the_pair_is_right_without_a_fault(tmp_path: Path) -> None:
    fault = Fault("none", ATTENTION, "", "", "")
    assert aligned(reference_of(tmp_path, ATTENTION), build(tmp_path, "port", PORT), fault).ok


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_mistake_behind_a_sum_of_products_is_named_and_mended(fault: Fault, tmp_path: Path) -> None:
    check_named_and_mended(fault, tmp_path)


def test_a_root_is_told_as_exactly_as_it_is_known(tmp_path: Path) -> None:
    _, _, cause = cause_of(FAULTS[0], tmp_path)
    assert "0.3535534" in cause.message
    assert "0.25" in cause.message
