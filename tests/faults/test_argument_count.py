"""Layers that are right and are called with other arguments than the reference's."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from tests.faults.test_excuses import Attention, Decoder, TorchDecoder
from tests.faults.tools import numbers, own, seeded


class TorchTagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem, self.gru, self.head = nn.Linear(8, 8), nn.GRU(8, 6, batch_first=True), nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.gru(self.stem(x))[0])


class Tagger(pnn.Layer):
    def __init__(self, start: float | None) -> None:
        super().__init__()
        self.stem, self.gru, self.head = pnn.Linear(8, 8), pnn.GRU(8, 6), pnn.Linear(6, 4)
        self.start = start

    def forward(self, x: Any) -> Any:
        y = self.stem(x)
        if self.start is None:
            return self.head(self.gru(y)[0])
        return self.head(self.gru(y, paddle.full([1, 2, 6], self.start))[0])


def test_an_argument_too_many_is_blamed_on_the_code_that_gives_it() -> None:
    (divergence,) = own(parfocal.align(seeded(TorchTagger), Tagger(0.7), numbers(2, 5, 8)))
    assert divergence.port is not None
    assert divergence.port.path == ""
    assert divergence.cause is not None
    assert divergence.cause.code == "op.extra"
    assert divergence.cause.message == (
        "gru is given 1 [1, 2, 6] in the port and nothing of the kind in the reference"
    )
    assert divergence.cause.fix.startswith("return self.head(self.gru(y)[0])  # test_argument_count.py:")


@pytest.mark.parametrize("start", [None, 0.0])
def test_a_start_that_is_the_usual_one_is_right(start: float | None) -> None:
    assert parfocal.align(seeded(TorchTagger), Tagger(start), numbers(2, 5, 8)).ok


class Forgetful(Attention):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return super().forward(x, paddle.zeros([6, 6]) if mask is None else mask)


class ForgetfulDecoder(Decoder):
    def __init__(self) -> None:
        super().__init__(-np.inf)
        self.second = Forgetful()

    def forward(self, x: Any) -> Any:
        mask = paddle.triu(paddle.full([6, 6], self.masked), 1)
        return self.head(self.second(self.first(x, mask)))


def test_a_mask_that_is_not_passed_on_is_blamed_on_the_code_that_forgets_it() -> None:
    (divergence,) = own(parfocal.align(seeded(TorchDecoder), ForgetfulDecoder(), numbers(2, 6, 8)))
    assert divergence.port is not None
    assert divergence.port.path == ""
    assert divergence.cause is not None
    assert divergence.cause.code == "op.mask"
    assert divergence.cause.message == (
        "second is given 1 [6, 6] in the reference and nothing of the kind in the port"
    )
