"""One against many where more than one layer is in question: norms behind, towers, raw parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.weights.transfer import transfer
from tests.pairs.vision import torchvision_models
from tests.pairs.weights.tools import gap, randomise, run

T, P = torch.nn, paddle.nn
WAYS = pytest.mark.parametrize("swapped", [False, True], ids=["torch-paddle", "paddle-torch"])


def floats(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def agree(first: Any, second: Any, swapped: bool, *inputs: np.ndarray) -> None:
    reference, port = (second, first) if swapped else (first, second)
    reference, port = randomise(reference, 1), randomise(port, 2)
    plan = transfer(reference, port, inputs)
    assert plan.complete
    assert plan.verified
    assert gap(run(reference, *inputs), run(port, *inputs)) < 1e-5


class Joined(T.Module):
    """A convolution with its norm, then two halves."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn = T.Conv2d(3, 8, 3, bias=False), T.BatchNorm2d(8)
        self.inner, self.last = T.Conv2d(4, 4, 1), T.Conv2d(8, 2, 1)

    def forward(self, x: Any) -> Any:
        left, right = torch.relu(self.bn(self.conv(x))).chunk(2, 1)
        return self.last(torch.cat([left, self.inner(right)], 1))


class Apart(P.Layer):
    """The halves apart from the beginning; ``first``: which of the two is used as the first half."""

    def __init__(self, first: str = "a") -> None:
        super().__init__()
        self.first, self.second = (first, "b") if first == "a" else (first, "a")
        for name in "ab":
            setattr(self, f"conv_{name}", P.Conv2D(3, 4, 3, bias_attr=False))
            setattr(self, f"norm_{name}", P.BatchNorm2D(4))
        self.within, self.end = P.Conv2D(4, 4, 1), P.Conv2D(8, 2, 1)

    def half(self, name: str, x: Any) -> Any:
        return P.functional.relu(getattr(self, f"norm_{name}")(getattr(self, f"conv_{name}")(x)))

    def forward(self, x: Any) -> Any:
        left, right = self.half(self.first, x), self.half(self.second, x)
        return self.end(paddle.concat([left, self.within(right)], 1))


@WAYS
@pytest.mark.parametrize("first", ["a", "b"])
def test_the_norm_behind_divides_as_its_layer(swapped: bool, first: str) -> None:
    agree(Joined(), Apart(first), swapped, floats(2, 3, 6, 6))


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean and variance")
@WAYS
def test_statistics_of_a_divided_norm_are_compared_by_their_own_count(swapped: bool) -> None:
    pair = randomise(Joined(), 1), randomise(Apart(), 2)
    report = pf.align(*(pair[::-1] if swapped else pair), floats(2, 3, 6, 6), mode="train")
    assert report.ok
    assert "divides by n, the other by n - 1" in str(report.findings)


class Modulated(T.Module):
    """Factors and shifts from one layer; those of the first block are as large as half of the second's."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = T.Linear(6, 8), T.Linear(6, 16)
        self.first, self.second = T.Linear(5, 4), T.Linear(4, 8)

    def forward(self, x: Any, condition: Any) -> Any:
        for layer, both in ((self.first, self.one(condition)), (self.second, self.two(condition))):
            factor, shift = both.chunk(2, -1)
            x = torch.tanh(layer(x) * (1 + factor) + shift)
        return x


class ModulatedApart(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = P.Linear(5, 4), P.Linear(4, 8)
        self.s4, self.t4, self.s8, self.t8 = (P.Linear(6, width) for width in (4, 4, 8, 8))

    def forward(self, x: Any, condition: Any) -> Any:
        x = paddle.tanh(self.a(x) * (1 + self.s4(condition)) + self.t4(condition))
        return paddle.tanh(self.b(x) * (1 + self.s8(condition)) + self.t8(condition))


@WAYS
def test_what_a_better_explanation_frees_is_explained_too(swapped: bool) -> None:
    agree(Modulated(), ModulatedApart(), swapped, floats(3, 5), floats(3, 6, seed=4))


class Towers(T.Module):
    """The right tower runs first."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = (T.ModuleList([self.block() for _ in range(2)]) for _ in range(2))

    @staticmethod
    def block() -> Any:
        return T.ModuleDict({name: T.Linear(6, 6) for name in ("query", "key", "value")})

    def tower(self, blocks: Any, x: Any) -> Any:
        for block in blocks:
            scores = (block["query"](x) @ block["key"](x).transpose(1, 2)).softmax(-1)
            x = x + scores @ block["value"](x)
        return x

    def forward(self, x: Any, y: Any) -> Any:
        y = self.tower(self.right, y)
        return self.tower(self.left, x).mean(1) * y.mean(1)


class Block(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.three = P.Linear(6, 18)

    def forward(self, x: Any) -> Any:
        q, k, v = self.three(x).chunk(3, -1)
        return x + P.functional.softmax(q @ k.transpose([0, 2, 1]), -1) @ v


class FusedTowers(P.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.second, self.first = (P.Sequential(Block(), Block()) for _ in range(2))

    def forward(self, x: Any, y: Any) -> Any:
        return self.first(x).mean(1) * self.second(y).mean(1)


def test_values_say_which_of_several_fused_layers_is_which() -> None:
    agree(Towers(), FusedTowers(), False, floats(2, 4, 6), floats(2, 4, 6, seed=5))


class Scaled(T.Module):
    """A root mean square norm as a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = T.Parameter(torch.ones(6))

    def forward(self, x: Any) -> Any:
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)


class Normed(T.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.after, self.final = Scaled(), Scaled(), Scaled()
        self.mix, self.wide = T.Linear(6, 6), T.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        x = x + torch.tanh(self.mix(self.before(x)))
        return self.final(x + torch.relu(self.wide(self.after(x))))


class NormedRaw(P.Layer):
    """The factors are parameters of the block itself, listed in another order than they are used."""

    def __init__(self) -> None:
        super().__init__()
        for name in ("g2", "g0", "g1"):
            setattr(self, name, self.create_parameter([6]))
        self.l0, self.l1 = P.Linear(6, 6), P.Linear(6, 6)

    def norm(self, x: Any, factor: Any) -> Any:
        return factor * x * paddle.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)

    def forward(self, x: Any) -> Any:
        x = x + paddle.tanh(self.l0(self.norm(x, self.g0)))
        return self.norm(x + P.functional.relu(self.l1(self.norm(x, self.g1))), self.g2)


@WAYS
def test_raw_factors_of_a_block_are_tried_in_every_order(swapped: bool) -> None:
    agree(Normed(), NormedRaw(), swapped, floats(3, 4, 6))


def test_norms_stay_with_their_partners_where_a_larger_one_has_none() -> None:
    # the auxiliary head's norm of 768 channels is as large as four norms of a block together
    reference = torchvision_models.inception_v3(init_weights=False)
    plan = pf.transfer(reference, paddle.vision.models.inception_v3(), partial=True)
    assert not any(entry.source.startswith("AuxLogits.") for entry in plan.entries)
    assert len(plan.entries) == 94 * 5 + 2  # a convolution and four tensors of a norm each; the last layer
