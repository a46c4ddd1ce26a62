"""Functions that both frameworks have, and that take their arguments or their axes otherwise."""

from __future__ import annotations

from typing import Any

import paddle
import pytest
import torch
from paddle.nn import functional as there
from torch.nn import functional as here

from tests.faults.hidden_values import Way, check_it_is_named, check_what_is_right_is_left_alone
from tests.faults.test_code import WIDTH


def _heads(kit: Any, x: Any) -> Any:
    return x.reshape([3, 5, 4, 4]) if kit is paddle else x.reshape(3, 5, 4, 4)


def _attention(self: Any, x: Any) -> Any:
    heads = _heads(torch, x).transpose(1, 2)
    return here.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).reshape(3, 5, WIDTH)


def _attention_right(self: Any, x: Any) -> Any:
    heads = _heads(paddle, x)
    return there.scaled_dot_product_attention(heads, heads, heads).reshape([3, 5, WIDTH])


def _attention_wrong(self: Any, x: Any) -> Any:
    heads = _heads(paddle, x).transpose([0, 2, 1, 3])
    mixed = there.scaled_dot_product_attention(heads, heads, heads)
    return mixed.transpose([0, 2, 1, 3]).reshape([3, 5, WIDTH])


CASES = {
    "padding of every axis": Way(
        lambda self, x: here.pad(x, (0, 0, 1, 0))[:, :5],
        lambda self, x: there.pad(x, [0, 0, 1, 0, 0, 0])[:, :5],
        lambda self, x: there.pad(x, [0, 0, 0, 1, 0, 0])[:, :5],
        "config.padding",
        ("((0, 0), (1, 0), (0, 0)) in the reference", "((0, 0), (0, 1), (0, 0)) in the port"),
        "there.pad(x, [0, 0, 1, 0, 0, 0])[:, :5]",
    ),
    "the lower of two in the middle": Way(
        lambda self, x: x - torch.median(x, -1, keepdim=True)[0],
        lambda self, x: x - paddle.median(x, -1, keepdim=True, mode="min")[0],
        lambda self, x: x - paddle.median(x, -1, keepdim=True),
        "config.other",
        ("mode of median is 'min' in the reference, 'avg' in the port",),
        'paddle.median(x, axis=-1, keepdim=True, mode="min")[0]',
    ),
    "the sum of absolutes for the root of squares": Way(
        lambda self, x: x / torch.norm(x, dim=-1, keepdim=True),
        lambda self, x: x / paddle.norm(x, axis=-1, keepdim=True),
        lambda self, x: x / paddle.norm(x, p=1, axis=-1, keepdim=True),
        "config.other",
        ("p of norm is 'fro' in the reference, 1 in the port",),
    ),
    "a norm of vectors": Way(
        lambda self, x: x / torch.linalg.vector_norm(x, dim=-1, keepdim=True),
        lambda self, x: x / paddle.linalg.norm(x, axis=-1, keepdim=True),
        lambda self, x: x / paddle.linalg.norm(x, p=1, axis=-1, keepdim=True),
        "config.other",
        ("p of norm is 2 in the reference, 1 in the port",),
    ),
    "picked along another axis": Way(
        lambda self, x: torch.gather(x, 1, torch.argsort(x, 1)),
        lambda self, x: paddle.take_along_axis(x, paddle.argsort(x, 1), 1),
        lambda self, x: paddle.take_along_axis(x, paddle.argsort(x, 1), 2),
        "op.axis",
        ("axis of take_along_axis is 1 in the reference, 2 in the port",),
    ),
    "cut off at the other end": Way(
        lambda self, x: torch.clamp(x, max=0.3),
        lambda self, x: paddle.clip(x, max=0.3),
        lambda self, x: paddle.clip(x, min=0.3),
        "config.other",
        ("maximum of clamp is 0.3 in the reference, None in the port", "minimum of clamp is None in the ref"),
        "tell clamp maximum=0.3, minimum=None in test_same_names.py",
    ),
    "cut off at two other bounds": Way(
        lambda self, x: torch.clamp(x, -0.5, 0.8),
        lambda self, x: paddle.clip(x, -0.5, 0.8),
        lambda self, x: paddle.clip(x, -0.8, 0.5),
        "config.other",
        ("minimum of clamp is -0.5 in the reference, -0.8 in the port", "maximum of clamp is 0.8 in the"),
        "paddle.clip(x, -0.5, 0.8)",
    ),
    "shares of all places": Way(
        lambda self, x: torch.softmax(x.flatten(1), -1).reshape(3, 5, WIDTH).exp(),
        lambda self, x: there.softmax(x.flatten(1), -1).reshape([3, 5, WIDTH]).exp(),
        lambda self, x: there.softmax(x, -1).exp(),
        "op.axis",
        ("softmax takes [3, 5, 16] in the port", "the same values as [3, 80] in the reference"),
    ),
    "heads where places belong": Way(
        *(_attention, _attention_right, _attention_wrong, "layout.permuted"),
        ("takes [3, 4, 5, 4] in the port", "as if [3, 5, 4, 4] in the reference", "axes 1 and 2"),
        "heads.transpose([0, 2, 1, 3])).transpose([0, 2, 1, 3])",
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_it_is_named(case: Way) -> None:
    check_it_is_named(case)


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_what_is_right_is_left_alone(case: Way) -> None:
    check_what_is_right_is_left_alone(case)
