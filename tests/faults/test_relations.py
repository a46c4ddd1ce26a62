"""Layers whose result is a simple function of the right one, and errors that are only described."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
from paddle import nn as pnn
from torch import nn

from parfocal.explain.describing import in_words
from parfocal.judge.shape import error_shape
from parfocal.judge.tolerance import Tolerance
from tests.faults.tools import align, numbers, own, seeded, the_cause


class Off(pnn.Linear):
    """A linear layer that adds something of its own, in a way that no op shows."""

    change: Any = None

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        return Opaque.apply(super().forward(x), self.change)


class Opaque(paddle.autograd.PyLayer):
    @staticmethod
    def forward(ctx: Any, x: Any, change: Any) -> Any:
        return paddle.to_tensor(np.ascontiguousarray(change(x.numpy()), dtype=np.float32))

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


def changed(change: Any) -> Any:
    port = pnn.Sequential(pnn.Linear(8, 8), Off(8, 8), pnn.Tanh(), pnn.Linear(8, 3))
    port[1].change = change
    return align(seeded(model), port, numbers(6, 8), backward=False)


def model() -> Any:
    return nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 3))


BIAS = np.asarray(seeded(model)[1].bias.detach())  # type: ignore[index]
ORDER = [3, 1, 0, 2, 7, 6, 5, 4]
RELATIONS = (
    ("half", lambda y: y * 0.5, "op.scale", "0.5 times"),
    ("by the root of the size", lambda y: y * 8**-0.5, "op.scale", "0.3535534 times"),
    ("without bias", lambda y: y - BIAS, "op.bias", "without the bias"),
    ("bias twice", lambda y: y + BIAS, "op.bias", "twice with the bias"),
    ("with an activation", lambda y: np.maximum(y, 0), "op.extra", "relu"),
    ("another order", lambda y: y[:, ORDER], "op.order", "another order along axis 1"),
    ("rounded", lambda y: y.astype(np.float16), "dtype.precision", "float16"),
)


@pytest.mark.parametrize("relation", RELATIONS, ids=lambda relation: relation[0])
def test_a_simple_relation_is_found(relation: Any) -> None:
    _, change, code, words = relation
    report = changed(change)
    cause = the_cause(report)
    assert own(report)[0].port.path == "1"  # type: ignore[union-attr]
    assert cause.code == code
    assert words in cause.message


NEAR_MISSES = (
    ("nearly half", lambda y: y * (0.5 + 1e-3 * np.sign(y))),
    ("nearly the bias", lambda y: y - BIAS * (1 + 0.01 * np.arange(8))),
    ("nearly a relu", lambda y: np.where(y > 0, y, 0.013 * y)),
    ("noise", lambda y: y + 1e-3 * np.random.default_rng(0).standard_normal(y.shape)),
)


@pytest.mark.parametrize("miss", NEAR_MISSES, ids=lambda miss: miss[0])
def test_a_near_miss_has_no_cause_but_a_description(miss: Any) -> None:
    (divergence,) = own(changed(miss[1]))
    assert divergence.cause is None
    assert "no known cause fits" in divergence.message


def test_nothing_changed_is_nothing_found() -> None:
    assert changed(lambda y: y).ok


def test_the_words_for_shapes() -> None:
    right = np.random.default_rng(0).standard_normal((4, 8, 8)).astype(np.float32)
    exact = Tolerance(0.0, 0.0)
    assert in_words(error_shape(right * 3, right, exact), 256) == (
        "no known cause fits; the error: 3 times the reference's values"
    )
    wrong = right.copy()
    wrong[2] += 1.0
    assert "only at 2 along axis 0" in in_words(error_shape(wrong, right, exact), 256)
