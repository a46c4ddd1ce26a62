"""Models that are one layer of the framework: the first thing that many try."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

ROWS = np.random.default_rng(0).normal(size=(4, 64)).astype("float32")
PICTURES = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype("float32")
WRONG = {
    "epsilon": (
        lambda: torch.nn.LayerNorm(64),
        lambda: paddle.nn.LayerNorm(64, epsilon=1e-3),
        ROWS,
        ("config.epsilon", "port = paddle.nn.LayerNorm(64, epsilon=1e-05)"),
    ),
    "formula": (
        torch.nn.GELU,
        lambda: paddle.nn.GELU(approximate=True),
        ROWS,
        ("op.approximation", "port = paddle.nn.GELU(approximate=False)"),
    ),
    "axis": (
        lambda: torch.nn.Softmax(0),
        lambda: paddle.nn.Softmax(1),
        ROWS,
        ("op.axis", "port = paddle.nn.Softmax(axis=0)"),
    ),
    "padding": (
        lambda: torch.nn.Conv2d(3, 4, 3, padding=1),
        lambda: paddle.nn.Conv2D(3, 4, 3, padding=1, padding_mode="reflect"),
        PICTURES,
        ("op.padding_mode", "port = paddle.nn.Conv2D(3, 4, 3, padding=1, padding_mode='zeros')"),
    ),
    "kind": (torch.nn.ReLU, paddle.nn.GELU, ROWS, ("op.activation", "port = paddle.nn.ReLU()")),
}
RIGHT = {
    "norm": (lambda: torch.nn.LayerNorm(64), lambda: paddle.nn.LayerNorm(64), ROWS),
    "convolution": (
        lambda: torch.nn.Conv2d(3, 4, 3, padding=1),
        lambda: paddle.nn.Conv2D(3, 4, 3, padding=1),
        PICTURES,
    ),
    "softmax": (lambda: torch.nn.Softmax(1), lambda: paddle.nn.Softmax(1), ROWS),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_setting_of_a_single_layer_is_named(name):
    reference, port, inputs, expected = WRONG[name]
    first = pf.align(reference(), port(), inputs).first
    assert first is not None
    assert first.cause is not None
    assert (first.cause.code, first.cause.fix) == expected


@pytest.mark.parametrize("name", RIGHT)
def test_single_layers_that_are_right_are_the_same(name):
    reference, port, inputs = RIGHT[name]
    assert pf.align(reference(), port(), inputs).ok
