"""What calls give and who goes on with it: routers, heads with two results, outputs made of one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

T, P, F = torch.nn, paddle.nn, paddle.nn.functional
X = np.random.default_rng(3).standard_normal((5, 6)).astype(np.float32)
WAYS = pytest.mark.parametrize("swapped", [False, True], ids=["torch-paddle", "paddle-torch"])
MODES = pytest.mark.parametrize("mode", ["eval", "train"])


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(5)
    paddle.seed(5)


def same(first: Any, second: Any, swapped: bool, mode: str) -> bool:
    reference, port = (second, first) if swapped else (first, second)
    return pf.align(reference, port, X, mode=mode).ok


class Router(T.Module):
    """Gives logits, and the shares made from them, which alone are used."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = T.Parameter(torch.randn(3, 6))

    def forward(self, x: Any) -> Any:
        logits = x @ self.weight.t()
        return logits, logits.softmax(-1)


class Routed(T.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router, self.experts = Router(), T.Linear(6, 12)

    def forward(self, x: Any) -> Any:
        _, shares = self.router(x)
        return (self.experts(x).view(5, 3, 4) * shares[:, :, None]).sum(1)


class RoutedPort(P.Layer):
    def __init__(self, stops: bool = False) -> None:
        super().__init__()
        self.stops, self.gate, self.wide = stops, P.Linear(6, 3, bias_attr=False), P.Linear(6, 12)

    def forward(self, x: Any) -> Any:
        shares = F.softmax(self.gate(x), -1)
        shares = shares.detach() if self.stops else shares
        return (self.wide(x).reshape([5, 3, 4]) * shares.unsqueeze(-1)).sum(1)


@WAYS
@MODES
def test_an_output_that_one_side_goes_on_without(swapped: bool, mode: str) -> None:
    assert same(Routed(), RoutedPort(), swapped, mode)


def test_a_router_that_gets_no_gradient_is_found() -> None:
    assert not same(Routed(), RoutedPort(stops=True), False, "eval")


class TwoHeads(T.Module):
    """Two heads apart."""

    def __init__(self) -> None:
        super().__init__()
        self.body = T.Linear(6, 8)
        self.boxes, self.classes = (T.Sequential(T.Linear(8, 8), T.ReLU(), T.Linear(8, n)) for n in (4, 3))

    def forward(self, x: Any) -> Any:
        x = torch.tanh(self.body(x))
        return self.boxes(x), self.classes(x)


class Head(P.Layer):
    """Both heads in one."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.b0, self.b1, self.c0, self.c1 = P.Linear(8, 8), P.Linear(8, 4), P.Linear(8, 8), P.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.b1(F.relu(self.b0(x))), self.scale * self.c1(F.relu(self.c0(x)))


class TwoHeadsPort(P.Layer):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.trunk, self.head = P.Linear(6, 8), Head(scale)

    def forward(self, x: Any) -> Any:
        return self.head(paddle.tanh(self.trunk(x)))


@WAYS
@MODES
def test_a_block_that_gives_more_than_another_is_not_its_pair(swapped: bool, mode: str) -> None:
    assert same(TwoHeads(), TwoHeadsPort(), swapped, mode)


def test_a_wrong_second_result_is_found() -> None:
    assert not same(TwoHeads(), TwoHeadsPort(1.001), False, "eval")


class Contrast(T.Module):
    """The second output is made of the first."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = T.Linear(6, 4), T.Linear(6, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        by_text = self.left(x) @ self.right(x).t()
        return {"image": by_text.t(), "text": by_text}


class ContrastPort(P.Layer):
    """The other way round."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale, self.left, self.right = scale, P.Linear(6, 4), P.Linear(6, 4)

    def forward(self, x: Any) -> dict[str, Any]:
        by_image = self.right(x) @ self.left(x).T * self.scale
        return {"image": by_image, "text": by_image.T}


@WAYS
@MODES
def test_outputs_made_of_one_another_either_way_round(swapped: bool, mode: str) -> None:
    assert same(Contrast(), ContrastPort(), swapped, mode)


def test_a_wrong_output_made_of_another_is_found() -> None:
    assert not same(Contrast(), ContrastPort(1.001), False, "eval")


def test_a_loss_of_the_user_s_that_sends_back_something_else_is_found() -> None:
    losses = (
        lambda out: out["text"].sum() + out["text"].pow(2).sum() * 0,
        lambda out: out["text"].sum() * 1.01,
    )
    report = pf.align(Contrast(), ContrastPort(), X, loss=losses)
    assert not report.ok
