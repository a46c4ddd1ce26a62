"""Mistakes in code that both sides spell differently: the smallest difference is named, with its line."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import paddle
import pytest
import torch
from paddle.nn import functional as paddle_functional
from torch.nn import functional as torch_functional

from tests.faults.test_code import WIDTH, PaddleBlock, TorchBlock
from tests.faults.tools import align, numbers, own, seeded, the_cause

Forward = Callable[[Any, Any], Any]
HEADS = 4


def _report(reference: Forward, port: Forward) -> Any:
    return align(seeded(lambda: TorchBlock(reference)), PaddleBlock(port), numbers(3, 5, WIDTH))


def _torch_heads(x: Any) -> Any:
    return x.reshape(x.shape[0], x.shape[1], HEADS, -1).transpose(1, 2)


def _library_attention(self: Any, x: Any) -> Any:
    key = _torch_heads(x)
    mixed = torch_functional.scaled_dot_product_attention(
        _torch_heads(self.first(x)), key, key, is_causal=True
    )
    return self.second(mixed.transpose(1, 2).reshape(x.shape))


def _attention(
    self: Any, x: Any, *, scale: float = 0.5, axis: int = -1, diagonal: int | None = 1, heads: int = HEADS
) -> Any:
    shape = [x.shape[0], x.shape[1], heads, -1]
    query, key = (each.reshape(shape).transpose([0, 2, 1, 3]) for each in (self.first(x), x))
    scores = paddle.matmul(query, key, transpose_y=True) * scale
    if diagonal is not None:
        scores = scores + paddle.triu(paddle.full([x.shape[1]] * 2, -1e9), diagonal)
    shares = paddle_functional.softmax(scores, axis)
    return self.second(paddle.matmul(shares, key).transpose([0, 2, 1, 3]).reshape(x.shape))


def _norm_by_hand(self: Any, x: Any, *, epsilon: float = 1e-5, centred: bool = True) -> Any:
    hidden = self.first(x)
    middle = hidden.mean(-1, keepdim=True)
    spread = ((hidden - middle) ** 2).mean(-1, keepdim=True)
    return self.second((hidden - middle if centred else hidden) / paddle.sqrt(spread + epsilon))


def _library_norm(self: Any, x: Any) -> Any:
    return self.second(torch_functional.layer_norm(self.first(x), (WIDTH,)))


def _torch_plain(self: Any, x: Any) -> Any:
    return self.second(self.first(x))


def _torch_relu(self: Any, x: Any) -> Any:
    return self.second(torch.relu(self.first(x)))


def _gelu_by_hand(self: Any, x: Any) -> Any:
    hidden = self.first(x)
    return self.second(0.5 * hidden * (1.0 + paddle.erf(hidden / math.sqrt(2.0))))


FAULTS: tuple[tuple[str, Forward, Forward, str, str, tuple[str, ...]], ...] = (
    (
        "scale of library attention",
        _library_attention,
        lambda self, x: _attention(self, x, scale=1.0),
        "op.scale",
        "mul",
        ("0.5 in the reference", "1 in the port"),
    ),
    (
        "axis of library attention",
        _library_attention,
        lambda self, x: _attention(self, x, axis=-2),
        "op.axis",
        "softmax",
        ("-1 in the reference", "-2 in the port"),
    ),
    (
        "mask of library attention off by one",
        _library_attention,
        lambda self, x: _attention(self, x, diagonal=0),
        "op.mask",
        "",
        ("5 of 25 places", "15 of 25", "10 in the reference"),
    ),
    (
        "library attention unmasked",
        _library_attention,
        lambda self, x: _attention(self, x, diagonal=None),
        "op.mask",
        "softmax",
        ("add",),
    ),
    (
        "epsilon of library norm",
        _library_norm,
        lambda self, x: _norm_by_hand(self, x, epsilon=1e-3),
        "config.epsilon",
        "add",
        ("1e-05 in the reference", "0.001 in the port"),
    ),
    (
        "library norm not centred",
        _library_norm,
        lambda self, x: _norm_by_hand(self, x, centred=False),
        "op.missing",
        "div",
        ("sub",),
    ),
    (
        "einsum",
        lambda self, x: self.second(torch.einsum("bik,bjk->bij", self.first(x), x) @ x),
        lambda self, x: self.second(paddle.einsum("bik,bjk->bji", self.first(x), x) @ x),
        "config.other",
        "einsum",
        ("'bik,bjk->bij' in the reference",),
    ),
    (
        "groups of a shuffle",
        lambda self, x: self.second(self.first(x).reshape(3, 5, 4, 4).transpose(2, 3).reshape(3, 5, 16)),
        lambda self, x: self.second(
            self.first(x).reshape([3, 5, 2, 8]).transpose([0, 1, 3, 2]).reshape([3, 5, 16])
        ),
        "config.groups",
        "reshape",
        ("[3, 5, 2, 8] in the port", "[3, 5, 4, 4] in the reference"),
    ),
    (
        "last for first",
        lambda self, x: self.second(self.first(x)[:, 0]),
        lambda self, x: self.second(self.first(x)[:, -1]),
        "config.other",
        "getitem",
        ("index",),
    ),
    (
        "layers in another order",
        lambda self, x: torch.relu(self.second(torch.tanh(self.first(x)))),
        lambda self, x: paddle_functional.relu(self.first(paddle.tanh(self.second(x)))),
        "op.order",
        "",
        ("another point",),
    ),
    (
        "another residual",
        lambda self, x: x + self.second(torch.relu(self.first(x))),
        lambda self, x: (lambda y: y + self.second(paddle_functional.relu(y)))(self.first(x)),
        "op.order",
        "add",
        ("first", "an input"),
    ),
    (
        "difference for sum",
        lambda self, x: self.second(self.first(x) + x),
        lambda self, x: self.second(self.first(x) - x),
        "op.kind",
        "sub",
        ("add in the reference",),
    ),
    (
        "maximum for mean",
        lambda self, x: self.second(self.first(x).mean(1)),
        lambda self, x: self.second(self.first(x).max(1)),
        "op.kind",
        "max",
        ("mean in the reference",),
    ),
    (
        "mirrored",
        _torch_plain,
        lambda self, x: self.second(paddle.flip(self.first(x), [1])),
        "op.extra",
        "flip",
        (),
    ),
    (
        "shifted the other way",
        lambda self, x: self.second(torch.roll(self.first(x), 1, 1)),
        lambda self, x: self.second(paddle.roll(self.first(x), -1, 1)),
        "config.other",
        "roll",
        ("1 in the reference", "-1 in the port"),
    ),
    (
        "noise",
        _torch_plain,
        lambda self, x: self.second(self.first(x) + 0.1 * paddle.rand(x.shape)),
        "random.source",
        "rand",
        (),
    ),
    ("function by hand", _torch_relu, _gelu_by_hand, "op.activation", "mul", ("erf", "relu")),
    (
        "layer called twice",
        _torch_relu,
        lambda self, x: self.second(self.second(paddle_functional.relu(self.first(x)))),
        "op.extra",
        "linear",
        ("second",),
    ),
    (
        "rows flattened without their transposition",
        lambda self, x: self.second(self.first(x)).transpose(1, 2).reshape(3, -1),
        lambda self, x: self.second(self.first(x)).reshape([3, -1]),
        "layout.permuted",
        "reshape",
        ("transpose",),
    ),
    (
        "one output of two",
        lambda self, x: (self.second(x), torch.tanh(self.first(x))),
        lambda self, x: (self.second(x), paddle_functional.sigmoid(self.first(x))),
        "op.activation",
        "sigmoid",
        ("tanh",),
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_the_difference_is_named(fault: Any) -> None:
    _, good, bad, code, op, says = fault
    report = _report(good, bad)
    cause = the_cause(report)
    (divergence,) = own(report)
    assert cause.code == code, cause.message
    assert cause.score_after <= report.limit
    for words in says:
        assert words in cause.message
    assert divergence.port.file.endswith("test_subgraphs.py")
    if op:
        assert divergence.port.op == op


TWINS = (
    (_library_attention, _attention),
    (_library_norm, _norm_by_hand),
    (
        lambda self, x: self.second(torch_functional.linear(x, self.first.weight, self.first.bias)),
        lambda self, x: self.second(paddle.matmul(x, self.first.weight) + self.first.bias),
    ),
    (
        lambda self, x: self.second(torch.einsum("bik,bjk->bij", self.first(x), x) @ x),
        lambda self, x: self.second(paddle.matmul(self.first(x), x, transpose_y=True) @ x),
    ),
    (
        lambda self, x: self.second(torch_functional.gelu(self.first(x))),
        _gelu_by_hand,
    ),
)


@pytest.mark.parametrize("twin", TWINS)
def test_another_spelling_is_no_mistake(twin: tuple[Forward, Forward]) -> None:
    report = _report(*twin)
    assert report.ok, str(report)


def test_two_mistakes_of_one_forward_are_two_findings() -> None:
    def port(self: Any, x: Any) -> Any:
        hidden = paddle_functional.gelu(self.first(x))
        return self.second(hidden)

    first, second = own(_report(lambda self, x: x + self.second(torch.relu(self.first(x))), port))
    start = port.__code__.co_firstlineno
    assert (first.cause.code, first.port.line) == ("op.activation", start + 1)
    assert (second.cause.code, second.port.line) == ("op.missing", start + 2)


def test_one_mistake_seen_at_two_places_is_one_finding() -> None:
    def bent(x: Any) -> Any:
        return paddle_functional.silu(x)

    report = _report(
        lambda self, x: (torch.relu(self.first(x)), torch.relu(self.second(x))),
        lambda self, x: (bent(self.first(x)), bent(self.second(x))),
    )
    (divergence,) = own(report)
    assert divergence.cause.code == "op.activation"
    assert divergence.port.line == bent.__code__.co_firstlineno + 1


def test_a_value_that_passes_as_it_is_is_blamed_on_the_line_that_lets_it_pass() -> None:
    def activated(x: Any) -> Any:
        return x

    def port(self: Any, x: Any) -> Any:
        return activated(self.second(self.first(x)))

    report = _report(lambda self, x: torch.tanh(self.second(self.first(x))), port)
    (divergence,) = own(report)
    assert divergence.cause.code == "op.missing"
    assert divergence.port.line == activated.__code__.co_firstlineno + 1


def test_swapped_values_are_blamed_on_the_line_that_swaps_them() -> None:
    def parts(self: Any, x: Any) -> Any:
        joined = paddle.stack([self.first(x), x], 0)
        return joined[1], joined[0]

    def port(self: Any, x: Any) -> Any:
        query, key = parts(self, x)
        shares = paddle_functional.softmax(paddle.matmul(query, key, transpose_y=True), -1)
        return self.second(paddle.matmul(shares, x))

    def reference(self: Any, x: Any) -> Any:
        joined = torch.stack([self.first(x), x], 0)
        query, key = joined[0], joined[1]
        return self.second(torch.softmax(query @ key.transpose(-2, -1), -1) @ x)

    report = _report(reference, port)
    (divergence,) = own(report)
    assert divergence.cause.code == "op.order"
    assert divergence.port.line == parts.__code__.co_firstlineno + 2


def test_what_has_no_cause_is_told_in_both_ways() -> None:
    def port(self: Any, x: Any) -> Any:
        return self.second(paddle.cumsum(self.first(x), 1) * x.mean(-1, keepdim=True))

    report = _report(lambda self, x: self.second(self.first(x).sin() + x.amax(1, keepdim=True)), port)
    (divergence,) = own(report)
    assert divergence.cause is None
    assert "the port does" in divergence.message
    assert "the reference" in divergence.message
    assert divergence.port.line == port.__code__.co_firstlineno + 1


class _TorchPool(torch.nn.Module):
    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 8, 3, padding=1)
        self.settings = settings

    def forward(self, x: Any) -> Any:
        return self.second(torch_functional.max_pool2d(self.first(x), 3, 2, **self.settings)).mean((2, 3))


class _PaddlePool(paddle.nn.Layer):
    def __init__(self, **settings: Any) -> None:
        super().__init__()
        layers = paddle.nn
        self.first, self.second = layers.Conv2D(3, 8, 3, padding=1), layers.Conv2D(8, 8, 3, padding=1)
        self.settings = settings

    def forward(self, x: Any) -> Any:
        return self.second(paddle_functional.max_pool2d(self.first(x), 3, 2, **self.settings)).mean([2, 3])


def test_a_layer_that_is_given_another_shape_is_not_to_blame() -> None:
    report = align(seeded(lambda: _TorchPool(ceil_mode=True)), _PaddlePool(), numbers(2, 3, 8, 8))
    (divergence,) = own(report)
    assert (divergence.port.path, divergence.port.op) == ("", "max_pool2d")
    assert divergence.cause.code == "op.ceil_mode"
    assert divergence.message == "shape [2, 8, 3, 3] in the port, [2, 8, 4, 4] in the reference"
    twin = align(seeded(lambda: _TorchPool(ceil_mode=True)), _PaddlePool(ceil_mode=True), numbers(2, 3, 8, 8))
    assert twin.ok, str(twin)


def test_a_bias_that_is_not_handed_on() -> None:
    report = _report(
        lambda self, x: self.second(torch_functional.linear(x, self.first.weight, self.first.bias)),
        lambda self, x: self.second(paddle.matmul(x, self.first.weight)) + 0.0 * self.first.bias.sum(),
    )
    cause = the_cause(report)
    assert cause.code in ("op.missing", "op.bias")
    assert "add" in cause.message
