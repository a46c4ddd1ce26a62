"""Values taken through other ops than the reference's, or through the same ones at another point."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle.nn import functional as there
from torch.nn import functional as here

from tests.faults.hidden_values import Way, around, check_it_is_named, check_what_is_right_is_left_alone
from tests.faults.test_code import WIDTH, PaddleBlock, TorchBlock
from tests.faults.tools import align, numbers, own, seeded


def _largest(self: Any, x: Any) -> Any:
    return x * torch.softmax(torch.topk(x, 3, dim=-1)[0], -1)[..., :1]


def _largest_right(self: Any, x: Any) -> Any:
    return x * there.softmax(paddle.topk(x, 3, axis=-1)[0], -1)[..., :1]


def _largest_of_all(self: Any, x: Any) -> Any:
    return x * paddle.topk(there.softmax(x, -1), 3, axis=-1)[0][..., :1]


def _grid(self: Any, x: Any) -> Any:
    down, along = torch.meshgrid(torch.arange(5.0), torch.arange(5.0), indexing="ij")
    return torch.softmax(down - 0.5 * along, -1) @ x


def _grid_right(self: Any, x: Any) -> Any:
    down, along = paddle.meshgrid(paddle.arange(5.0), paddle.arange(5.0))
    return there.softmax(down - 0.5 * along, -1) @ x


def _grid_turned(self: Any, x: Any) -> Any:
    along, down = paddle.meshgrid(paddle.arange(5.0), paddle.arange(5.0))
    return there.softmax(down - 0.5 * along, -1) @ x


def _parts(self: Any, x: Any) -> Any:
    few, many = torch.split(x, [5, 11], -1)
    return torch.cat([few.relu(), many], -1)


def _parts_right(self: Any, x: Any) -> Any:
    few, many = paddle.split(x, [5, 11], -1)
    return paddle.concat([there.relu(few), many], -1)


def _parts_wrong(self: Any, x: Any) -> Any:
    few, many = paddle.split(x, [11, 5], -1)
    return paddle.concat([there.relu(few), many], -1)


WAYS = {
    "one function for a few ops": Way(
        lambda self, x: x * here.cosine_similarity(x, x.flip(1), dim=-1).unsqueeze(-1),
        lambda self, x: x * there.cosine_similarity(x, x.flip(1), axis=-1).unsqueeze(-1),
        lambda self, x: x * (x * x.flip(1)).sum(-1).unsqueeze(-1),
        "op.kind",
        ("mul, sum(axis=-1, keepdim=False) in the port", "cosine_similarity(axis=-1) in the reference"),
    ),
    "a mean for a weighted one": Way(
        lambda self, x: x.relu().sum(1) / x.abs().sum(1),
        lambda self, x: there.relu(x).sum(1) / x.abs().sum(1),
        lambda self, x: there.relu(x).mean(1),
        "op.kind",
        ("mean(axis=1, keepdim=False) in the port", "div in the reference"),
    ),
    "the largest of the shares": Way(
        *(_largest, _largest_right, _largest_of_all, "op.order"),
        ("topk is applied at another point in the port",),
    ),
    "the two parts of a grid": Way(
        *(_grid, _grid_right, _grid_turned, "op.order"),
        ("output 1 of meshgrid", "output 0 of meshgrid", "the other way round"),
    ),
    "parts of other sizes": Way(
        *(_parts, _parts_right, _parts_wrong, "config.other"),
        ("sizes of split is (5, 11) in the reference, (11, 5) in the port",),
        "paddle.split(x, [5, 11], -1)",
    ),
    "one of many by clipped indices": Way(
        lambda self, x: here.one_hot(x.argmax(-1), WIDTH).float() + x,
        lambda self, x: there.one_hot(x.argmax(-1), WIDTH) + x,
        lambda self, x: there.one_hot(x.argmax(-1).clip(0, 3), WIDTH) + x,
        "op.extra",
        ("the port applies clamp",),
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_it_is_named(way: Way) -> None:
    check_it_is_named(way)


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_what_is_right_is_left_alone(way: Way) -> None:
    check_what_is_right_is_left_alone(way)


def test_an_op_that_is_missing_is_not_at_another_point() -> None:
    def reference(self: Any, x: Any) -> Any:
        return self.second(torch.relu(self.first(torch.relu(x))).sin())

    def port(self: Any, x: Any) -> Any:
        return self.second(there.relu(self.first(x)).sin())

    report = align(seeded(lambda: TorchBlock(reference)), PaddleBlock(port), numbers(3, 5, WIDTH))
    assert own(report)[0].cause.code == "op.missing"  # type: ignore[union-attr]


def test_another_computation_altogether_has_no_cause() -> None:
    def port(self: Any, x: Any) -> Any:
        return paddle.cumsum(x, 1).square().sin()

    reference = seeded(lambda: TorchBlock(around(lambda self, x: x.exp().flip(1).cos())))
    report = align(reference, PaddleBlock(around(port)), numbers(3, 5, WIDTH))
    assert not report.ok
    assert own(report)[0].cause is None
