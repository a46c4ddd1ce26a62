"""What rounding may do is acquitted, however it comes about; the smallest real mistakes are not."""

from __future__ import annotations

import math

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.judge.floors import NOTHING, Size
from parfocal.replay.noise_floors import is_gone
from tests.conformance.models import kit_for
from tests.pairs.workflow.tools import PADDLE, TORCH, lively

WIDE = np.random.default_rng(0).normal(size=(8, 512)).astype("float32")


def chunked_linear(self, x):
    """The same sum in another order: chunk by chunk, each added to what is there already."""
    weight, bias = self.layer.weight, self.layer.bias
    total = bias
    for start in range(0, 512, 32):
        total = total + x[:, start : start + 32] @ weight[start : start + 32]
    return total


def naive_linear(self, x):
    """One product after the other: the least precise order there is."""
    weight = self.layer.weight
    total = x[:, 0:1] * weight[0:1]
    for index in range(1, 512):
        total = total + x[:, index : index + 1] * weight[index : index + 1]
    return total + self.layer.bias


def linear_pair(forward):
    """A library layer of the reference against a hand-written one of the port."""
    kits = kit_for(TORCH), kit_for(PADDLE)
    inner = kits[0].module(lambda self, x: self.layer(x), "Inner", layer=kits[0].linear(512, 16))
    reference = kits[0].module(
        lambda self, x: self.last(self.inner(x)), inner=inner, last=kits[0].linear(16, 4)
    )
    inner = kits[1].module(forward, "Inner", layer=kits[1].linear(512, 16))
    port = kits[1].module(lambda self, x: self.last(self.inner(x)), inner=inner, last=kits[1].linear(16, 4))
    return lively(kits[0], reference, 0), lively(kits[1], port, 1)


@pytest.mark.parametrize("forward", [chunked_linear, naive_linear])
def test_another_order_of_summation_is_the_same(forward):
    report = pf.align(*linear_pair(forward), WIDE)
    assert report.ok, str(report)


# Equal terms round in the same direction every time, if they are added one by one.
POSITIVE = np.repeat(np.random.default_rng(1).uniform(0.5, 1.5, (8, 1)), 1024, axis=1).astype("float32")


def sum_pair(by_hand):
    """A long sum of numbers of one sign: what one order loses, no small change of the input shows."""
    kits = kit_for(TORCH), kit_for(PADDLE)
    models = []
    for kit, function in zip(kits, (lambda self, x: x.sum(-1, keepdim=True) / 1024, by_hand), strict=True):
        mean = kit.module(function, "Mean")
        model = kit.module(lambda self, x: self.last(self.mean(x)), mean=mean, last=kit.linear(1, 4))
        models.append(lively(kit, model, 0))
    return models


def one_by_one(self, x):
    total = x[:, 0:1]
    for index in range(1, 1024):
        total = total + x[:, index : index + 1]
    return total / 1024


def test_a_long_sum_in_the_worst_order_is_the_same():
    report = pf.align(*sum_pair(one_by_one), POSITIVE)
    assert report.ok, str(report)


def test_a_long_sum_with_a_slightly_wrong_divisor_is_not():
    report = pf.align(*sum_pair(lambda self, x: x.sum(-1, keepdim=True) / 1024.01), POSITIVE)
    assert not report.ok
    assert report.first.port.path == "mean"


def test_a_term_left_out_is_not_another_order_of_summation():
    def without_the_last(self, x):
        return chunked_linear(self, x) - x[:, 511:] @ self.layer.weight[511:] * 1e-4

    report = pf.align(*linear_pair(without_the_last), WIDE)
    assert not report.ok
    assert report.first.port.path == "inner"


def naive_mean_norm(self, x):
    """A LayerNorm by hand, with sums in a loop."""
    count = 512
    total = x[:, 0:1]
    for index in range(1, count):
        total = total + x[:, index : index + 1]
    centred = x - total / count
    squares = (centred * centred).mean(-1, keepdim=True)
    return centred / (squares + self.epsilon).sqrt() * self.weight + self.bias


def norm_pair(epsilon, *, by_hand):
    kits = kit_for(TORCH), kit_for(PADDLE)

    def forward(self, x):
        return self.last(self.norm(self.first(x)))

    def children(kit, norm):
        return {"first": kit.linear(512, 512), "norm": norm, "last": kit.linear(512, 8)}

    reference = kits[0].module(forward, **children(kits[0], kits[0].nn.LayerNorm(512, eps=1e-5)))
    if by_hand:
        norm = kits[1].module(naive_mean_norm, "HandNorm")
        norm.weight, norm.bias = kits[1].parameter(np.ones(512)), kits[1].parameter(np.zeros(512))
        norm.epsilon = epsilon
    else:
        norm = kits[1].nn.LayerNorm(512, epsilon=epsilon)
    return lively(kits[0], reference, 0), lively(
        kits[1], kits[1].module(forward, **children(kits[1], norm)), 1
    )


@pytest.mark.parametrize("by_hand", [False, True])
@pytest.mark.parametrize("backward", [True, False])
def test_a_layer_norm_with_the_right_epsilon_is_the_same(by_hand, backward):
    report = pf.align(*norm_pair(1e-5, by_hand=by_hand), WIDE, backward=backward)
    assert report.ok, str(report)


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_layer_norm_with_the_wrong_epsilon_is_found_there_and_only_there(by_hand):
    report = pf.align(*norm_pair(1e-6, by_hand=by_hand), WIDE, explain=False)
    assert report.first is not None
    assert (report.first.phase, report.first.port.path) == ("forward", "norm")
    assert report.first.score > report.limit
    assert {each.port.path for each in report.divergences if not each.inherited} == {"norm"}


def test_gone_means_next_to_nothing_is_left():
    error = Size(1.0, 3.0)
    assert is_gone(Size(0.0, 0.0), error)
    assert is_gone(Size(0.02, 0.06), error)
    assert not is_gone(Size(0.021, 0.0), error)
    assert not is_gone(Size(0.0, 0.061), error)
    assert not is_gone(Size(np.inf, np.inf), error)
    assert not is_gone(Size(np.nan, np.nan), error)


@pytest.mark.parametrize("seed", range(3))
def test_a_deep_chain_of_norms_and_activations_is_the_same(seed):
    """Depth amplifies rounding; nothing of that is a mistake."""
    models = []
    for framework in (TORCH, PADDLE):
        kit = kit_for(framework)
        layers = []
        for _ in range(8):
            layers += [kit.linear(32, 32), kit.nn.LayerNorm(32), kit.nn.ReLU()]
        models.append(lively(kit, kit.sequential(*layers, kit.linear(32, 5)), seed))
    report = pf.align(*models, np.random.default_rng(seed).normal(size=(4, 32)).astype("float32"))
    assert report.ok, str(report)
    assert report.coverage.count("calls") == 25


@pytest.fixture
def only_float64_decides(monkeypatch):
    """No floor is known but that of the scale, so that everything above it is run again in float64."""
    for name in ("moved", "exact", "port_moved", "port_exact"):
        monkeypatch.setattr(
            f"parfocal.replay.noise_floors.NoiseFloors.{name}", lambda self, *args, **wishes: NOTHING
        )


@pytest.mark.usefixtures("only_float64_decides")
def test_float64_acquits_another_order_of_summation(monkeypatch):
    assert pf.align(*sum_pair(one_by_one), POSITIVE).ok
    monkeypatch.setattr("parfocal.replay.noise_floors.is_gone", lambda left, error: False)
    accused = pf.align(*sum_pair(one_by_one), POSITIVE, explain=False)  # so it was float64 that acquitted it
    assert accused.first.port.path == "mean"


@pytest.mark.usefixtures("only_float64_decides")
@pytest.mark.parametrize("by_hand", [False, True])
def test_float64_does_not_acquit_a_wrong_epsilon(by_hand):
    report = pf.align(*norm_pair(1e-6, by_hand=by_hand), WIDE, explain=False)
    assert (report.first.phase, report.first.port.path) == ("forward", "norm")


class TorchSteps(torch.nn.Module):
    """Waves of a step, as models of diffusion take them: the larger the step the less is known of them."""

    def __init__(self) -> None:
        super().__init__()
        self.time = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.SiLU(), torch.nn.Linear(8, 4))

    def forward(self, x: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        rates = torch.exp(-math.log(10000.0) * torch.arange(16, dtype=torch.float32) / 16)
        angle = step[:, None].float() * rates[None]
        waves = torch.cat([torch.cos(angle), torch.sin(angle)], dim=-1).to(x.dtype)
        return x + self.time(waves)


class PaddleSteps(paddle.nn.Layer):
    def __init__(self, most: float = 10000.0) -> None:
        super().__init__()
        self.fc1, self.fc2, self.most = paddle.nn.Linear(32, 8), paddle.nn.Linear(8, 4), most

    def forward(self, x: paddle.Tensor, step: paddle.Tensor) -> paddle.Tensor:
        rates = paddle.exp(-math.log(self.most) * paddle.arange(16, dtype="float32") / 16)
        angle = step.unsqueeze(1).astype("float32") * rates.unsqueeze(0)
        waves = paddle.concat([paddle.cos(angle), paddle.sin(angle)], axis=-1).astype(x.dtype)
        return x + self.fc2(paddle.nn.functional.silu(self.fc1(waves)))


STEPS = np.arange(4, dtype=np.float32)[None].repeat(2, 0), np.array([3, 977])


def test_what_code_computes_in_float32_by_its_own_word_has_its_noise():
    report = pf.align(TorchSteps(), PaddleSteps(), STEPS)
    assert report.ok, str(report)
    assert not report.findings, str(report)


def test_a_constant_that_is_a_little_off_is_above_that_noise():
    report = pf.align(TorchSteps(), PaddleSteps(10001.0), STEPS)
    assert not report.ok


class Doubled(torch.nn.Module):
    """In float64, but for one step that some versions do in float32."""

    def __init__(self, narrow: bool) -> None:
        super().__init__()
        self.fc, self.narrow = torch.nn.Linear(6, 6).double(), narrow

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.tanh(self.fc(x))
        return (h.float().double() if self.narrow else h) * 2.0


@pytest.mark.parametrize("narrow", [True, False])
def test_float32_in_a_model_of_float64_is_a_difference(narrow):
    x = np.random.default_rng(0).standard_normal((4, 6))
    assert not pf.align(Doubled(narrow), Doubled(not narrow), x).ok
    assert pf.align(Doubled(narrow), Doubled(narrow), x).ok
