"""Compiled models run as one piece: they are compared as they are compiled, not layer by layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf

X = np.random.default_rng(0).standard_normal((8, 16)).astype("float32")


class TorchNet(torch.nn.Module):
    def __init__(self, eps: float = 1e-5) -> None:
        super().__init__()
        self.first = torch.nn.Linear(16, 32)
        self.norm = torch.nn.LayerNorm(32, eps=eps)
        self.last = torch.nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        return self.last(torch.relu(self.norm(self.first(x))))


class PaddleNet(paddle.nn.Layer):
    def __init__(self, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.first = paddle.nn.Linear(16, 32)
        self.norm = paddle.nn.LayerNorm(32, epsilon=epsilon)
        self.last = paddle.nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        return self.last(paddle.nn.functional.relu(self.norm(self.first(x))))


def compiled_by_torch(model: Any) -> Any:
    return torch.compile(model, backend="aot_eager")


def compiled_in_place(model: Any) -> Any:
    model.compile(backend="aot_eager")
    return model


def compiled_by_paddle(model: Any) -> Any:
    return paddle.jit.to_static(model, full_graph=True)


CASES = [
    pytest.param(TorchNet, compiled_by_torch, id="torch.compile"),
    pytest.param(TorchNet, compiled_in_place, id="Module.compile"),
    pytest.param(PaddleNet, compiled_by_paddle, id="to_static"),
]
# What the compilers' own code is warned of while it looks at a tensor.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Tensor do not have 'place' interface:UserWarning"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
]


@pytest.mark.parametrize(("build", "compiled"), CASES)
def test_a_compiled_model_is_the_same_as_one_piece(build: Any, compiled: Any) -> None:
    report = pf.align(build(), compiled(build()), X, mode="train")

    assert report.ok, str(report)
    assert [pair.port.path for pair in report.pairs] == [""]  # nothing inside was watched
    assert report.coverage.count("parameter gradients") == 6


@pytest.mark.parametrize(("build", "compiled"), CASES)
def test_a_wrong_setting_shows_through(build: Any, compiled: Any) -> None:
    report = pf.align(build(), compiled(build(1e-3)), X, mode="train", explain=False)

    assert not report.ok
    assert report.first is not None
    assert (report.first.phase, report.first.port.path) == ("forward", "")


def test_only_what_is_compiled_is_one_piece() -> None:
    def around(middle: Any) -> Any:
        return torch.nn.Sequential(torch.nn.Linear(16, 16), middle, torch.nn.Linear(4, 4))

    report = pf.align(around(TorchNet()), around(compiled_by_torch(TorchNet())), X)

    assert report.ok, str(report)
    paths = {pair.port.path for pair in report.pairs}
    assert {"0", "1", "2"} <= paths
    assert not any(path.startswith("1.") for path in paths)


def test_what_is_not_compiled_is_watched_layer_by_layer() -> None:
    """Also after something else was compiled in this process."""
    compiled_by_torch(TorchNet())
    report = pf.align(TorchNet(), TorchNet(), X)
    assert {pair.port.path for pair in report.pairs} >= {"first", "norm", "last"}
