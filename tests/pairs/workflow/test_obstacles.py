"""Models whose calls or weights cannot be followed are refused in one sentence; NaN with its origin."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.errors import InputError, UnsupportedError

X = np.random.default_rng(0).normal(size=(4, 8)).astype("float32")


def plain():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3)).eval()


@pytest.mark.filterwarnings("ignore")
def exported():
    return torch.export.export(plain(), (torch.from_numpy(X),)).module()


def quantised():
    return torch.ao.quantization.quantize_dynamic(plain(), {torch.nn.Linear}, dtype=torch.qint8)


class Wrapped(torch.Tensor):
    """As a sharded tensor is: operations are dispatched by its class."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        if function is torch.ops.aten.detach.default:
            return args[0]
        raise NotImplementedError


def wrapped():
    model = plain()
    values = torch.Tensor._make_wrapper_subclass(Wrapped, (6, 8))
    model[0].weight = torch.nn.Parameter(values, requires_grad=False)
    return model


CANNOT = {
    "exported": (exported, "a torch.export program (GraphModule, the whole model)"),
    "scripted": (
        lambda: torch.jit.script(plain()),
        "a TorchScript module (RecursiveScriptModule, the whole model)",
    ),
    "quantised": (quantised, "a quantised model (Linear, 0)"),
    "wrapped": (wrapped, "a model whose tensors are of a class of their own (Wrapped, 0.weight)"),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", CANNOT)
def test_it_is_refused_by_what_it_is(kind, tmp_path):
    make, words = CANNOT[kind]
    model = make()
    for compared, side in (((plain(), model), "port"), ((model, plain()), "reference")):
        with pytest.raises(UnsupportedError) as refused:
            pf.align(*compared, X)
        assert refused.value.message == f"the {side} is {words}, which cannot be compared"
    with pytest.raises(UnsupportedError), pf.record(model, tmp_path / "run"):
        pass
    assert not (tmp_path / "run").exists()
    with pytest.raises(UnsupportedError):
        pf.transfer(plain(), model)


@pytest.mark.filterwarnings("ignore")
def test_a_compiled_or_traced_graph_can_be_compared():
    graph = torch.fx.symbolic_trace(plain())
    assert pf.align(plain(), graph, X).ok
    assert pf.align(plain(), torch.compile(plain(), backend="eager"), X).ok


class TorchLog(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 3)

    def forward(self, x):
        return torch.log(self.inner(x) - 100)


def paddle_plain():
    return paddle.nn.Sequential(paddle.nn.Linear(8, 6), paddle.nn.ReLU(), paddle.nn.Linear(6, 3))


def with_bad_weight():
    model = plain()
    with torch.no_grad():
        model[2].weight[1, 1] = float("nan")
    return model


BAD = X.copy()
BAD[0, 0] = np.inf


@pytest.mark.parametrize(
    ("reference", "inputs", "origin"),
    [
        (
            torch.nn.Sequential(torch.nn.Linear(8, 8), TorchLog()),
            X,
            "the result of log in 1 of the reference (test_obstacles.py:",
        ),
        (with_bad_weight(), X, "the parameter 2.weight of the reference"),
        (plain(), BAD, "input 0 of the reference"),
    ],
    ids=["an op", "a weight", "an input"],
)
def test_a_reference_that_is_not_finite_is_refused_with_the_origin(reference, inputs, origin):
    port = paddle_plain() if len(reference) == 3 else torch.nn.Sequential(torch.nn.Linear(8, 8), TorchLog())
    with pytest.raises(InputError, match="NaN or infinite values") as refused:
        pf.align(reference, port, inputs)
    assert f"the first that is not finite is {origin}" in refused.value.message


class Overflowing(torch.nn.Module):
    def __init__(self, overflow):
        super().__init__()
        self.inner, self.outer, self.overflow = torch.nn.Linear(8, 8), torch.nn.Linear(8, 3), overflow

    def forward(self, x):
        x = self.inner(x)
        mask = torch.zeros(8).masked_fill(torch.arange(8) > 3, float("-inf"))
        x = (x + mask).softmax(-1)
        x = self.overflow(x)
        return self.outer(x * 2)


@pytest.mark.parametrize(
    ("overflow", "op"), [(lambda x: x / (x - x), "div"), (lambda x: (x * 1e4).exp(), "exp")]
)
def test_where_infinity_begins_is_told_though_masks_are_made_of_it(overflow, op):
    with pytest.raises(InputError, match="NaN or infinite values") as refused:
        pf.align(Overflowing(overflow), paddle_plain(), X)
    assert f"{op} in the whole model of the reference (test_obstacles.py:" in refused.value.message
    assert "masked_fill" not in refused.value.message
