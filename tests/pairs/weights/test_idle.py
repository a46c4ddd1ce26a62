"""Weights that have no counterpart and no part in the run: listed, not refused, and no divergence."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal as pf
from parfocal.errors import TransferError
from tests.pairs.weights.tools import randomise, state_bytes

X = np.random.default_rng(1).standard_normal((4, 6)).astype("float32")


class TorchStage(nn.Module):
    """A layer with a head that only training uses; ``secretly``: its weight is used without a call."""

    def __init__(self, head: bool, secretly: bool = False) -> None:
        super().__init__()
        self.secretly = secretly
        self.first = nn.Linear(6, 6)
        if head:
            self.aux = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))

    def forward(self, x: torch.Tensor) -> Any:
        if hasattr(self, "aux") and self.secretly:
            x = x + x @ self.aux[0].weight.T @ self.aux[0].weight
        x = torch.tanh(self.first(x))
        return (x, self.aux(x)) if self.training and hasattr(self, "aux") else x


class PaddleStage(pnn.Layer):
    def __init__(self, head: bool) -> None:
        super().__init__()
        self.first = pnn.Linear(6, 6)
        if head:
            self.aux = pnn.Sequential(pnn.Linear(6, 4), pnn.BatchNorm1D(4), pnn.Linear(4, 3))

    def forward(self, x: paddle.Tensor) -> Any:
        x = paddle.tanh(self.first(x))
        return (x, self.aux(x)) if self.training and hasattr(self, "aux") else x


class TorchNet(nn.Module):
    def __init__(self, head: bool, secretly: bool = False) -> None:
        super().__init__()
        self.stage, self.norm, self.last = TorchStage(head, secretly), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> Any:
        x = self.stage(x)
        x, more = x if isinstance(x, tuple) else (x, None)
        x = self.last(self.norm(x))
        return x if more is None else x + more


class PaddleNet(pnn.Layer):
    def __init__(self, head: bool, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.stage, self.norm, self.last = (
            PaddleStage(head),
            pnn.LayerNorm(6, epsilon=epsilon),
            pnn.Linear(6, 3),
        )

    def forward(self, x: paddle.Tensor) -> Any:
        x = self.stage(x)
        x, more = x if isinstance(x, tuple) else (x, None)
        x = self.last(self.norm(x))
        return x if more is None else x + more


HEAD = {"stage.aux.0.weight", "stage.aux.0.bias", "stage.aux.1.weight", "stage.aux.1.bias",
        "stage.aux.2.weight", "stage.aux.2.bias"}  # fmt: skip


@pytest.mark.parametrize("where", ["reference", "port"])
def test_the_rest_is_copied_and_the_idle_is_listed(where: str) -> None:
    reference = randomise(TorchNet(where == "reference"), 1)
    port = randomise(PaddleNet(where == "port"), 2)
    before = state_bytes(reference), state_bytes(port)
    plan = pf.transfer(reference, port, X)
    assert plan.complete
    assert plan.verified
    idle, none = (plan.idle_reference, plan.idle_port)[:: 1 if where == "reference" else -1]
    assert {item.path for item in idle} > HEAD
    assert not none
    assert f"idle in the {where}, not copied: stage.aux.0.weight" in str(plan)
    assert state_bytes(reference) == before[0]
    after = state_bytes(port)
    assert all(after[name] == before[1][name] for name in after if ".aux." in name)


@pytest.mark.parametrize("where", ["reference", "port"])
def test_without_inputs_it_is_refused(where: str) -> None:
    reference = randomise(TorchNet(where == "reference"), 1)
    port = randomise(PaddleNet(where == "port"), 2)
    with pytest.raises(TransferError, match=f"unmatched in the {where}: stage.aux.0.weight"):
        pf.transfer(reference, port)


def test_a_weight_that_is_used_without_a_call_is_not_idle() -> None:
    reference, port = randomise(TorchNet(True, secretly=True), 1), randomise(PaddleNet(False), 2)
    before = state_bytes(reference)
    with pytest.raises(TransferError, match=r"unmatched in the reference: stage\.aux\.0\.weight"):
        pf.transfer(reference, port, X)
    assert state_bytes(reference) == before


@pytest.mark.parametrize("backward", [True, False])
@pytest.mark.parametrize("where", ["reference", "port"])
def test_align_tells_the_real_difference_first(where: str, backward: bool) -> None:
    reference = randomise(TorchNet(where == "reference"), 1)
    port = randomise(PaddleNet(where == "port", epsilon=1e-3), 2)
    report = pf.align(reference, port, X, backward=backward)
    assert (report.first.port.path, report.first.cause.code) == ("norm", "config.epsilon")
    idle = [each for each in report.findings if each.code == "weight.idle"]
    (found,) = [each for each in idle if "stage.aux (8 tensors)" in each.message]
    assert (found.reference or found.port).path == "stage.aux"
    assert not [each for each in report.divergences if each.phase == "weights"]


def test_a_correct_port_without_the_head_is_the_same() -> None:
    report = pf.align(randomise(TorchNet(True), 1), randomise(PaddleNet(False), 2), X)
    assert report.ok, str(report)


def test_in_training_the_head_has_a_part() -> None:
    report = pf.align(randomise(TorchNet(True), 1), randomise(PaddleNet(False), 2), X, mode="train")
    assert not report.ok
    assert [each for each in report.divergences if each.cause and each.cause.code == "weight.missing"]
