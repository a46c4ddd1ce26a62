"""The port has layers where the reference's code calls functions: the layer is named, and what to set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from paddle import nn as pnn
from torch import nn
from torch.nn import functional

from tests.faults.tools import align, mend, numbers, own, seeded

X, IMAGES = numbers(5, 8), numbers(2, 2, 9, 9)


class Reference(nn.Module):
    """Two linear layers with a function in between."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.first, self.second, self.function = nn.Linear(8, 16), nn.Linear(16, 8), function

    def forward(self, x: Any) -> Any:
        return x + self.second(self.function(self.first(x)))


class InOneRow(pnn.Layer):
    """All layers in a Sequential."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        self.row = pnn.Sequential(pnn.Linear(8, 16), *layers, pnn.Linear(16, 8))

    def forward(self, x: Any) -> Any:
        return x + self.row(x)


class ByName(pnn.Layer):
    """The layers are called by the model's own code."""

    def __init__(self, *layers: Any) -> None:
        super().__init__()
        self.first, self.second = pnn.Linear(8, 16), pnn.Linear(16, 8)
        (self.between,) = layers

    def forward(self, x: Any) -> Any:
        return x + self.second(self.between(self.first(x)))


def _leaky(x: Any) -> Any:
    return functional.leaky_relu(x, 0.2)


SAME = (
    (functional.gelu, pnn.GELU()),
    (_leaky, pnn.LeakyReLU(0.2)),
    (lambda x: x.softmax(-1), pnn.Softmax()),
    (torch.tanh, pnn.Tanh()),
)
FAULTS = (
    (functional.gelu, pnn.GELU(approximate=True), "op.approximation", ("'none'", "'tanh'")),
    (_leaky, pnn.LeakyReLU(), "config.slope", ("0.2", "0.01")),
    (_leaky, pnn.ReLU(), "op.activation", ("ReLU", "leaky_relu")),
    (torch.tanh, pnn.Sigmoid(), "op.activation", ("Sigmoid", "tanh")),
    (lambda x: x.softmax(-1), pnn.Softmax(axis=0), "op.axis", ("-1", "0")),
    (lambda x: x, pnn.Tanh(), "op.extra", ("tanh",)),
)


@pytest.mark.parametrize("port", [InOneRow, ByName])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[2])
def test_the_layer_is_named_and_what_to_set(fault: Any, port: Any) -> None:
    function, layer, code, says = fault
    reference, model = seeded(lambda: Reference(function)), port(layer)
    report = align(reference, model, X)
    (divergence,) = own(report)
    assert divergence.cause is not None, str(report)
    assert divergence.cause.code == code, divergence.cause.message
    assert all(words in divergence.cause.message for words in says), divergence.cause.message
    assert divergence.cause.score_after <= report.limit
    assert divergence.port.path == ("row.1" if port is InOneRow else "between")
    assert divergence.port.kind == type(layer).__name__
    mend(model, divergence.cause.fix)
    assert align(reference, model, X).ok


@pytest.mark.parametrize("port", [InOneRow, ByName])
@pytest.mark.parametrize("twin", SAME, ids=lambda twin: type(twin[1]).__name__)
def test_layers_that_do_what_the_functions_do_are_right(twin: Any, port: Any) -> None:
    assert align(seeded(lambda: Reference(twin[0])), port(twin[1]), X).ok


def test_a_layer_that_is_missing_in_a_row() -> None:
    reference, model = seeded(lambda: Reference(_leaky)), InOneRow()
    (divergence,) = own(align(reference, model, X))
    assert divergence.cause.code == "op.missing"
    assert divergence.cause.fix == (
        "port.row = paddle.nn.Sequential(port.row[0], paddle.nn.LeakyReLU(negative_slope=0.2), port.row[1])"
    )
    mend(model, divergence.cause.fix)
    assert align(reference, model, X).ok


class LongRow(pnn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.row = pnn.Sequential(*(layer for _ in range(6) for layer in (pnn.Linear(6, 6), pnn.Tanh())))

    def forward(self, x: Any) -> Any:
        return self.row(x)


def test_a_layer_that_is_missing_in_a_long_row() -> None:
    """The fix fits a line however many layers there are, and does what it says."""

    class Longer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [layer for _ in range(6) for layer in (nn.Linear(6, 6), nn.Tanh())]
            self.row = nn.Sequential(*layers[:7], nn.GELU(), *layers[7:])

        def forward(self, x: Any) -> Any:
            return self.row(x)

    reference, model = seeded(Longer), LongRow()
    x = numbers(3, 6)
    (divergence,) = own(align(reference, model, x))
    fix = "port.row = paddle.nn.Sequential(*port.row[:7], paddle.nn.GELU(), *port.row[7:])"
    assert divergence.cause.fix == fix
    mend(model, divergence.cause.fix)
    assert align(reference, model, x).ok


def test_a_row_of_layers_is_not_blamed_for_what_is_done_with_what_it_gives() -> None:
    class Halved(InOneRow):
        def forward(self, x: Any) -> Any:
            return x + 0.5 * self.row(x)

    (divergence,) = own(align(seeded(lambda: Reference(functional.gelu)), Halved(pnn.GELU()), X))
    assert divergence.cause.code == "op.scale"
    assert divergence.port.path == ""


def test_a_row_of_layers_is_not_blamed_for_what_it_is_given() -> None:
    class Doubled(InOneRow):
        def forward(self, x: Any) -> Any:
            return x + self.row(2.0 * x)

    (divergence,) = own(align(seeded(lambda: Reference(functional.gelu)), Doubled(pnn.GELU()), X))
    assert divergence.cause.code == "op.scale"
    assert divergence.port.path == ""


def test_pooling_by_a_layer_and_by_a_function() -> None:
    class Pooling(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 3, 3)

        def forward(self, x: Any) -> Any:
            return self.second(functional.avg_pool2d(torch.relu(self.first(x)), 3, 2, 1))

    def port(**settings: Any) -> Any:
        layers = pnn.ReLU(), pnn.AvgPool2D(3, 2, 1, **settings)
        return pnn.Sequential(pnn.Conv2D(2, 4, 3, padding=1), *layers, pnn.Conv2D(4, 3, 3))

    reference, model = seeded(Pooling), port()
    (divergence,) = own(align(reference, model, IMAGES))
    assert divergence.cause.code == "op.pool_count"
    assert divergence.port.path == "2"
    mend(model, divergence.cause.fix)
    assert align(reference, model, IMAGES).ok
    assert align(reference, port(exclusive=False), IMAGES).ok
