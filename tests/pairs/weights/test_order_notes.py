"""Layers that both sides fuse, with their parts in another order: the plan says so."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf


class Reference(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = torch.nn.Linear(8, 24)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return torch.softmax(q @ k.transpose(-1, -2), dim=-1) @ v


class Port(paddle.nn.Layer):
    def __init__(self, order):
        super().__init__()
        self.qkv = paddle.nn.Linear(8, 24)
        self.order = order

    def forward(self, x):
        parts = self.qkv(x).chunk(3, axis=-1)
        q, k, v = (parts[self.order.index(name)] for name in "qkv")
        return paddle.nn.functional.softmax(q @ k.transpose([0, 2, 1]), axis=-1) @ v


@pytest.mark.parametrize(("order", "noted"), [("vqk", True), ("qkv", False)])
def test_parts_in_another_order_are_noted(order, noted):
    x = np.random.default_rng(0).standard_normal((2, 5, 8)).astype("float32")
    plan = pf.transfer(Reference(), Port(order), inputs=x)
    assert plan.verified
    notes = [
        note for note in plan.notes if note.startswith("the rows of qkv lie otherwise in the port: 3 parts")
    ]
    assert bool(notes) is noted
