"""Numbers in another order are told from other numbers, and the order is found and said."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from parfocal.explain.layers.rearranging import find_arrangement, in_words, same_numbers

WEIGHT = np.random.default_rng(0).standard_normal((6, 4, 3, 3))
NOISE = 1e-12

ORDERS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], tuple[int, ...], dict[int, str]]] = {
    "flipped": (lambda w: w[:, :, ::-1, ::-1], (0, 1, 2, 3), {2: "reversed", 3: "reversed"}),
    "spatial axes swapped": (lambda w: w.transpose(0, 1, 3, 2), (0, 1, 3, 2), {}),
    "turned": (lambda w: np.rot90(w, 1, (2, 3)), (0, 1, 3, 2), {2: "reversed"}),
    "rolled": (lambda w: np.roll(w, 2, 0), (0, 1, 2, 3), {0: "rolled by 2"}),
    "blocks": (lambda w: w[[2, 3, 0, 1, 4, 5]], (0, 1, 2, 3), {0: "3 blocks in the order 1, 0, 2"}),
    "interleaved": (lambda w: w[[0, 3, 1, 4, 2, 5]], (0, 1, 2, 3), {0: "interleaved, 2 blocks into one"}),
    "two axes": (lambda w: w[::-1, [1, 0, 2, 3]], (0, 1, 2, 3), {0: "reversed", 1: "1, 0, 2, 3"}),
}


@pytest.mark.parametrize("name", ORDERS)
def test_an_order_is_found_and_said(name: str) -> None:
    change, axes, words = ORDERS[name]
    observed = np.ascontiguousarray(change(WEIGHT))
    found = find_arrangement(observed, WEIGHT, NOISE)
    assert found is not None
    assert found.axes == axes
    assert {axis: in_words(found.orders[axis]) for axis in found.moved} == words
    assert np.array_equal(found.apply(WEIGHT), observed)


def test_any_order_at_all_is_told_from_other_numbers() -> None:
    shuffled = np.random.default_rng(1).permutation(WEIGHT.ravel()).reshape(WEIGHT.shape)
    assert find_arrangement(shuffled, WEIGHT, NOISE) is None
    assert same_numbers(shuffled, WEIGHT, NOISE)


@pytest.mark.parametrize(
    "other",
    [WEIGHT + 1e-3, WEIGHT * 1.001, np.full_like(WEIGHT, np.nan), np.where(WEIGHT > 2, np.inf, WEIGHT)],
    ids=["moved", "scaled", "not numbers", "infinite"],
)
def test_other_numbers_are_no_other_order(other: np.ndarray) -> None:
    assert not same_numbers(other, WEIGHT, NOISE)
    assert find_arrangement(other, WEIGHT, NOISE) is None


def test_a_few_numbers_prove_nothing() -> None:
    signs = np.where(WEIGHT > 0, 1.0, -1.0)
    assert find_arrangement(signs[::-1].copy(), signs, NOISE) is None
