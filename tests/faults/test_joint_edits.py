"""Mistakes at several places at once, of constants and of numbers; and what must not be said of them."""

from __future__ import annotations

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
HALF = WIDTH // 2


def _report(reference: Forward, port: Forward) -> Any:
    return align(seeded(lambda: TorchBlock(reference)), PaddleBlock(port), numbers(3, 5, WIDTH))


def _torch_rotated(self: Any, x: Any) -> Any:
    y = self.first(x)
    return self.second(x * 0.5 + torch.cat([-y[..., HALF:], y[..., :HALF]], -1))


def _paddle_rotated(self: Any, x: Any, signs: tuple[int, int] = (-1, 1)) -> Any:
    y = self.first(x)
    low, high = y[..., :HALF], y[..., HALF:]
    parts = [-high if signs[0] < 0 else high, -low if signs[1] < 0 else low]
    return self.second(x * 0.5 + paddle.concat(parts, -1))


def _interleaved(self: Any, x: Any) -> Any:
    y = self.first(x)
    even, odd = y[..., 0::2], y[..., 1::2]
    return self.second(x * 0.5 + paddle.stack([-odd, even], -1).reshape(x.shape))


def _torch_attention(self: Any, x: Any) -> Any:
    query, key = (y.reshape(3, 5, 2, -1).transpose(1, 2) for y in (self.first(x), x))
    scores = query @ key.transpose(-2, -1) / 1.5
    keep = torch.arange(5)[None, :] < torch.tensor([5, 3, 4])[:, None]
    shares = torch.softmax(scores.masked_fill(~keep[:, None, None, :], -1e9), -1)
    return self.second((shares @ key).transpose(1, 2).reshape(3, 5, -1))


def _paddle_attention(
    self: Any,
    x: Any,
    *,
    heads: tuple[int, int] = (2, -1),
    scale: float = 1.5,
    lengths: tuple[int, ...] = (5, 3, 4),
    late: bool = False,
    fill: float = -1e9,
) -> Any:
    def split(y: Any) -> Any:
        return y.reshape([3, 5, *heads]).transpose([0, 2, 1, 3])

    query, key = split(self.first(x)), split(x)
    scores = paddle.matmul(query, key, transpose_y=True) / scale
    keep = (paddle.arange(5).unsqueeze(0) < paddle.to_tensor(lengths).unsqueeze(1)).unsqueeze([1, 2])
    if late:
        shares = paddle_functional.softmax(scores, -1)
        shares = paddle.where(keep, shares, paddle.zeros_like(shares))
    else:
        scores = paddle.where(keep, scores, paddle.full_like(scores, fill))
        shares = paddle_functional.softmax(scores, -1)
    return self.second(paddle.matmul(shares, key).transpose([0, 2, 1, 3]).reshape([3, 5, -1]))


def _torch_loop(self: Any, x: Any) -> Any:
    gates, state = torch.sigmoid(self.first(x)), torch.zeros(3, WIDTH)
    for step in range(5):
        state = gates[:, step] * state + (1 - gates[:, step]) * x[:, step]
    return self.second(state)


def _paddle_loop(self: Any, x: Any, *, first: float = 0.0, exchanged: bool = False) -> Any:
    gates, state = paddle_functional.sigmoid(self.first(x)), paddle.full([3, WIDTH], first)
    for step in range(5):
        gate = gates[:, step]
        if exchanged:
            state = (1 - gate) * state + gate * x[:, step]
        else:
            state = gate * state + (1 - gate) * x[:, step]
    return self.second(state)


def _torch_chosen(self: Any, x: Any) -> Any:
    return self.second(torch_functional.embedding((x[..., 0] > 0).long(), self.first.weight))


def _paddle_chosen(self: Any, x: Any, factor: int = 1) -> Any:
    indices = (x[..., 0] > 0).astype("int64")
    indices = indices * factor if factor != 1 else indices
    return self.second(paddle_functional.embedding(indices, self.first.weight.t()))


FAULTS: tuple[tuple[str, Forward, Forward, str, tuple[str, ...]], ...] = (
    (
        "gate and value",
        lambda self, x: torch_functional.silu(self.first(x)) * self.second(x),
        lambda self, x: self.first(x) * paddle_functional.silu(self.second(x)),
        "op.order",
        ("first (linear)", "second (linear)", "the other way round"),
    ),
    (
        "two wrong axes",
        lambda self, x: torch.softmax(self.first(x), -1) * torch.softmax(self.second(x), -1),
        lambda self, x: (
            paddle_functional.softmax(self.first(x), 1) * paddle_functional.softmax(self.second(x), 1)
        ),
        "op.axis",
        ("-1 in the reference, 1 in the port",),
    ),
    (
        "sign of the rotation",
        _torch_rotated,
        lambda self, x: _paddle_rotated(self, x, (1, -1)),
        "op.order",
        ("the reference applies neg", "the port applies neg"),
    ),
    ("interleaved", _torch_rotated, _interleaved, "op.order", ("taken apart and joined otherwise",)),
    (
        "gates of a loop",
        _torch_loop,
        lambda self, x: _paddle_loop(self, x, exchanged=True),
        "op.order",
        ("rsub",),
    ),
    (
        "first state of a loop",
        _torch_loop,
        lambda self, x: _paddle_loop(self, x, first=1.0),
        "config.other",
        ("1, 1, 1", "0, 0, 0"),
    ),
    (
        "heads behind another spelling of the mask",
        _torch_attention,
        lambda self, x: _paddle_attention(self, x, heads=(4, -1)),
        "config.heads",
        ("in the reference",),
    ),
    (
        "scale behind another spelling of the mask",
        _torch_attention,
        lambda self, x: _paddle_attention(self, x, scale=2.5),
        "op.scale",
        ("1.5 in the reference", "2.5 in the port"),
    ),
    (
        "mask behind another spelling",
        _torch_attention,
        lambda self, x: _paddle_attention(self, x, lengths=(4, 3, 4)),
        "op.mask",
        ("differs at 1 of 15 places",),
    ),
    (
        "masked after the softmax",
        _torch_attention,
        lambda self, x: _paddle_attention(self, x, late=True),
        "op.mask",
        ("masked_fill", "the port does not"),
    ),
    (
        "masked by too little",
        _torch_attention,
        lambda self, x: _paddle_attention(self, x, fill=-1.0),
        "op.mask",
        ("the reference masks by masked_fill", "the port otherwise"),
    ),
    (
        "one part twice",
        lambda self, x: self.second(torch.cat([x[..., HALF:], x[..., :HALF]], -1)),
        lambda self, x: self.second(paddle.concat([x[..., HALF:], x[..., HALF:]], -1)),
        "config.other",
        ("index of getitem",),
    ),
    (
        "counted from one",
        lambda self, x: self.second(self.first(x) + torch.arange(5.0)[:, None]),
        lambda self, x: self.second(self.first(x) + paddle.arange(1.0, 6.0).unsqueeze(1)),
        "config.other",
        ("start of arange is 0 in the reference, 1 in the port",),
    ),
    (
        "another constant",
        lambda self, x: self.second(self.first(x) + torch.arange(5.0)[:, None]),
        lambda self, x: self.second(self.first(x) + paddle.linspace(1.0, 2.0, 5).unsqueeze(1)),
        "config.other",
        ("1, 1.25, 1.5, 1.75, 2", "0, 1, 2, 3, 4"),
    ),
    (
        "bound by other means",
        lambda self, x: self.second(torch.minimum(self.first(x), torch.tensor(0.3))),
        lambda self, x: self.second(self.first(x).clip(max=0.2)),
        "config.other",
        ("maximum of clamp is 0.3 in the reference, 0.2 in the port",),
    ),
    (
        "bounds under other names",
        lambda self, x: self.second(torch_functional.hardtanh(self.first(x), -0.2, 0.3)),
        lambda self, x: self.second(paddle_functional.hardtanh(self.first(x), -0.2, 0.4)),
        "config.other",
        ("maximum of hardtanh is 0.3 in the reference, 0.4 in the port",),
    ),
    (
        "indices of ones and zeros",
        _torch_chosen,
        lambda self, x: _paddle_chosen(self, x, 0),
        "op.scale",
        ("mul",),
    ),
    (
        "mean for the first",
        lambda self, x: self.second(torch.tanh(self.first(x))[:, 0]),
        lambda self, x: self.second(paddle.tanh(self.first(x)).mean(1)),
        "op.kind",
        ("mean in the port", "getitem in the reference"),
    ),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_it_is_named(fault: Any) -> None:
    _, good, bad, code, says = fault
    report = _report(good, bad)
    cause = the_cause(report)
    assert cause.code == code, cause.message
    assert cause.score_after <= report.limit
    assert all(words in cause.message for words in says), cause.message
    assert own(report)[0].port.file.endswith("test_joint_edits.py")


@pytest.mark.parametrize(
    "twin",
    [
        (_torch_rotated, _paddle_rotated),
        (_torch_attention, _paddle_attention),
        (_torch_loop, _paddle_loop),
        (_torch_chosen, _paddle_chosen),
    ],
    ids=("rotated", "attention", "loop", "chosen"),
)
def test_the_other_spelling_alone_is_no_mistake(twin: tuple[Forward, Forward]) -> None:
    assert _report(*twin).ok


def test_a_mask_is_not_blamed_for_what_is_wrong_behind_it() -> None:
    """The mask is spelled otherwise and right; what it hides parts of is a product that no rule mends."""

    def port(self: Any, x: Any) -> Any:
        return _paddle_attention(self, paddle.tanh(x) * x.mean(-1, keepdim=True) + x.cumsum(1))

    (divergence, *_) = own(_report(_torch_attention, port))
    assert divergence.cause is None or divergence.cause.code != "op.mask"


def test_a_place_that_is_right_is_not_among_the_several() -> None:
    """Two softmaxes are wrong; the third, which the reference spells out, is not."""

    def reference(self: Any, x: Any) -> Any:
        third = torch.exp(x) / torch.exp(x).sum(-1, keepdim=True)
        return torch.softmax(self.first(x), -1) * torch.softmax(self.second(x), -1) + third

    def port(self: Any, x: Any) -> Any:
        softmax = paddle_functional.softmax
        return softmax(self.first(x), 1) * softmax(self.second(x), 1) + softmax(x, -1)

    cause = the_cause(_report(reference, port))
    assert cause.code == "op.axis"
    assert "exp" not in cause.message


def test_two_mistakes_one_behind_the_other_are_both_said() -> None:
    def reference(self: Any, x: Any) -> Any:
        y = torch.sigmoid(self.first(x)) * x
        return self.second(y - y.mean(1, keepdim=True))

    def port(self: Any, x: Any) -> Any:
        y = paddle_functional.silu(self.first(x)) * x
        return self.second(y + y.mean(1, keepdim=True))

    cause = the_cause(_report(reference, port))
    assert cause.code == "op.activation"
    assert "silu in the port" in cause.message
    assert "sub in the reference" in cause.message
