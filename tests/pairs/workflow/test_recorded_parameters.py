"""Compare: gradients cut behind a nested call, reordered weights without a known layout, missing weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.workflow.recordings import Side, compare_sides, digest

RANDOM = np.random.default_rng(9)
EITHER = pytest.mark.parametrize("tensors", ["full", "sketch"])
LABELS = RANDOM.integers(0, 5, size=6).astype("int64")
VECTORS = [(RANDOM.normal(size=(6, 12)).astype("float32"), LABELS) for _ in range(2)]
SENTENCES = [(RANDOM.normal(size=(6, 7, 12)).astype("float32"), LABELS) for _ in range(2)]


def torch_side(model: Any) -> Side:
    return Side(model, torch.nn.functional.cross_entropy)


# Gradients behind a call whose last inner call gives the same tensor.


class Nested(torch.nn.Module):
    """A residual branch of two layers, whose output is the last layer's."""

    def __init__(self, share: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = torch.nn.Linear(12, 12)
        self.branch = torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.Tanh(), torch.nn.Linear(12, 12))
        self.head = torch.nn.Linear(12, 5)
        self.share = lambda: share  # of the gradient that goes on; a function is no setting

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        inner = self.branch(x)
        if self.share() != 1.0:
            inner = inner.detach() if not self.share() else inner * 0.5 + inner.detach() * 0.5
        return self.head(inner + x)


@EITHER
@pytest.mark.parametrize("share", [1.0, 0.0, 0.5])
def test_a_gradient_lost_behind_a_nested_call_is_the_code_around_it(
    tmp_path: Path, tensors: str, share: float
) -> None:
    sides = torch_side(Nested(1.0)), torch_side(Nested(share))
    report = compare_sides(tmp_path, *sides, VECTORS, tensors=tensors)
    if share == 1.0:
        assert report.ok, str(report)
        return
    found = digest(report)
    assert found is not None, str(report)
    assert found[:4] == ("backward", 0, 0, ""), str(report)
    assert "of branch" in report.first.what


# Weights of layers whose layout nobody says.


class TorchReader(torch.nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.rnn = getattr(torch.nn, kind)(12, 16, batch_first=True)
        self.head = torch.nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.rnn(x)[0][:, -1])


class PaddleReader(paddle.nn.Layer):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.rnn = getattr(paddle.nn, kind)(12, 16)
        self.head = paddle.nn.Linear(16, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.rnn(x)[0][:, -1])


@EITHER
@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("name", ["", "weight_ih_l0", "weight_hh_l0"])
def test_gates_in_another_order_are_weights(tmp_path: Path, tensors: str, kind: str, name: str) -> None:
    reference, port = TorchReader(kind), PaddleReader(kind)
    pf.transfer(reference, port)
    if name:
        weight = getattr(port.rnn, name)
        weight.set_value(np.roll(weight.numpy(), 16, axis=0))
    sides = torch_side(reference), Side(port, paddle.nn.functional.cross_entropy)
    report = compare_sides(tmp_path, *sides, SENTENCES, tensors=tensors)
    # the second name that paddle gives a cell's weight ties it to nothing
    assert "weight.tied" not in str(report)
    assert digest(report) == (("weights", 0, 0, "rnn", "weight.permuted") if name else None), str(report)


# Weights that the port does not have.


class Stack(torch.nn.Module):
    """``fused``: one layer for queries and keys. ``skips``: without a layer. ``wrong``: another function."""

    def __init__(self, *, fused: bool = False, skips: bool = False, wrong: bool = False) -> None:
        super().__init__()
        self.skips, self.fused, self.wrong = (lambda: skips), (lambda: fused), (lambda: wrong)
        torch.manual_seed(0)
        query, key, middle, head = (torch.nn.Linear(*sizes) for sizes in ((12, 8), (12, 8), (8, 8), (8, 5)))
        if fused:
            self.both = torch.nn.Linear(12, 16)
            with torch.no_grad():
                self.both.weight.copy_(torch.cat([query.weight, key.weight]))
                self.both.bias.copy_(torch.cat([query.bias, key.bias]))
        else:
            self.query, self.key = query, key
        if not skips:
            self.middle = middle
        self.head = head

    def forward(self, x: Any) -> Any:
        query, key = self.both(x).chunk(2, -1) if self.fused() else (self.query(x), self.key(x))
        x = query * (torch.relu(key) if self.wrong() else torch.tanh(key))
        return self.head(x if self.skips() else self.middle(x))


@EITHER
@pytest.mark.parametrize(
    ("changes", "phase", "code"),
    [
        ({}, None, None),
        ({"fused": True}, None, None),
        ({"fused": True, "wrong": True}, "forward", None),
        ({"wrong": True}, "forward", None),
        ({"skips": True}, "weights", "weight.missing"),
    ],
)
def test_a_layer_that_the_port_lacks_is_a_missing_weight(
    tmp_path: Path, tensors: str, changes: dict[str, bool], phase: str | None, code: str | None
) -> None:
    sides = torch_side(Stack()), torch_side(Stack(**changes))
    report = compare_sides(tmp_path, *sides, VECTORS, tensors=tensors)
    found = digest(report)
    assert (found and (found[0], found[4])) == (phase and (phase, code)), str(report)
    if code:
        assert "middle" in report.first.what


class Speaker(torch.nn.Module):
    """``shared``: words are said by the table that reads them."""

    def __init__(self, shared: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed = torch.nn.Embedding(20, 12)
        self.mix = torch.nn.Linear(12, 12)
        if not shared:
            self.head = torch.nn.Linear(12, 20, bias=False)

    def forward(self, ids: Any) -> Any:
        x = self.mix(self.embed(ids))
        return self.head(x) if hasattr(self, "head") else x @ self.embed.weight.T


@EITHER
@pytest.mark.parametrize("shared", [False, True])
def test_a_head_that_is_only_a_product_lacks_its_weight(tmp_path: Path, tensors: str, shared: bool) -> None:
    words = [(RANDOM.integers(0, 20, size=(6,)), LABELS) for _ in range(2)]
    tied = compare_sides(
        tmp_path / "tied", torch_side(Speaker(shared)), torch_side(Speaker(True)), words, tensors=tensors
    )
    assert tied.ok == shared, str(tied)
    if not shared:
        found = digest(tied)
        assert (found[0], found[4]) == ("weights", "weight.missing"), str(tied)
