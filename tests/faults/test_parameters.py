"""Gradients of weights that several users share: whose share is wrong?"""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import torch
from paddle import nn as pnn
from torch import nn

import parfocal
from parfocal.judge.verdict import Divergence
from tests.faults.tools import own, seeded

IDS = np.random.default_rng(0).integers(0, 12, (3, 5))


class TorchTied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = nn.Embedding(12, 8), nn.Linear(8, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.mix(self.embed(ids))) @ self.embed.weight.T


class Tied(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.mix = pnn.Embedding(12, 8), pnn.Linear(8, 8)

    def forward(self, ids: Any) -> Any:
        return paddle.matmul(paddle.tanh(self.mix(self.embed(ids))), self.table(), transpose_y=True)

    def table(self) -> Any:
        return self.embed.weight


class Held(Tied):
    def table(self) -> Any:
        return self.embed.weight.detach()


class Untied(Tied):
    def __init__(self) -> None:
        super().__init__()
        self.head = pnn.Linear(8, 12, bias_attr=False)

    def forward(self, ids: Any) -> Any:
        return self.head(paddle.tanh(self.mix(self.embed(ids))))


class Hooked(Tied):
    def __init__(self) -> None:
        super().__init__()
        self.mix.weight.register_hook(lambda gradient: 2.0 * gradient)


def found(port: pnn.Layer) -> list[Divergence]:
    port.eval()
    return own(parfocal.align(seeded(TorchTied), port, IDS))


def test_a_tied_weight_that_is_right_is_right() -> None:
    assert found(Tied()) == []


def test_code_that_uses_a_layers_weight_without_its_gradient_is_blamed_and_not_the_layer() -> None:
    (divergence,) = found(Held())
    assert divergence.port is not None
    assert (divergence.port.path, divergence.port.op) == ("", "detach")
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.detached"


def test_one_tensor_of_the_reference_that_is_two_in_the_port() -> None:
    (divergence,) = found(Untied())
    assert divergence.cause is not None
    assert divergence.cause.code == "weight.tied"
    assert divergence.cause.message == (
        "embed.weight of the reference is one tensor, in the port it is embed.weight and head.weight: "
        "their gradients add up to the reference's"
    )


def test_a_gradient_that_is_changed_from_outside_the_model() -> None:
    (divergence,) = found(Hooked())
    assert divergence.port is not None
    assert divergence.port.path == "mix"
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.accumulated"
    assert divergence.cause.message == "gradient of the parameter mix.weight is 2 times the reference's"
    assert divergence.message.endswith("something acts on it from outside")


class Frozen(Tied):
    def __init__(self) -> None:
        super().__init__()
        self.mix.weight.stop_gradient = True


def test_a_frozen_parameter_is_named_with_the_line_that_thaws_it() -> None:
    port = Frozen()
    (divergence,) = found(port)
    assert divergence.port is not None
    assert divergence.port.path == "mix"
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.detached"
    assert divergence.cause.message == "mix.weight is frozen in the port, the reference trains it"
    assert divergence.cause.fix == "port.mix.weight.stop_gradient = False"
    exec(divergence.cause.fix, {"port": port})
    assert found(port) == []


def test_losses_of_which_one_stops_half_of_the_gradient() -> None:
    losses = (lambda output: (output**2).mean(), lambda output: (output * output.detach()).mean())
    (divergence,) = own(parfocal.align(seeded(TorchTied), Tied(), IDS, loss=losses))
    assert (divergence.phase, divergence.message) == ("backward", "what comes back from the loss differs")
    right = (lambda output: (output**2).mean(), lambda output: (output * output).mean())
    assert parfocal.align(seeded(TorchTied), Tied(), IDS, loss=right).ok


class TorchRows(nn.Module):
    def __init__(self, padding: int | None) -> None:
        super().__init__()
        self.rows, self.last = nn.Embedding(12, 6, padding_idx=padding), nn.Linear(6, 3)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.last(self.rows(ids))


class Rows(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.rows, self.last = pnn.Embedding(12, 6), pnn.Linear(6, 3)

    def forward(self, ids: paddle.Tensor) -> paddle.Tensor:
        return self.last(self.rows(ids))


def test_a_setting_that_only_the_gradient_shows() -> None:
    ids = np.array([[0, 3, 2], [5, 3, 8]])
    (divergence,) = own(parfocal.align(seeded(lambda: TorchRows(3)), Rows(), ids))
    assert divergence.cause is not None
    assert divergence.cause.code == "config.other"
    assert "padding_idx is 3 in the reference, None in the port (Embedding rows)" in divergence.cause.message
    assert divergence.cause.fix == "port.rows = paddle.nn.Embedding(12, 6, padding_idx=3)"
    assert parfocal.align(seeded(lambda: TorchRows(None)), Rows(), ids).ok


def test_a_weight_that_only_the_reference_keeps_as_it_is() -> None:
    ids = np.array([[0, 3, 2], [5, 3, 8]])
    reference, port = seeded(lambda: TorchRows(None)), Rows()
    reference.last.weight.requires_grad_(False)
    (divergence,) = own(parfocal.align(reference, port, ids))
    assert divergence.cause is not None
    assert divergence.cause.code == "grad.detached"
    assert divergence.cause.message == "last.weight is frozen in the reference, the port trains it"
    assert divergence.cause.fix == "port.last.weight.stop_gradient = True"
    port.last.weight.stop_gradient = True
    assert parfocal.align(reference, port, ids).ok
