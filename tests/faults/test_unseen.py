"""Layers that are set otherwise and agree on these inputs: worth knowing, and no divergence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from paddle import nn as pnn
from torch import nn

from tests.faults.tools import align, numbers, seeded

Layer = Callable[[], Any]


def notes(good: Layer, bad: Layer, **options: Any) -> list[tuple[str, str]]:
    """What is said of layers between two convolutions, on values that are small."""
    reference = seeded(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), good(), nn.Conv2d(4, 2, 1)))
    port = pnn.Sequential(pnn.Conv2D(3, 4, 3), bad(), pnn.Conv2D(4, 2, 1))
    report = align(reference, port, 0.1 * numbers(2, 3, 10, 10), **options)
    assert report.ok
    about_layers = ("op.", "config.", "mode.")
    return [(each.code, each.message) for each in report.findings if each.code.startswith(about_layers)]


@pytest.mark.parametrize(
    ("good", "bad", "code", "says"),
    [
        (nn.ReLU6, pnn.ReLU, "op.activation", "1: ReLU6 in the reference, ReLU in the port; not seen on "
         "these inputs, but seen on inputs 100 times as large"),
        (lambda: nn.MaxPool2d(2, ceil_mode=True), lambda: pnn.MaxPool2D(2), "op.ceil_mode",
         "1: ceil_mode of MaxPool2d is True in the reference, False in the port; not seen on these inputs, "
         "but seen on inputs of another size"),
        (lambda: nn.Hardtanh(-1, 5), pnn.Hardtanh, "config.other", "seen on inputs 100 times as large"),
        (lambda: nn.BatchNorm2d(4, momentum=0.01), lambda: pnn.BatchNorm2D(4), "config.momentum",
         "momentum of BatchNorm2d is 0.01 in the reference, 0.1 in the port; not seen on these inputs, but "
         "seen in training"),
        (lambda: nn.AdaptiveAvgPool2d(8), pnn.Identity, "op.kind", "seen on inputs of another size"),
    ],
)  # fmt: skip
def test_what_would_show_on_other_inputs_is_said(good: Layer, bad: Layer, code: str, says: str) -> None:
    (found,) = notes(good, bad)
    assert found[0] == code
    assert says in found[1]


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (nn.ReLU, pnn.ReLU),
        (lambda: nn.AvgPool2d(2), lambda: pnn.AvgPool2D(2, exclusive=True)),  # there is no padding to count
        (lambda: nn.BatchNorm2d(4, momentum=0.1), lambda: pnn.BatchNorm2D(4, momentum=0.9)),
        (nn.Identity, lambda: pnn.Dropout(0.0)),
    ],
)
def test_what_never_shows_is_not_said(good: Layer, bad: Layer) -> None:
    assert notes(good, bad) == []


def test_the_same_in_several_layers_is_said_once() -> None:
    reference = seeded(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU6(), nn.Linear(6, 6), nn.ReLU6(), nn.Linear(6, 2))
    )
    port = pnn.Sequential(
        *(pnn.Linear(4, 6), pnn.ReLU(), pnn.Linear(6, 6), pnn.ReLU(), pnn.Linear(6, 2)),
    )
    found = [e.message for e in align(reference, port, numbers(3, 4)).findings if e.code == "op.activation"]
    assert len(found) == 1
    assert found[0].startswith("1 and 1 more: ReLU6 in the reference")


def test_a_layer_that_differs_here_is_a_divergence_and_no_note() -> None:
    reference = seeded(lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU6(), nn.Linear(6, 2)))
    port = pnn.Sequential(pnn.Linear(4, 6), pnn.ReLU(), pnn.Linear(6, 2))
    report = align(reference, port, 100.0 * numbers(3, 4))
    assert not report.ok
    assert not [each for each in report.findings if each.code == "op.activation"]
