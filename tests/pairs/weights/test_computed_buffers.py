"""Buffers that the port's own code makes are not overwritten: a wrong table must show."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

X = np.random.default_rng(3).standard_normal((4, 6)).astype("float32")
INDEX = np.array([3, 1, 0, 2, 5, 4])
FREQUENCIES = np.linspace(0.2, 2.0, 6).astype("float32")
RANDOM = np.random.default_rng(9).standard_normal(6).astype("float32")


class Reference(torch.nn.Module):
    def __init__(self, table: np.ndarray, persistent: bool = True) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 6)
        self.register_buffer("table", torch.as_tensor(table), persistent=persistent)
        self.last = torch.nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        x = x[:, self.table] if self.table.dtype == torch.int64 else x * self.table
        return self.last(x)


class Port(paddle.nn.Layer):
    def __init__(self, table: np.ndarray) -> None:
        super().__init__()
        self.inward = paddle.nn.Linear(6, 6)
        self.register_buffer("places", paddle.to_tensor(table))
        self.outward = paddle.nn.Linear(6, 3)

    def forward(self, x: Any) -> Any:
        x = self.inward(x)
        whole = self.places.dtype == paddle.int64
        return self.outward(paddle.index_select(x, self.places, 1) if whole else x * self.places)


@pytest.mark.parametrize(
    ("table", "other", "persistent"),
    [(INDEX, INDEX[::-1].copy(), True), (FREQUENCIES, FREQUENCIES * 1.01, False)],
    ids=["whole numbers", "in no checkpoint"],
)
def test_a_wrong_table_stays_and_shows(table: np.ndarray, other: np.ndarray, persistent: bool) -> None:
    port = Port(other)
    report = pf.align(Reference(table, persistent), port, X)
    assert not report.ok
    np.testing.assert_array_equal(port.places.numpy(), other)
    assert pf.align(Reference(table, persistent), Port(table), X).ok


def test_state_is_copied_and_told() -> None:
    port = Port(RANDOM)
    report = pf.align(Reference(FREQUENCIES), port, X)
    assert report.ok
    np.testing.assert_array_equal(port.places.numpy(), FREQUENCIES)
    assert "buffer places held other values than table of the reference, now copied" in str(report.findings)


@pytest.mark.parametrize("table", [INDEX, FREQUENCIES], ids=["whole numbers", "floats"])
def test_a_placeholder_is_filled_without_a_word(table: np.ndarray) -> None:
    port = Port(np.zeros_like(table))
    report = pf.align(Reference(table), port, X)
    assert report.ok
    np.testing.assert_array_equal(port.places.numpy(), table)
    assert "places" not in str(report.findings)


class Masked(torch.nn.Module):
    """What is true is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(6, 6)
        self.register_buffer("mask", torch.as_tensor(INDEX > 2))

    def forward(self, x: Any) -> Any:
        return self.linear(x).masked_fill(self.mask, 0.0)


class Kept(paddle.nn.Layer):
    """What is true is kept."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(6, 6)
        self.register_buffer("mask", paddle.to_tensor(INDEX <= 2))

    def forward(self, x: Any) -> Any:
        return self.linear(x) * self.mask.astype("float32")


def test_a_mask_in_other_words_stays_as_the_port_means_it() -> None:
    assert pf.align(Masked(), Kept(), X).ok
