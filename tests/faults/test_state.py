"""Weights that were loaded wrongly, statistics that move wrongly, gradients that are wrong alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


def pair() -> tuple[torch.nn.Module, paddle.nn.Layer]:
    """Two square linear layers, and weights that correspond."""
    reference = seeded(lambda: nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 5)))
    port = pnn.Sequential(pnn.Linear(12, 12), pnn.ReLU(), pnn.Linear(12, 5))
    parfocal.transfer(reference, port)
    return reference, port


def test_equal_weights_have_no_cause() -> None:
    reference, port = pair()
    assert align(reference, port, numbers(4, 12), transfer=False).ok


def test_a_transposed_weight() -> None:
    reference, port = pair()
    port[0].weight.set_value(port[0].weight.numpy().T)
    cause = the_cause(align(reference, port, numbers(4, 12), transfer=False))
    assert cause.code == "weight.transposed"
    mend(port, cause.fix)
    assert align(reference, port, numbers(4, 12), transfer=False).ok


def test_a_permuted_weight() -> None:
    reference, port = pair()
    order = np.random.default_rng(1).permutation(12)
    port[2].weight.set_value(port[2].weight.numpy()[order])
    cause = the_cause(align(reference, port, numbers(4, 12), transfer=False))
    assert cause.code == "weight.permuted"
    assert "along axis 1" in cause.message


def test_weights_that_were_never_loaded() -> None:
    reference, _ = pair()
    port = pnn.Sequential(pnn.Linear(12, 12), pnn.ReLU(), pnn.Linear(12, 5))
    report = align(reference, port, numbers(4, 12), transfer=False)
    codes = {divergence.cause.code for divergence in own(report) if divergence.cause}
    assert codes == {"weight.mismatched"}
    assert "of 144 values" in own(report)[0].cause.message  # type: ignore[union-attr]


def _rounded(port: Any) -> None:
    port[0].weight.set_value(port[0].weight.numpy().astype(np.float16).astype(np.float32))


def _zero(port: Any) -> None:
    port[0].bias.set_value(np.zeros(12, np.float32))


def _twice(port: Any) -> None:
    port[2].weight.set_value(2.0 * port[2].weight.numpy())


def _exchanged(port: Any) -> None:
    first, second = port[0].weight.numpy(), port[4].weight.numpy()
    port[0].weight.set_value(second)
    port[4].weight.set_value(first)


@pytest.mark.parametrize(
    ("change", "code", "says"),
    [
        (_rounded, "dtype.precision", "0.weight has the reference's values rounded to float16"),
        (_zero, "weight.mismatched", "every value of 0.bias is 0 in the port (size "),
        (_twice, "weight.mismatched", "2.weight is 2 times the reference's"),
        (_exchanged, "weight.mismatched", "0.weight has the values that belong to 4.weight"),
    ],
)
def test_what_wrong_weights_are(change: Any, code: str, says: str) -> None:
    reference = seeded(
        lambda: nn.Sequential(nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 12))
    )
    port = pnn.Sequential(pnn.Linear(12, 12), pnn.ReLU(), pnn.Linear(12, 12), pnn.ReLU(), pnn.Linear(12, 12))
    parfocal.transfer(reference, port)
    change(port)
    first = own(align(reference, port, numbers(4, 12), transfer=False))[0]
    assert first.cause is not None
    assert first.cause.code == code
    assert says in first.cause.message
    assert "differs in" not in first.cause.message


def normed(layer: Any) -> Any:
    if isinstance(layer, nn.Module):
        return nn.Sequential(nn.Conv2d(3, 4, 3), layer, nn.Conv2d(4, 2, 1))
    return pnn.Sequential(pnn.Conv2D(3, 4, 3), layer, pnn.Conv2D(4, 2, 1))


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_paddles_momentum_is_the_weight_of_the_old_value() -> None:
    reference, port = seeded(lambda: normed(nn.BatchNorm2d(4))), normed(pnn.BatchNorm2D(4, momentum=0.1))
    inputs = numbers(2, 3, 8, 8)
    report = align(reference, port, inputs, mode="train")
    causes = [divergence.cause for divergence in own(report)]
    assert [cause and cause.code for cause in causes] == ["config.momentum"]  # one layer, one mistake
    assert report.divergences[0].what == "buffers 1._mean and 1._variance after one step"
    assert "0.1 in the reference" in causes[0].message  # type: ignore[union-attr]
    assert "0.9 in the port" in causes[0].message  # type: ignore[union-attr]
    assert causes[0].fix == "port[1] = paddle.nn.BatchNorm2D(4, momentum=0.9)"  # type: ignore[union-attr]
    mend(port, causes[0].fix)  # type: ignore[union-attr]
    assert align(reference, port, inputs, mode="train").ok


@pytest.mark.filterwarnings("ignore:When training, we now always track")
def test_the_right_momentum_is_left_alone() -> None:
    reference, port = seeded(lambda: normed(nn.BatchNorm2d(4))), normed(pnn.BatchNorm2D(4))
    assert align(reference, port, numbers(2, 3, 8, 8), mode="train").ok


@pytest.mark.filterwarnings("ignore:When training, we now always track")
@pytest.mark.parametrize("momentum", [0.9, 0.99])
def test_a_norm_that_is_called_twice_keeps_less_of_what_was_before(momentum: float) -> None:
    ours, theirs = nn.BatchNorm2d(4), pnn.BatchNorm2D(4, momentum=momentum)
    reference = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), ours, nn.Tanh(), ours))
    port = pnn.Sequential(pnn.Conv2D(3, 4, 3), theirs, pnn.Tanh(), theirs)
    report = align(reference, port, numbers(2, 3, 8, 8), mode="train")
    assert report.ok == (momentum == 0.9), str(report)


class Detaching(pnn.Layer):
    def __init__(self, *, cut: bool) -> None:
        super().__init__()
        self.first, self.second, self.cut = pnn.Linear(8, 8), pnn.Linear(8, 8), cut

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        hidden = paddle.tanh(self.first(x))
        return hidden + self.second(hidden.detach() if self.cut else hidden)


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.tanh(self.first(x))
        return hidden + self.second(hidden)


def test_a_cut_gradient() -> None:
    report = align(seeded(Whole), Detaching(cut=True), numbers(4, 8))
    cause = own(report)[0].cause
    assert cause is not None
    assert cause.code == "grad.detached"
    assert own(report)[0].port.op == "detach"  # type: ignore[union-attr]
    assert align(seeded(Whole), Detaching(cut=False), numbers(4, 8)).ok


class Doubling(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return 2.0 * gradient


class DoublingTanh(pnn.Tanh):
    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return super().forward(Doubling.apply(x))


def test_a_multiplied_gradient() -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3)))
    port = pnn.Sequential(pnn.Linear(8, 8), DoublingTanh(), pnn.Linear(8, 3))
    cause = the_cause(align(reference, port, numbers(4, 8)))
    assert cause.code == "grad.scale"
    assert "2 times the reference's" in cause.message


def test_a_kink_at_exactly_zero_is_a_choice_of_the_frameworks() -> None:
    """leaky_relu's gradient at 0 is the slope in torch and 1 in paddle."""
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LeakyReLU(0.2), nn.Linear(8, 3)))
    port = pnn.Sequential(pnn.Linear(8, 8), pnn.ReLU(), pnn.LeakyReLU(0.2), pnn.Linear(8, 3))
    cause = the_cause(align(reference, port, numbers(16, 8)))
    assert cause.code == "grad.tie"
    assert "exactly 0" in cause.message


def test_two_faults_have_two_causes() -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)))
    port = pnn.Sequential(pnn.Linear(8, 8), pnn.LayerNorm(8, epsilon=1e-3), pnn.GELU(True), pnn.Linear(8, 3))
    report = align(reference, port, numbers(16, 8))
    assert [divergence.cause.code for divergence in own(report) if divergence.cause] == [
        "config.epsilon",
        "op.approximation",
    ]


class TorchTied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 6), nn.Linear(6, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.embed(ids)))


class Untied(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.head = pnn.Embedding(11, 6), pnn.Linear(6, 11, bias_attr=False)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.head(paddle.tanh(self.embed(ids)))


def test_a_tensor_that_should_be_tied_has_values_of_its_own() -> None:
    reference, port = seeded(TorchTied), Untied()
    ids = np.random.default_rng(0).integers(0, 11, (3, 5))
    parfocal.transfer(reference, port)
    assert align(reference, port, ids, transfer=False, backward=False).ok
    port.head.weight.set_value(port.head.weight.numpy() + 0.1)
    cause = own(align(reference, port, ids, transfer=False, backward=False))[0].cause
    assert cause is not None
    assert cause.code == "weight.tied"
    assert "head.weight and embed.weight are one tensor in the reference" in cause.message
    port.embed.weight.set_value(port.embed.weight.numpy() + 0.2)
    report = align(reference, port, ids, transfer=False, backward=False)
    causes = [each.cause for each in own(report) if each.phase == "weights"]
    assert {cause.code for cause in causes if cause} == {"weight.mismatched"}


def test_parts_of_one_tensor_are_not_tied() -> None:
    """Query, key and value lie in one tensor of the reference: a wrong key is no matter of the others."""
    reference = seeded(lambda: nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True))
    port = pnn.TransformerEncoderLayer(8, 2, 12, 0.0)
    parfocal.transfer(reference, port)
    weight = port.self_attn.k_proj.weight
    weight.set_value(weight.numpy().T)
    causes = [each.cause for each in own(align(reference, port, numbers(2, 5, 8), transfer=False))]
    assert [cause.code for cause in causes if cause] == ["weight.transposed"]


@pytest.mark.filterwarnings("ignore:When training, we now always track")
@pytest.mark.parametrize("batches", [0, 3])
def test_the_plain_mean_of_all_batches(batches: int) -> None:
    reference = seeded(lambda: normed(nn.BatchNorm2d(4, momentum=None)))
    reference[1].num_batches_tracked.fill_(batches)
    report = align(reference, normed(pnn.BatchNorm2D(4)), numbers(2, 3, 8, 8), mode="train")
    causes = [divergence.cause for divergence in own(report)]
    assert [cause.code for cause in causes if cause] == ["config.momentum"]  # of mean and variance
    assert "plain mean of all batches in the reference (momentum is None)" in causes[0].message  # type: ignore[union-attr]
    assert "is 0.1 in the port" in causes[0].message  # type: ignore[union-attr]
