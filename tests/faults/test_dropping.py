"""Dropout is off while two models are compared; that it would work differently is said all the same."""

from __future__ import annotations

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


def pair(probability: float = 0.2, other: float = 0.2) -> tuple[torch.nn.Module, paddle.nn.Layer]:
    reference = seeded(
        lambda: nn.Sequential(nn.Linear(12, 8), nn.Dropout(probability), nn.ReLU(), nn.Dropout(0.1))
    )
    port = pnn.Sequential(pnn.Linear(12, 8), pnn.Dropout(other), pnn.ReLU(), pnn.Dropout(0.1))
    port.eval()
    return reference, port


def test_one_dropout_left_in_train_mode() -> None:
    reference, port = pair()
    port[3].train()
    report = align(reference, port, numbers(4, 12), mode="keep")
    cause = the_cause(report)
    assert cause.code == "mode.training"
    assert cause.message == "3 (Dropout) is in eval mode in the reference, in train mode in the port"
    assert cause.fix == "port[3].eval()"
    mend(port, cause.fix)
    assert align(reference, port, numbers(4, 12), mode="keep").ok


def test_a_dropout_that_drops_nothing_may_be_in_any_mode() -> None:
    reference, port = pair(0.0, 0.0)
    port[1].train()
    assert align(reference, port, numbers(4, 12), mode="keep").ok


@pytest.mark.parametrize("mode", ["eval", "train", "keep"])
def test_the_same_dropout_is_not_mentioned(mode: str) -> None:
    report = align(*pair(), numbers(4, 12), mode=mode)
    assert report.ok
    assert not [finding for finding in report.findings if finding.code == "random.dropout"]


@pytest.mark.parametrize("mode", ["train", "keep"])
def test_another_probability(mode: str) -> None:
    reference, port = pair(0.2, 0.5)
    reference.train()
    port.train()
    cause = the_cause(align(reference, port, numbers(4, 12), mode=mode))
    assert cause.code == "random.dropout"
    assert cause.message == "1 (Dropout) drops with probability 0.2 in the reference, 0.5 in the port"
    exec(cause.fix, {"port": port})
    assert align(reference, port, numbers(4, 12), mode=mode).ok


def test_in_eval_another_probability_is_a_finding() -> None:
    report = align(*pair(0.2, 0.5), numbers(4, 12))
    assert report.ok
    (finding,) = (finding for finding in report.findings if finding.code == "random.dropout")
    assert "0.2 in the reference, 0.5 in the port; nothing is dropped" in finding.message


def test_with_one_dropout_less_no_probability_is_compared() -> None:
    reference, _ = pair(0.2)
    port = pnn.Sequential(pnn.Linear(12, 8), pnn.ReLU(), pnn.Dropout(0.5))
    assert align(reference, port, numbers(4, 12), mode="train").ok


def test_what_is_ignored_may_drop_as_it_likes() -> None:
    reference, port = pair(0.2, 0.5)
    assert align(reference, port, numbers(4, 12), mode="train", ignore=["1"]).ok


def test_a_recurrent_layer_drops_inside() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 5, 2, dropout=0.3, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0]

    class PaddleLast(pnn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = pnn.LSTM(6, 5, 2, dropout=0.1)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return self.lstm(x)[0]

    report = align(seeded(Last), PaddleLast(), numbers(3, 4, 6), mode="train")
    assert [each.cause.code for each in own(report) if each.cause] == ["random.dropout"]
