"""Weights that have no counterpart: a layer of another size, or weights that are not there."""

from __future__ import annotations

import paddle
import torch
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, mend, numbers, own, seeded, the_cause


def encoder(size: int) -> pnn.Layer:
    return pnn.Sequential(pnn.Linear(8, 8), pnn.TransformerEncoderLayer(8, 2, size, 0.0))


def test_the_size_of_a_container_of_the_framework() -> None:
    reference = seeded(
        lambda: nn.Sequential(nn.Linear(8, 8), nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True))
    )
    port = encoder(10)
    cause = the_cause(align(reference, port, numbers(3, 5, 8)))
    assert cause.code == "config.other"
    assert cause.message == (
        "feedforward_size is 12 in the reference, 10 in the port (TransformerEncoderLayer 1)"
    )
    mend(port, cause.fix)
    assert align(reference, port, numbers(3, 5, 8)).ok
    assert align(reference, encoder(12), numbers(3, 5, 8)).ok


class TorchScaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.scale = nn.Linear(8, 8), nn.Parameter(torch.ones(3, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) * self.scale[0]


class Plain(pnn.Layer):
    """Right as it is, but for a weight that is not there."""

    def __init__(self) -> None:
        super().__init__()
        self.first = pnn.Linear(8, 8)

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return self.first(x) * 1.0


def test_a_weight_that_is_not_there() -> None:
    first = own(align(seeded(TorchScaled), Plain(), numbers(4, 8), backward=False))[0]
    assert first.cause is not None
    assert first.cause.code == "weight.missing"
    assert "scale [3, 8] has no counterpart in the port" in first.cause.message


def test_nothing_is_said_without_explaining() -> None:
    report = align(seeded(TorchScaled), Plain(), numbers(4, 8), backward=False, explain=False)
    assert report.divergences
    assert all(divergence.cause is None for divergence in report.divergences)


class WithSpare(nn.Module):
    """Has a weight that only another mode would use."""

    def __init__(self, *, frozen: bool = False) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.spare = nn.Parameter(torch.ones(5), requires_grad=not frozen)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.first(x) * (1.0 if self.spare.requires_grad else self.spare.mean())


def test_a_weight_that_nothing_uses_is_a_finding() -> None:
    report = align(seeded(WithSpare), Plain(), numbers(4, 8))
    assert report.ok, str(report)
    assert [each.message for each in report.findings if each.code == "weight.idle"] == [
        "spare of the reference has no counterpart in the port: nothing used it in this run"
    ]


def test_a_weight_without_gradient_is_known_by_what_it_changes() -> None:
    forward = align(seeded(WithSpare), Plain(), numbers(4, 8), backward=False)
    assert forward.ok, str(forward)
    assert [each.code for each in forward.findings if each.code.startswith("weight.")] == ["weight.idle"]
    frozen = align(seeded(lambda: WithSpare(frozen=True)), Plain(), numbers(4, 8))
    assert not frozen.ok
    assert not any(each.code == "weight.idle" for each in frozen.findings)


def test_a_weight_that_is_used_and_not_there_stays_a_divergence() -> None:
    first = own(align(seeded(TorchScaled), Plain(), numbers(4, 8)))[0]
    assert first.cause is not None
    assert first.cause.code == "weight.missing"


class Wrapped(nn.GroupNorm):
    """A norm of the reference's own, made from one of the framework's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(super().forward(x))


def test_a_layer_of_another_kind_keeps_more() -> None:
    """Running statistics are no weights too many: the layer is a BatchNorm where a GroupNorm should be."""
    reference = seeded(lambda: nn.Sequential(nn.Conv2d(3, 8, 3), Wrapped(2, 8), nn.Conv2d(8, 4, 1)))
    port = pnn.Sequential(pnn.Conv2D(3, 8, 3), pnn.BatchNorm2D(8), pnn.Conv2D(8, 4, 1))
    first = align(reference, port, numbers(2, 3, 8, 8)).first
    assert first is not None
    assert first.cause is not None
    assert first.cause.code == "op.kind"
    assert first.cause.message == "1 is GroupNorm in the reference, BatchNorm2d in the port"


def test_a_buffer_of_a_layer_of_the_same_kind_is_one_too_many() -> None:
    reference = seeded(
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, track_running_stats=False))
    )
    port = pnn.Sequential(pnn.Conv2D(3, 8, 3), pnn.BatchNorm2D(8))
    codes = [
        each.cause.code for each in align(reference, port, numbers(2, 3, 8, 8)).divergences if each.cause
    ]
    assert "op.kind" not in codes
