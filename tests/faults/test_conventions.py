"""What the frameworks mean by the same layer and the same settings: a port must translate it."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, numbers, own, seeded, the_cause

MASK = np.triu(np.ones((6, 6), bool), 2)  # what torch is not to look at


class TorchAttention(nn.Module):
    def __init__(self, batch_first: bool = True) -> None:
        super().__init__()
        self.first, self.attend = nn.Linear(8, 8), nn.MultiheadAttention(8, 2, batch_first=batch_first)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        x = self.first(x)
        return self.attend(x, x, x, attn_mask=mask)[0]


class Attention(pnn.Layer):
    def __init__(self, translate: Any) -> None:
        super().__init__()
        self.first, self.attend = pnn.Linear(8, 8), pnn.MultiHeadAttention(8, 2)
        self.translate = translate

    def forward(self, x: paddle.Tensor, mask: paddle.Tensor | None = None) -> paddle.Tensor:
        return self.translate(self.attend, self.first(x), mask)


def _as_it_is(attend: Any, x: Any, mask: Any) -> Any:
    return attend(x, x, x, attn_mask=mask)


def _turned_round(attend: Any, x: Any, mask: Any) -> Any:
    return attend(x, x, x, attn_mask=~mask)


def _swapped(attend: Any, x: Any, mask: Any) -> Any:
    y = x.transpose([1, 0, 2])
    return attend(y, y, y).transpose([1, 0, 2])


def test_a_boolean_mask_means_the_opposite() -> None:
    cause = the_cause(align(seeded(TorchAttention), Attention(_as_it_is), (numbers(3, 6, 8), MASK)))
    assert cause.code == "op.mask"
    assert "boolean_mask is 'drop' in the reference, 'keep' in the port" in cause.message
    assert "pass ~mask to port.attend in test_conventions.py:" in cause.fix


def test_a_mask_that_is_turned_round_is_right() -> None:
    assert align(seeded(TorchAttention), Attention(_turned_round), (numbers(3, 6, 8), MASK)).ok


def test_batch_and_time_of_a_layer_that_cannot_be_told() -> None:
    reference = seeded(lambda: TorchAttention(batch_first=False))
    cause = the_cause(align(reference, Attention(_as_it_is), numbers(6, 6, 8)))
    assert cause.code == "config.other"
    assert "batch_first is False in the reference, True in the port" in cause.message
    assert cause.fix.startswith("swap axes 0 and 1 of what port.attend takes and gives in test_conventions")


def test_axes_that_are_swapped_around_the_layer_are_right() -> None:
    reference = seeded(lambda: TorchAttention(batch_first=False))
    assert align(reference, Attention(_swapped), numbers(6, 6, 8)).ok


def test_of_a_container_the_user_is_told_the_outermost_layer() -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 12, 0.0)))
    port = pnn.Sequential(pnn.Linear(8, 8), pnn.TransformerEncoderLayer(8, 2, 12, 0.0))
    first = own(align(reference, port, numbers(5, 5, 8)))[0]
    assert first.cause is not None
    assert "batch_first is False in the reference" in first.cause.message
    assert "what port[1] takes and gives" in first.cause.fix


class TorchRows(nn.Module):
    def __init__(self, row: float) -> None:
        super().__init__()
        self.rows, self.last = nn.Embedding(9, 4, padding_idx=0), nn.Linear(4, 3)
        with torch.no_grad():
            self.rows.weight[0] = row

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.last(self.rows(ids))


class Rows(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.rows, self.last = pnn.Embedding(9, 4, padding_idx=0), pnn.Linear(4, 3)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.last(self.rows(ids))


IDS = np.array([[0, 1, 2, 3], [4, 5, 0, 8]])


def test_the_row_of_the_padding() -> None:
    cause = the_cause(align(seeded(lambda: TorchRows(1.0)), Rows(), IDS))
    assert cause.code == "config.other"
    assert "row 0 is used as it is stored in the reference, and is always 0 in the port" in cause.message


def test_a_row_of_zeros_is_the_same_in_both() -> None:
    assert align(seeded(lambda: TorchRows(0.0)), Rows(), IDS).ok


def _pooled(module: Any, pool: Any) -> Any:
    convolution = module.Conv2d(3, 4, 1) if module is nn else module.Conv2D(3, 4, 1)
    return module.Sequential(convolution, pool)


@pytest.mark.parametrize(("extent", "right"), [(5, False), (6, True)])
def test_a_window_that_begins_in_the_padding(extent: int, right: bool) -> None:
    reference = seeded(lambda: _pooled(nn, nn.MaxPool2d(2, 2, 1, ceil_mode=True)))
    report = align(
        reference, _pooled(pnn, pnn.MaxPool2D(2, 2, 1, ceil_mode=True)), numbers(2, 3, extent, extent)
    )
    assert report.ok == right
    if not right:
        cause = the_cause(report)
        assert cause.code == "op.ceil_mode"
        assert "1 gives [4, 4] in the port, [3, 3] in the reference" in cause.message
        assert cause.fix == "cut what port[1] gives: [:, :, :3, :3]"


class TorchPacked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.run, self.last = nn.GRU(4, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        given, _ = nn.utils.rnn.pad_packed_sequence(self.run(packed)[0], batch_first=True)
        return self.last(given)


class Padded(pnn.Layer):
    def __init__(self, told: bool) -> None:
        super().__init__()
        self.run, self.last = pnn.GRU(4, 5), pnn.Linear(5, 3)
        self.told = told

    def forward(self, x: paddle.Tensor, lengths: paddle.Tensor) -> paddle.Tensor:
        given, _ = self.run(x, sequence_length=lengths) if self.told else self.run(x)
        return self.last(given)


LENGTHS = np.array([5, 3, 2])


def test_a_packed_sequence_and_lengths_are_the_same() -> None:
    report = align(seeded(TorchPacked), Padded(told=True), (numbers(3, 5, 4), LENGTHS))
    assert report.ok, str(report)


def test_lengths_that_are_not_passed_show_in_what_the_code_gives() -> None:
    first = own(align(seeded(TorchPacked), Padded(told=False), (numbers(3, 5, 4), LENGTHS)))[0]
    assert (first.phase, first.port.path if first.port else None) == ("forward", "")


class TorchEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True)
        self.encode = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.encode(x, mask=mask)


class Encoder(pnn.Layer):
    def __init__(self, turned: bool) -> None:
        super().__init__()
        self.encode = pnn.TransformerEncoder(pnn.TransformerEncoderLayer(8, 2, 12, 0.0), 2)
        self.turned = turned

    def forward(self, x: paddle.Tensor, mask: paddle.Tensor) -> paddle.Tensor:
        return self.encode(x, src_mask=~mask if self.turned else mask)


def test_the_mask_of_a_whole_encoder() -> None:
    cause = the_cause(align(seeded(TorchEncoder), Encoder(turned=False), (numbers(3, 6, 8), MASK)))
    assert cause.code == "op.mask"
    assert "boolean_mask is 'drop' in the reference, 'keep' in the port" in cause.message
    assert cause.fix.startswith("pass ~mask to port.encode in test_conventions.py:")
    assert align(seeded(TorchEncoder), Encoder(turned=True), (numbers(3, 6, 8), MASK)).ok
