"""Mistakes in a model's own code: the op is named with its line, and why is proven."""

from __future__ import annotations

import cProfile
import math
import sys
from collections.abc import Callable
from typing import Any

import paddle
import pytest
import torch
from paddle import nn as pnn
from paddle.nn import functional as pf_functional
from torch import nn

from tests.faults.tools import align, numbers, own, seeded, the_cause

Forward = Callable[[Any, Any], Any]
WIDTH, HEADS = 16, 4


class TorchBlock(nn.Module):
    """Two linear layers, and code around them that is given."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.first, self.second, self.code = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH), forward

    def forward(self, x: Any) -> Any:
        return self.code(self, x)


class PaddleBlock(pnn.Layer):
    """The same in paddle."""

    def __init__(self, forward: Forward) -> None:
        super().__init__()
        self.first, self.second, self.code = pnn.Linear(WIDTH, WIDTH), pnn.Linear(WIDTH, WIDTH), forward

    def forward(self, x: Any) -> Any:
        return self.code(self, x)


def _torch_residual(self: Any, x: Any) -> Any:
    return x + self.second(torch.relu(self.first(x)))


def _paddle_residual(self: Any, x: Any) -> Any:
    return x + self.second(pf_functional.relu(self.first(x)))


def _no_residual(self: Any, x: Any) -> Any:
    return self.second(pf_functional.relu(self.first(x)))


def _doubled(self: Any, x: Any) -> Any:
    return x + self.second(pf_functional.relu(self.first(x))) + x


def _no_activation(self: Any, x: Any) -> Any:
    return x + self.second(self.first(x))


def _dropping(self: Any, x: Any) -> Any:
    return x + self.second(pf_functional.dropout(pf_functional.relu(self.first(x)), 0.3))


def _halved(self: Any, x: Any) -> Any:
    hidden = pf_functional.relu(self.first(x))
    return x + self.second(hidden.astype("float16").astype("float32"))


def _scaled(self: Any, x: Any) -> Any:
    return x + 0.5 * self.second(pf_functional.relu(self.first(x)))


def _torch_scaled(self: Any, x: Any) -> Any:
    return x + 0.1 * self.second(torch.relu(self.first(x)))


def _torch_gelu(self: Any, x: Any) -> Any:
    return self.second(nn.functional.gelu(self.first(x)))


def _paddle_gelu(self: Any, x: Any) -> Any:
    return self.second(pf_functional.gelu(self.first(x), True))


def _torch_concat(self: Any, x: Any) -> Any:
    half = WIDTH // 2
    return self.second(torch.cat([self.first(x)[..., :half], x[..., :half]], -1))


def _paddle_concat(self: Any, x: Any) -> Any:
    half = WIDTH // 2
    return self.second(paddle.concat([x[..., :half], self.first(x)[..., :half]], -1))


def _torch_softmax(self: Any, x: Any) -> Any:
    return self.second(torch.softmax(self.first(x), -1))


def _paddle_softmax(self: Any, x: Any) -> Any:
    return self.second(pf_functional.softmax(self.first(x), 1))


def _torch_norm(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    return self.second(hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-5))


def _paddle_norm(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    return self.second(hidden * paddle.rsqrt((hidden * hidden).mean(-1, keepdim=True) + 1e-3))


def _torch_attention(self: Any, x: Any) -> Any:
    query, key = self.first(x), x
    scores = query @ key.transpose(-2, -1) / math.sqrt(WIDTH)
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return self.second(torch.softmax(scores.masked_fill(mask, float("-inf")), -1) @ x)


def _paddle_attention(
    self: Any, x: Any, *, scale: float = 1 / math.sqrt(WIDTH), masked: str = "upper"
) -> Any:
    scores = paddle.matmul(self.first(x), x, transpose_y=True) * scale
    ones = paddle.ones(scores.shape[-2:], dtype="bool")
    mask = {"upper": paddle.triu(ones, 1), "lower": paddle.tril(ones), "none": None}[masked]
    if mask is not None:
        scores = paddle.where(mask, paddle.full_like(scores, -math.inf), scores)
    return self.second(paddle.matmul(pf_functional.softmax(scores, -1), x))


def _unscaled(self: Any, x: Any) -> Any:
    return _paddle_attention(self, x, scale=1.0)


def _badly_scaled(self: Any, x: Any) -> Any:
    return _paddle_attention(self, x, scale=1 / WIDTH)


def _inverted(self: Any, x: Any) -> Any:
    return _paddle_attention(self, x, masked="lower")


def _seeing(self: Any, x: Any) -> Any:
    return _paddle_attention(self, x, masked="none")


FAULTS: tuple[tuple[str, Forward, Forward, str, str, tuple[str, ...]], ...] = (
    ("no residual", _torch_residual, _no_residual, "op.missing", "", ("add",)),
    ("residual twice", _torch_residual, _doubled, "op.extra", "add", ("add",)),
    ("no activation", _torch_residual, _no_activation, "op.missing", "", ("relu",)),
    ("dropout on", _torch_residual, _dropping, "random.dropout", "dropout", ("0.3",)),
    ("half precision", _torch_residual, _halved, "dtype.precision", "cast", ()),
    ("scale", _torch_scaled, _scaled, "op.scale", "mul", ("0.1 in the reference", "0.5 in the port")),
    ("gelu by tanh", _torch_gelu, _paddle_gelu, "op.approximation", "gelu", ("'none'", "'tanh'")),
    ("concat order", _torch_concat, _paddle_concat, "op.order", "concat", ("another order",)),
    (
        "softmax axis",
        _torch_softmax,
        _paddle_softmax,
        "op.axis",
        "softmax",
        ("-1 in the reference", "1 in the port"),
    ),
    ("epsilon", _torch_norm, _paddle_norm, "config.epsilon", "add", ("1e-05", "0.001")),
    (
        "no scale in attention",
        _torch_attention,
        _unscaled,
        "op.scale",
        "mul",
        ("0.25 in the reference", "1 in the port"),
    ),
    (
        "another scale in attention",
        _torch_attention,
        _badly_scaled,
        "op.scale",
        "mul",
        ("0.0625 in the port",),
    ),
    (
        "inverted mask",
        _torch_attention,
        _inverted,
        "op.mask",
        "tril",
        ("the opposite", "15 of 25", "other 10"),
    ),
    ("no mask", _torch_attention, _seeing, "op.mask", "softmax", ("masked_fill",)),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_the_op_is_named(fault: Any) -> None:
    _, good, bad, code, op, says = fault
    report = align(seeded(lambda: TorchBlock(good)), PaddleBlock(bad), numbers(3, 5, WIDTH))
    cause = the_cause(report)
    (divergence,) = own(report)
    assert cause.code == code, cause.message
    assert cause.score_after <= report.limit
    for words in says:
        assert words in cause.message
    if op:
        assert divergence.port.op == op
        start = bad.__code__.co_firstlineno
        inside = _paddle_attention.__code__.co_firstlineno
        assert start <= divergence.port.line <= start + 4 or inside <= divergence.port.line <= inside + 8
        assert divergence.port.file.endswith("test_code.py")


TWINS = (
    (_torch_residual, _paddle_residual),
    (_torch_attention, _paddle_attention),
    (_torch_scaled, lambda self, x: x + self.second(pf_functional.relu(self.first(x))) / 10.0),
    (_torch_gelu, lambda self, x: self.second(pf_functional.gelu(self.first(x)))),
    (_torch_softmax, lambda self, x: self.second(pf_functional.softmax(self.first(x)))),
)


@pytest.mark.parametrize("twin", TWINS)
def test_correct_code_has_no_divergence(twin: tuple[Forward, Forward]) -> None:
    report = align(seeded(lambda: TorchBlock(twin[0])), PaddleBlock(twin[1]), numbers(3, 5, WIDTH))
    assert report.ok, str(report)


def test_a_profiler_that_runs_does_not_hinder_and_goes_on() -> None:
    with cProfile.Profile() as profile:
        report = align(
            seeded(lambda: TorchBlock(_torch_residual)), PaddleBlock(_doubled), numbers(2, 5, WIDTH)
        )
        assert sys.getprofile() is profile
    assert the_cause(report).code == "op.extra"
    assert report.findings == ()


def test_a_function_that_profiles_is_set_again() -> None:
    def profile(*seen: Any) -> None:
        del seen

    sys.setprofile(profile)
    try:
        align(seeded(lambda: TorchBlock(_torch_residual)), PaddleBlock(_doubled), numbers(2, 5, WIDTH))
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)


def _torch_twice(self: Any, x: Any) -> Any:
    return torch.softmax(self.second(torch.tanh(self.first(x))), -1)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (lambda self, x: pf_functional.softmax(self.second(self.first(x)), 1), ["op.missing", "op.axis"]),
        (lambda self, x: pf_functional.softmax(self.second(self.first(x))), ["op.missing"]),
        (lambda self, x: pf_functional.softmax(self.second(paddle.tanh(self.first(x))), 1), ["op.axis"]),
    ],
    ids=["both", "the first", "the second"],
)
def test_two_mistakes_of_one_code_are_two_and_one_is_one(code: Forward, expected: list[str]) -> None:
    report = align(seeded(lambda: TorchBlock(_torch_twice)), PaddleBlock(code), numbers(3, 5, WIDTH))
    assert [each.cause.code for each in own(report) if each.cause] == expected
    assert len(own(report)) == len(expected)


def test_what_no_hypothesis_fits_has_no_cause() -> None:
    def strange(self: Any, x: Any) -> Any:
        hidden = self.first(x)
        return x + self.second(hidden * paddle.cos(0.7 * hidden) + 0.03 * x * x)

    def other(self: Any, x: Any) -> Any:
        hidden = self.first(x)
        return x + self.second(torch.sin(hidden.abs() + 1.0) - x.mean(-1, keepdim=True))

    report = align(seeded(lambda: TorchBlock(other)), PaddleBlock(strange), numbers(3, 5, WIDTH))
    (divergence,) = own(report)
    assert divergence.cause is None
    assert divergence.port.line == strange.__code__.co_firstlineno + 2  # located all the same


def test_a_restructured_computation_is_not_accused_but_its_mistake_is() -> None:
    """The port scales the query before the product, and correctly so; the softmax axis is wrong."""

    def port(self: Any, x: Any) -> Any:
        scores = paddle.matmul(self.first(x) / math.sqrt(WIDTH), x, transpose_y=True)
        mask = paddle.triu(paddle.ones(scores.shape[-2:], dtype="bool"), 1)
        scores = paddle.where(mask, paddle.full_like(scores, -1e30), scores)
        return self.second(paddle.matmul(pf_functional.softmax(scores, -2), x))

    cause = the_cause(
        align(seeded(lambda: TorchBlock(_torch_attention)), PaddleBlock(port), numbers(3, 5, WIDTH))
    )
    assert cause.code == "op.axis"
