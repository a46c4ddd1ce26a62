"""What is kept of values one by one, and of many together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from parfocal.backends import registry
from parfocal.capture import keep
from parfocal.capture.keep import Keeper
from parfocal.run.records import TensorValue


class Kept:
    """Keeps the values as statistics, and how many came at once."""

    def __init__(self) -> None:
        self.together: list[int] = []

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[TensorValue]:
        if arrays:
            self.together.append(len(arrays))
        return [TensorValue("float32", array.shape, stats={"values": array.tolist()}) for array in arrays]


@pytest.fixture
def plain() -> Kept:
    return Kept()


@pytest.fixture
def turned() -> Kept:
    return Kept()


@pytest.fixture
def keeper(plain: Kept, turned: Kept) -> Keeper:
    return Keeper(registry.get("torch"), plain, lambda arrays: turned([array.T for array in arrays]))


def values() -> list[tuple[Any, bool]]:
    return [
        (torch.arange(6.0).reshape(2, 3), False),
        (None, False),
        (np.arange(4.0).reshape(2, 2), True),
        (3, False),
        ("text", False),
        (torch.arange(6.0).reshape(2, 3), True),
        (object(), False),
        (torch.ones(2), False),
    ]


def test_many_are_kept_as_each_is(keeper: Keeper, plain: Kept, turned: Kept) -> None:
    together = keeper.leaves(values())
    assert together == [leaf for pair in values() for leaf in keeper.leaves([pair])]
    assert together[0] == keeper.leaf(torch.arange(6.0).reshape(2, 3))
    assert together[5].stats["values"] == [[0, 3], [1, 4], [2, 5]]  # type: ignore[union-attr, index]
    assert together[1] is None
    assert together[3:5] == [3, "text"]
    assert (plain.together[0], turned.together[0]) == (2, 2)


def test_not_too_many_bytes_are_kept_at_once(
    keeper: Keeper, plain: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensors = [torch.full((2,), float(number)) for number in range(5)]
    monkeypatch.setattr(keep, "TOGETHER_BYTES", 16)
    kept = keeper.leaves((tensor, False) for tensor in tensors)
    assert [leaf.stats["values"][0] for leaf in kept] == [0, 1, 2, 3, 4]  # type: ignore[union-attr, index]
    assert plain.together == [2, 2, 1]


def test_an_unchanged_tensor_is_kept_once(keeper: Keeper, plain: Kept) -> None:
    tensor = torch.ones(3)
    first = keeper.leaf(tensor)
    assert keeper.leaves([(tensor, False), (tensor, True)])[0] is first
    tensor.add_(1)
    assert keeper.leaf(tensor) != first
    changed = keeper.leaf(tensor)
    tensor.data[0] = 7  # which no counter tells
    assert keeper.leaf(tensor) != changed
    assert plain.together == [1, 1, 1]
