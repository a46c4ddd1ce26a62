"""Attention of the frameworks that is right, and is given a mask that hides other places."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal as pf
from parfocal.judge.verdict import Divergence

KEPT = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 0, 0, 0]])


class Reference(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.encoder(x, src_key_padding_mask=kept == 0)
        return y


class Port(pnn.Layer):
    """``said``: what becomes of the mask before the encoder is given it."""

    def __init__(self, said: Any) -> None:
        super().__init__()
        self.encoder = pnn.TransformerEncoder(pnn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)
        self.said = said

    def forward(self, x: Any, kept: Any) -> Any:
        return self.encoder(x, self.said(kept.astype("float32").unsqueeze([1, 2])))


def first(said: Any) -> Divergence | None:
    torch.manual_seed(3)
    x = np.random.default_rng(1).standard_normal((3, 5, 8)).astype("float32")
    return pf.align(Reference(), Port(said), (x, KEPT)).first


@pytest.mark.parametrize(
    "said",
    [lambda kept: (1.0 - kept) * -1e9, lambda kept: paddle.log(kept), lambda kept: kept.astype("bool")],
)
def test_a_mask_in_other_words_is_right(said: Any) -> None:
    assert first(said) is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (lambda kept: None, "in the port it is given no mask"),
        (lambda kept: kept, "of numbers from 0 to 1, which hide nothing"),
        (lambda kept: kept * -1e9, "that hides other places"),
    ],
    ids=["none", "added", "inverted"],
)
def test_a_mask_that_hides_other_places_is_named(said: Any, words: str) -> None:
    found = first(said)
    assert found is not None
    assert found.cause is not None
    assert found.port is not None
    assert (found.cause.code, found.port.path) == ("op.mask", "")
    assert "hides 5 of 15 places in the reference" in found.cause.message
    assert words in found.cause.message


def test_what_is_wrong_otherwise_is_not_put_down_to_the_mask() -> None:
    torch.manual_seed(3)
    port = Port(lambda kept: (1.0 - kept) * -1e9)
    port.encoder.layers[0].self_attn.num_heads, port.encoder.layers[0].self_attn.head_dim = 4, 2
    x = np.random.default_rng(1).standard_normal((3, 5, 8)).astype("float32")
    found = pf.align(Reference(), port, (x, KEPT)).first
    assert found is not None
    assert found.cause is None or found.cause.code != "op.mask"
