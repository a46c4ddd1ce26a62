"""The same work divided differently: who makes windows, who takes a tensor how often, who calls a layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

WIDTH, SIDE, WINDOW = 12, 8, 2
MODES = ("eval", "train")


def rows(*shape: int) -> Any:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(5)


class TorchWindows(torch.nn.Module):
    """Attention that divides an image into windows itself, and uses its layers' weights without a call."""

    def __init__(self, shift: int) -> None:
        super().__init__()
        self.shift = shift
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH)
        self.table = torch.nn.Parameter(torch.randn(WINDOW**2, WINDOW**2))
        self.proj = torch.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("index", torch.arange(WINDOW**4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = SIDE // WINDOW
        x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = x.view(-1, count, WINDOW, count, WINDOW, WIDTH).permute(0, 1, 3, 2, 4, 5)
        x = x.reshape(-1, WINDOW**2, WIDTH)
        query, key, value = torch.nn.functional.linear(x, self.qkv.weight, self.qkv.bias).chunk(3, -1)
        bias = self.table.reshape(-1)[self.index].reshape(WINDOW**2, WINDOW**2)
        mixed = (query @ key.transpose(1, 2) * 0.25 + bias).softmax(-1) @ value
        x = torch.nn.functional.linear(mixed, self.proj.weight, self.proj.bias)
        x = x.view(-1, count, count, WINDOW, WINDOW, WIDTH).permute(0, 1, 3, 2, 4, 5)
        return torch.roll(x.reshape(-1, SIDE, SIDE, WIDTH), (self.shift, self.shift), (1, 2))


class TorchBlock(torch.nn.Module):
    def __init__(self, shift: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attn = TorchWindows(shift)
        self.mlp = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attn(self.norm(x))
        return x + self.mlp(x)


class PaddleAttention(paddle.nn.Layer):
    """Takes windows, and knows nothing of the image."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.qkv = paddle.nn.Linear(WIDTH, 3 * WIDTH)
        self.table = self.create_parameter([WINDOW**2, WINDOW**2])
        self.proj = paddle.nn.Linear(WIDTH, WIDTH)
        self.register_buffer("index", paddle.arange(WINDOW**4).reshape([WINDOW**2, WINDOW**2]))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        query, key, value = self.qkv(x).chunk(3, -1)
        bias = paddle.gather(self.table.reshape([-1]), self.index.reshape([-1])).reshape(self.index.shape)
        scores = query.matmul(key, transpose_y=True) * self.scale + bias
        return self.proj(paddle.nn.functional.softmax(scores, -1).matmul(value))


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, shift: int, back: int, scale: float) -> None:
        super().__init__()
        self.shift, self.back = shift, back
        self.norm = paddle.nn.LayerNorm(WIDTH)
        self.attn = PaddleAttention(scale)
        self.mlp = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        count = SIDE // WINDOW
        y = paddle.roll(self.norm(x), (-self.shift, -self.shift), (1, 2))
        y = y.reshape([-1, count, WINDOW, count, WINDOW, WIDTH]).transpose([0, 1, 3, 2, 4, 5])
        y = self.attn(y.reshape([-1, WINDOW**2, WIDTH]))
        y = y.reshape([-1, count, count, WINDOW, WINDOW, WIDTH]).transpose([0, 1, 3, 2, 4, 5])
        x = x + paddle.roll(y.reshape([-1, SIDE, SIDE, WIDTH]), (self.back, self.back), (1, 2))
        return x + self.mlp(x)


def windows(back: int = 1, scale: float = 0.25) -> tuple[torch.nn.Module, paddle.nn.Layer]:
    reference = torch.nn.Sequential(TorchBlock(0), TorchBlock(1), torch.nn.Linear(WIDTH, 5))
    blocks = PaddleBlock(0, 0, scale), PaddleBlock(1, back, scale)
    return reference, paddle.nn.Sequential(*blocks, paddle.nn.Linear(WIDTH, 5))


@pytest.mark.parametrize("mode", MODES)
def test_windows_may_be_made_inside_or_outside_of_the_attention(mode: Any) -> None:
    report = pf.align(*windows(), rows(2, SIDE, SIDE, WIDTH), mode=mode)
    assert report.ok, str(report)
    assert "attn" not in {pair.port.path.rpartition(".")[2] for pair in report.pairs}
    assert not [each for each in report.findings if each.code == "floor.imprecise"]


def test_windows_that_are_shifted_back_the_wrong_way_are_found_around_the_attention() -> None:
    first = pf.align(*windows(back=-1), rows(2, SIDE, SIDE, WIDTH)).first
    assert first is not None
    assert first.port is not None
    assert (first.phase, first.port.path) == ("forward", "1")


def test_a_mistake_in_every_attention_is_not_blamed_on_the_windows() -> None:
    report = pf.align(*windows(scale=0.5), rows(2, SIDE, SIDE, WIDTH))
    own = [each for each in report.divergences if not each.inherited]
    assert [each.port.path for each in own if each.port is not None] == ["0.attn", "1.attn"]
    assert [each.cause.code for each in own if each.cause is not None] == ["op.scale"] * 2


class TorchSelf(torch.nn.Module):
    """Hands one tensor to the attention three times."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(WIDTH)
        self.attention = torch.nn.MultiheadAttention(WIDTH, 3, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + self.attention(y, y, y, need_weights=False)[0]


class PaddleOnce(paddle.nn.Layer):
    """An attention that takes its tensor once."""

    def __init__(self, detached: bool) -> None:
        super().__init__()
        self.detached = detached
        self.qkv = paddle.nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = paddle.nn.Linear(WIDTH, WIDTH)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        split = self.qkv(x).reshape([0, 0, 3, 3, WIDTH // 3]).transpose([2, 0, 3, 1, 4])
        query, key, value = split[0], split[1], split[2]
        key = key.detach() if self.detached else key
        scores = query.matmul(key, transpose_y=True) * (WIDTH // 3) ** -0.5
        mixed = paddle.nn.functional.softmax(scores, -1).matmul(value)
        return self.proj(mixed.transpose([0, 2, 1, 3]).reshape(x.shape))


class PaddleSelf(paddle.nn.Layer):
    def __init__(self, attention: paddle.nn.Layer, times: int) -> None:
        super().__init__()
        self.norm = paddle.nn.LayerNorm(WIDTH)
        self.attention = attention
        self.times = times

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return x + self.attention(*[self.norm(x)] * self.times)


class TorchOnce(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.MultiheadAttention(WIDTH, 3, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = torch.nn.functional.linear(
            x, self.inner.in_proj_weight, self.inner.in_proj_bias
        ).chunk(3, -1)
        heads = [each.unflatten(-1, (3, -1)).transpose(1, 2) for each in (query, key, value)]
        mixed = torch.nn.functional.scaled_dot_product_attention(*heads)
        return self.inner.out_proj(mixed.transpose(1, 2).flatten(2))


@pytest.mark.parametrize("mode", MODES)
def test_one_tensor_may_be_taken_three_times_or_once(mode: Any) -> None:
    port = PaddleSelf(PaddleOnce(detached=False), 1)
    report = pf.align(TorchSelf(), port, rows(2, 5, WIDTH), mode=mode)
    assert report.ok, str(report)


@pytest.mark.parametrize("mode", MODES)
def test_one_tensor_may_be_taken_once_or_three_times(mode: Any) -> None:
    reference = TorchSelf()
    reference.attention = TorchOnce()
    reference.forward = lambda x: x + reference.attention(reference.norm(x))
    port = PaddleSelf(paddle.nn.MultiHeadAttention(WIDTH, 3), 3)
    report = pf.align(reference, port, rows(2, 5, WIDTH), mode=mode)
    assert report.ok, str(report)


def test_a_gradient_that_is_lost_inside_is_still_missed_at_the_one_tensor() -> None:
    report = pf.align(TorchSelf(), PaddleSelf(PaddleOnce(detached=True), 1), rows(2, 5, WIDTH))
    first = report.first
    assert first is not None
    assert first.port is not None
    assert (first.phase, first.port.path) == ("backward", "attention")
    assert first.cause is not None
    assert first.cause.code == "grad.detached"


class Sorting(torch.nn.Module):
    """Gives rows to a block of layers in an order of its own, and puts them back."""

    def __init__(self) -> None:
        super().__init__()
        self.block = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, 8), torch.nn.ReLU(), torch.nn.Linear(8, WIDTH)
        )
        self.head = torch.nn.Linear(WIDTH, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        order = torch.argsort(x[:, 0])
        y: torch.Tensor = self.head(torch.zeros_like(x).index_copy(0, order, self.block(x[order])))
        return y


class Unsorted(paddle.nn.Layer):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.block = paddle.nn.Sequential(
            paddle.nn.Linear(WIDTH, 8), paddle.nn.ReLU(), paddle.nn.Linear(8, WIDTH)
        )
        self.head = paddle.nn.Linear(WIDTH, 4)
        self.scale = scale

    def forward(self, x: Any) -> Any:
        return self.head(self.block(x) * self.scale)


def test_rows_may_be_given_in_another_order_to_layers_inside_of_layers() -> None:
    torch.manual_seed(2)
    report = pf.align(Sorting(), Unsorted(), rows(9, WIDTH))
    assert report.ok, str(report)


def test_a_mistake_beside_rows_in_another_order_is_found() -> None:
    torch.manual_seed(2)
    assert not pf.align(Sorting(), Unsorted(1.01), rows(9, WIDTH)).ok
