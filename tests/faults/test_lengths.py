"""Sequences of several lengths: packed in the reference, and run over to the end in the port or not."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.faults.tools import align, numbers, own, seeded, the_cause

SORTED, MIXED = np.array([6, 4, 3, 2]), np.array([2, 6, 3, 5])


class Packed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.run = torch.nn.GRU(5, 7, batch_first=True, bidirectional=True)
        self.head = torch.nn.Linear(14, 3)

    def forward(self, x: Any, lengths: Any) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return self.head(pad_packed_sequence(self.run(packed)[0], batch_first=True)[0])


class Port(paddle.nn.Layer):
    def __init__(self, told: bool, factor: float = 1.0) -> None:
        super().__init__()
        self.run = paddle.nn.GRU(5, 7, direction="bidirect")
        self.head = paddle.nn.Linear(14, 3)
        self.told, self.factor = told, factor

    def forward(self, x: Any, lengths: Any) -> Any:
        if self.told:
            hidden = self.run(x, sequence_length=lengths)[0]
        else:
            hidden = self.run(x)[0]
        return self.head(hidden * self.factor)


@pytest.mark.parametrize("lengths", [SORTED, MIXED], ids=["sorted", "mixed"])
def test_lengths_that_are_not_passed_are_missing(lengths: Any) -> None:
    cause = the_cause(align(seeded(Packed), Port(told=False), (numbers(4, 6, 5), lengths)))
    assert cause.code == "op.missing"
    told = ", ".join(map(str, lengths))
    assert f"the sequences that run (GRU) takes are {told} long in the reference" in cause.message
    assert "self.run(x, sequence_length=lengths)[0]" in cause.fix


def test_lengths_that_are_passed_are_right() -> None:
    assert align(seeded(Packed), Port(told=True), (numbers(4, 6, 5), MIXED)).ok


def test_another_mistake_beside_packing_is_no_matter_of_lengths() -> None:
    report = align(seeded(Packed), Port(told=True, factor=0.5), (numbers(4, 6, 5), MIXED))
    assert not report.ok
    assert all("sequences" not in d.cause.message for d in own(report) if d.cause is not None)
