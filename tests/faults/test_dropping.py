"""Dropout is off while two models are compared; that it would work differently is said all the same."""

from __future__ import annotations

import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


def pair(probability: float = 0.2, other: float = 0.2) -> tuple[torch.nn.Module, paddle.nn.Layer]:
    reference = seeded(
        lambda: nn.Sequential(nn.Linear(12, 8), nn.Dropout(probability), nn.ReLU(), nn.Dropout(0.1))
    )
    port = pnn.Sequential(pnn.Linear(12, 8), pnn.Dropout(other), pnn.ReLU(), pnn.Dropout(0.1))
    port.eval()
    return reference, port


def test_one_dropout_left_in_train_mode() -> None:
    reference, port = pair()
    port[3].train()
    report = align(reference, port, numbers(4, 12), mode="keep")
    cause = the_cause(report)
    assert cause.code == "mode.training"
    assert cause.message == "3 (Dropout) is in eval mode in the reference, in train mode in the port"
    assert cause.fix == "port[3].eval()"
    mend(port, cause.fix)
    assert align(reference, port, numbers(4, 12), mode="keep").ok


def test_a_dropout_that_drops_nothing_may_be_in_any_mode() -> None:
    reference, port = pair(0.0, 0.0)
    port[1].train()
    assert align(reference, port, numbers(4, 12), mode="keep").ok


@pytest.mark.parametrize("mode", ["eval", "train", "keep"])
def test_the_same_dropout_is_not_mentioned(mode: str) -> None:
    report = align(*pair(), numbers(4, 12), mode=mode)
    assert report.ok
    assert not [finding for finding in report.findings if finding.code == "random.dropout"]


@pytest.mark.parametrize("mode", ["train", "keep"])
def test_another_probability(mode: str) -> None:
    reference, port = pair(0.2, 0.5)
    reference.train()
    port.train()
    cause = the_cause(align(reference, port, numbers(4, 12), mode=mode))
    assert cause.code == "random.dropout"
    assert cause.message == "1 (Dropout) drops with probability 0.2 in the reference, 0.5 in the port"
    exec(cause.fix, {"port": port})
    assert align(reference, port, numbers(4, 12), mode=mode).ok


def test_in_eval_another_probability_is_a_finding() -> None:
    report = align(*pair(0.2, 0.5), numbers(4, 12))
    assert report.ok
    (finding,) = (finding for finding in report.findings if finding.code == "random.dropout")
    assert "0.2 in the reference, 0.5 in the port; nothing is dropped" in finding.message


def test_with_one_dropout_less_no_probability_is_compared() -> None:
    reference, _ = pair(0.2)
    port = pnn.Sequential(pnn.Linear(12, 8), pnn.ReLU(), pnn.Dropout(0.5))
    assert align(reference, port, numbers(4, 12), mode="train").ok


def test_what_is_ignored_may_drop_as_it_likes() -> None:
    reference, port = pair(0.2, 0.5)
    assert align(reference, port, numbers(4, 12), mode="train", ignore=["1"]).ok


def test_a_recurrent_layer_drops_inside() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(6, 5, 2, dropout=0.3, batch_first=True)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.lstm(x)[0]

    class PaddleLast(pnn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = pnn.LSTM(6, 5, 2, dropout=0.1)

        def forward(self, x: paddle.Tensor) -> paddle.Tensor:
            return self.lstm(x)[0]

    report = align(seeded(Last), PaddleLast(), numbers(3, 4, 6), mode="train")
    assert [each.cause.code for each in own(report) if each.cause] == ["random.dropout"]


class TorchHead(nn.Module):
    """Drops by a function, at a rate that its own attribute says."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 8), nn.Linear(8, 8)
        self.rate = rate

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(nn.functional.dropout(self.first(x), self.rate, training=self.training))


class PaddleHead(pnn.Layer):
    """The same with stochastic depth written out besides."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.first, self.second = pnn.Linear(12, 8), pnn.Linear(8, 8)
        self.drop_ratio, self.factor = 0.3, factor

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        x = pnn.functional.dropout(self.first(x), 0.2, training=self.training)
        if self.training and self.drop_ratio > 0:
            x = x * (paddle.rand([x.shape[0], 1]) > self.drop_ratio).astype(x.dtype) / (1 - self.drop_ratio)
        return self.second(self.factor * x)


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_nothing_is_dropped_by_functions_or_by_code_of_the_users(mode: str) -> None:
    port = PaddleHead()
    report = align(seeded(lambda: TorchHead(0.2)), port, numbers(4, 12), mode=mode)
    assert report.ok, str(report)
    assert port.drop_ratio == 0.3


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_a_mistake_beside_a_function_that_drops_is_no_noise(mode: str) -> None:
    report = align(seeded(lambda: TorchHead(0.2)), PaddleHead(0.9), numbers(4, 12), mode=mode)
    assert the_cause(report).code == "op.scale"


class TorchNoisy(TorchHead):
    """Adds noise in training, and nothing says how much."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.first(x)
        return self.second(hidden + 0.1 * torch.randn_like(hidden) if self.training else hidden)


def test_a_reference_that_does_not_repeat_itself_is_not_taken_for_noisy() -> None:
    report = align(seeded(lambda: TorchNoisy(0.0)), PaddleHead(), numbers(4, 12), mode="train")
    assert report.first is not None
    assert "it draws random numbers" in report.first.message
    assert align(seeded(lambda: TorchNoisy(0.0)), PaddleHead(), numbers(4, 12), mode="eval").ok


class TorchPath(nn.Module):
    """Stochastic depth; in torchvision's way a module also where it drops nothing."""

    def __init__(self, rates: tuple[float, ...]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in rates)
        self.depths = nn.ModuleList(StochasticDepth(rate) for rate in rates)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, depth in zip(self.layers, self.depths, strict=True):
            x = x + depth(layer(x))
        return x


class StochasticDepth(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.bernoulli(torch.full((len(x), 1), 1 - self.p)) / (1 - self.p) if self.training else x


class DropPath(pnn.Layer):
    def __init__(self, drop_prob: float) -> None:
        super().__init__()
        self.drop_prob = drop_prob

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        if not self.training or self.drop_prob == 0.0:
            return x
        return x * paddle.bernoulli(paddle.full([x.shape[0], 1], 1 - self.drop_prob)) / (1 - self.drop_prob)


class PaddlePath(pnn.Layer):
    """In the way of most ports, an identity where nothing is dropped."""

    def __init__(self, rates: tuple[float, ...]) -> None:
        super().__init__()
        self.layers = pnn.LayerList([pnn.Linear(12, 12) for _ in rates])
        self.depths = pnn.LayerList([DropPath(rate) if rate > 0 else pnn.Identity() for rate in rates])

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        for layer, depth in zip(self.layers, self.depths, strict=True):
            x = x + depth(layer(x))
        return x


def paths(*rates: float) -> tuple[torch.nn.Module, paddle.nn.Layer]:
    return seeded(lambda: TorchPath((0.0, 0.1, 0.2))), PaddlePath(rates)


def test_identities_where_nothing_is_dropped() -> None:
    report = align(*paths(0.0, 0.1, 0.2), numbers(4, 12), mode="train")
    assert report.ok, str(report)


def test_rates_that_are_computed_otherwise() -> None:
    report = align(*paths(0.0, 0.2 - 0.1 + 1e-12, 0.3 - 0.1), numbers(4, 12), mode="train")
    assert report.ok, str(report)


def test_another_rate_beside_identities() -> None:
    report = align(*paths(0.0, 0.05, 0.1), numbers(4, 12), mode="train")
    causes = [each.cause for each in own(report) if each.cause]
    assert [cause.code for cause in causes] == ["random.dropout"] * 2
    assert [cause.fix for cause in causes] == [
        "port.depths[1].drop_prob = 0.1",
        "port.depths[2].drop_prob = 0.2",
    ]


class TorchDropping(nn.Module):
    """Drops twice, by functions or by layers."""

    def __init__(self, rates: tuple[float, ...], kinds: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in rates)
        self.drops = nn.ModuleList(
            nn.Dropout(rate) if kind == "l" else nn.Identity()
            for rate, kind in zip(rates, kinds, strict=True)
        )
        self.drop_rates, self.kinds = rates, kinds
        self.drop = rates[-1]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer, drop, rate, kind in zip(self.layers, self.drops, self.drop_rates, self.kinds, strict=True):
            x = drop(layer(x))
            if kind == "f":
                x = nn.functional.dropout(x, rate, self.training)
            if kind == "a":
                x = nn.functional.dropout(x, p=self.drop, training=self.training)
        return x


class PaddleDropping(pnn.Layer):
    def __init__(self, rates: tuple[float, ...], kinds: str) -> None:
        super().__init__()
        self.layers = pnn.LayerList([pnn.Linear(12, 12) for _ in rates])
        self.drops = pnn.LayerList(
            [
                pnn.Dropout(rate) if kind == "l" else pnn.Identity()
                for rate, kind in zip(rates, kinds, strict=True)
            ]
        )
        self.drop_rates, self.kinds = rates, kinds
        self.drop = rates[-1]

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        for layer, drop, rate, kind in zip(self.layers, self.drops, self.drop_rates, self.kinds, strict=True):
            x = drop(layer(x))
            if kind == "f":
                x = pnn.functional.dropout(x, rate, training=self.training)
            if kind == "a":
                x = pnn.functional.dropout(x, p=self.drop, training=self.training)
        return x


def in_turn(ours: tuple[float, ...], kinds: str, theirs: tuple[float, ...], other: str) -> list[str]:
    reference = seeded(lambda: TorchDropping(ours, kinds))
    report = align(reference, PaddleDropping(theirs, other), numbers(4, 12), mode="train")
    causes = [each.cause for each in own(report)]
    assert all(cause is not None and cause.code == "random.dropout" for cause in causes), str(report)
    return [cause.message for cause in causes if cause is not None]


@pytest.mark.parametrize("kinds", ["ll", "ff", "lf", "fa", "la"])
@pytest.mark.parametrize("other", ["ll", "ff", "fl", "fa", "la"])
def test_layers_and_functions_that_drop_the_same(kinds: str, other: str) -> None:
    assert in_turn((0.1, 0.2), kinds, (0.1, 0.2), other) == []


@pytest.mark.parametrize("kinds", ["ll", "ff", "lf", "fa"])
@pytest.mark.parametrize("other", ["ff", "lf", "fa", "la"])
def test_a_function_with_another_rate(kinds: str, other: str) -> None:
    (message,) = in_turn((0.1, 0.2), kinds, (0.1, 0.3), other)
    assert message.startswith("dropout in the model (test_dropping.py:")
    assert ") drops with probability 0.3 in the port; in the reference " in message
    ours = "drops.1 (Dropout)" if kinds[1] == "l" else "dropout in the model (test_dropping.py:"
    assert f"in the reference {ours}" in message
    assert message.endswith(" with 0.2")


def test_a_layer_with_another_rate_than_the_function() -> None:
    reference = seeded(lambda: TorchDropping((0.1, 0.2), "ff"))
    port = PaddleDropping((0.3, 0.2), "ll")
    cause = the_cause(align(reference, port, numbers(4, 12), mode="train"))
    assert cause.message.startswith("drops.0 (Dropout) drops with probability 0.3 in the port; in the ")
    mend(port, cause.fix)
    assert align(reference, port, numbers(4, 12), mode="train").ok


@pytest.mark.parametrize(
    ("ours", "kinds", "theirs", "other"),
    [
        ((0.1, 0.2), "ff", (0.2, 0.1), "ff"),  # perhaps in another order
        ((0.1, 0.2), "ff", (0.2, 0.3), "ff"),  # which of them is wrong is a guess
        ((0.1, 0.2, 0.1), "fff", (0.1, 0.2, 0.3), "ffi"),  # one less
        ((0.0, 0.2), "ff", (0.0, 0.2), "if"),  # nothing is dropped
    ],
)
def test_what_cannot_be_told_apart_is_not_compared(
    ours: tuple[float, ...], kinds: str, theirs: tuple[float, ...], other: str
) -> None:
    assert in_turn(ours, kinds, theirs, other) == []


def test_what_is_ignored_may_ask_functions_to_drop() -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(12, 12), TorchDropping((0.1, 0.2), "ff")))
    port = pnn.Sequential(pnn.Linear(12, 12), PaddleDropping((0.1, 0.3), "ff"))
    assert not align(reference, port, numbers(4, 12), mode="train").ok
    assert align(reference, port, numbers(4, 12), mode="train", ignore=["1"]).ok


def test_in_eval_functions_are_not_asked() -> None:
    reference = seeded(lambda: TorchDropping((0.1, 0.2), "ff"))
    assert align(reference, PaddleDropping((0.1, 0.3), "ff"), numbers(4, 12)).ok


class TorchDropPath(nn.Module):
    def __init__(self, scaled: bool = True) -> None:
        super().__init__()
        self.drop_prob, self.scaled = 0.2, scaled

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training or self.drop_prob == 0.0:
            return x
        keep = 1.0 - self.drop_prob
        kept = x * torch.bernoulli(torch.full((x.shape[0], *[1] * (x.ndim - 1)), keep))
        return kept / keep if self.scaled else kept


class PaddleDropPath(pnn.Layer):
    def __init__(self, scaled: bool) -> None:
        super().__init__()
        self.drop_prob, self.scaled = 0.2, scaled

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        if not self.training or self.drop_prob == 0.0:
            return x
        keep = 1.0 - self.drop_prob
        kept = x * paddle.bernoulli(paddle.full([x.shape[0], *[1] * (x.ndim - 1)], keep))
        return kept / keep if self.scaled else kept


def scaled_paths(scaled: bool) -> tuple[nn.Module, pnn.Layer]:
    reference = seeded(lambda: nn.Sequential(nn.Linear(12, 12), TorchDropPath(), nn.Linear(12, 3)))
    return reference, pnn.Sequential(pnn.Linear(12, 12), PaddleDropPath(scaled), pnn.Linear(12, 3))


def test_what_is_kept_is_not_scaled() -> None:
    report = align(*scaled_paths(scaled=False), numbers(4, 12), mode="train")
    (divergence,) = own(report)
    assert divergence.cause is not None
    assert divergence.cause.code == "random.dropout"
    assert divergence.cause.message == (
        "1 (PaddleDropPath) gives 1.25 times what it keeps in the reference, 1 times in the port "
        "(probability 0.2)"
    )
    assert divergence.cause.fix == "multiply what port[1] keeps by 1.25 in train mode"


def test_in_eval_mode_that_is_only_worth_knowing() -> None:
    report = align(*scaled_paths(scaled=False), numbers(4, 12), mode="eval")
    assert report.ok
    assert [each.code for each in report.findings] == ["random.dropout"]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_what_is_kept_is_scaled_alike(mode: str) -> None:
    report = align(*scaled_paths(scaled=True), numbers(4, 12), mode=mode)
    assert report.ok
    assert not report.findings
