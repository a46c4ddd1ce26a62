"""Lists of paddings are read axis by axis, as each framework counts its axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

from parfocal.explain.fixes.borders import Borders, axes_of, by_axis, listed, shortest

LISTS: list[tuple[int, list[int], dict[str, Any]]] = [
    (2, [1, 2, 0, 0], {}),
    (2, [1, 2, 0, 3], {"pad_from_left_axis": False}),
    (3, [0, 1], {}),
    (3, [0, 1], {"data_format": "NLC"}),
    (3, [1, 0, 0, 2], {}),
    (3, [1, 0, 0, 2, 3, 0], {}),
    (4, [1, 2, 0, 3], {}),
    (4, [1, 2, 0, 3], {"data_format": "NHWC"}),
    (4, [1, 2], {}),
    (4, [0, 0, 0, 0, 1, 2, 0, 0], {}),
    (5, [1, 0, 0, 2, 0, 1], {}),
]


@pytest.mark.parametrize(("rank", "pad", "words"), LISTS)
def test_a_list_means_what_paddle_does_with_it(rank: int, pad: list[int], words: dict[str, Any]) -> None:
    array = np.random.default_rng(0).standard_normal((2, 3, 4, 5, 6)[:rank]).astype(np.float32)
    axes = axes_of(len(pad) // 2, rank, "paddle", words)
    borders = by_axis(pad, rank, axes)
    given = paddle.nn.functional.pad(paddle.to_tensor(array), pad, **words).numpy()
    np.testing.assert_array_equal(np.pad(array, borders), given)
    assert listed(borders, axes, "paddle") == pad


@pytest.mark.parametrize("pad", [[1, 2], [1, 2, 0, 3], [0, 0, 1, 0, 0, 2], [1, 0, 0, 0, 0, 0, 2, 1]])
def test_a_list_means_what_torch_does_with_it(pad: list[int]) -> None:
    array = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    borders = by_axis(pad, 4, axes_of(len(pad) // 2, 4, "torch", {}))
    given = torch.nn.functional.pad(torch.from_numpy(array), pad).numpy()
    np.testing.assert_array_equal(np.pad(array, borders), given)


@pytest.mark.parametrize(
    "borders",
    [((0, 0), (0, 1)), ((0, 0), (0, 0), (2, 1)), ((0, 0), (1, 0), (0, 0), (0, 3)), ((1, 0), (0, 2))],
)
@pytest.mark.parametrize("framework", ["torch", "paddle"])
def test_what_is_written_means_the_borders(borders: Borders, framework: str) -> None:
    array = np.random.default_rng(0).standard_normal((2, 3, 4, 5)[: len(borders)]).astype(np.float32)
    pad = shortest(borders, framework)
    functional: Any = {"torch": torch.nn.functional, "paddle": paddle.nn.functional}[framework]
    tensor: Any = torch.from_numpy(array) if framework == "torch" else paddle.to_tensor(array)
    np.testing.assert_array_equal(np.pad(array, borders), functional.pad(tensor, pad).numpy())


def test_other_axes_than_were_said_are_said_in_full() -> None:
    assert listed(((0, 0), (1, 0), (0, 0), (0, 0)), [3, 2], "paddle") == [0, 0, 1, 0, 0, 0, 0, 0]
    assert listed(((0, 0), (1, 0), (0, 0), (0, 0)), [3, 2], "torch") == [0, 0, 0, 0, 1, 0, 0, 0]
