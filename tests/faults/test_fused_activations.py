"""A layer that normalises and activates in one, against one that does so in two: whose half is wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as paddle_functional
import pytest
import torch
from benchmarks.timm_ports.pairs import timm
from paddle import nn as pn
from torch import nn
from torch.nn import functional

from parfocal.report.report import Report
from parfocal.workflow.align import align

pytestmark = pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")


class NormAndSwish(nn.GroupNorm):
    """The activation is a function, which no call shows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.silu(super().forward(x))


class GroupNormAnd(nn.GroupNorm):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(2, 8)
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(super().forward(x))


class LinearAnd(nn.Linear):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(8, 8)
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(super().forward(x))


class Wrapped(nn.Module):
    """A norm inside, and the activation as a layer or as a function."""

    def __init__(self, norm: nn.Module, act: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.norm, self.act = norm, act

    def forward(self, x: torch.Tensor) -> Any:
        x = self.norm(x)
        return x if self.act is None else self.act(x)


class PortBatchNormAnd(pn.BatchNorm2D):
    def __init__(self, function: Callable[..., Any], epsilon: float = 1e-5) -> None:
        super().__init__(8, epsilon=epsilon)
        self.function = function

    def forward(self, x: paddle.Tensor) -> Any:
        return self.function(super().forward(x))


class PortLinearAnd(pn.Linear):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(8, 8)
        self.function = function

    def forward(self, x: paddle.Tensor) -> Any:
        return self.function(super().forward(x))


class PortWrapped(pn.Layer):
    def __init__(self, norm: pn.Layer, act: Callable[..., Any] | None = None) -> None:
        super().__init__()
        self.norm, self.act = norm, act

    def forward(self, x: paddle.Tensor) -> Any:
        x = self.norm(x)
        return x if self.act is None else self.act(x)


class PortConvNormAct(pn.Layer):
    def __init__(self, act: Callable[..., Any] | None, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.conv = pn.Conv2D(8, 8, 3, padding=1, bias_attr=False)
        self.bn, self.act = pn.BatchNorm2D(8, epsilon=epsilon), act

    def forward(self, x: paddle.Tensor) -> Any:
        x = self.bn(self.conv(x))
        return x if self.act is None else self.act(x)


def of_timm(name: str, *args: Any, **settings: Any) -> Any:
    timm()
    layers = import_module("timm.layers")
    return getattr(layers, name)(*args, **settings)


def batch_norm_act(act: Callable[..., nn.Module] = nn.ReLU6) -> Any:
    return of_timm("BatchNormAct2d", 8, act_layer=act)


def group_norm_act() -> Any:
    return of_timm("GroupNormAct", 8, 2, act_layer=nn.ReLU)


def layer_norm_act() -> Any:
    return of_timm("LayerNormAct", 8, act_layer=nn.GELU)


def conv_norm_act() -> Any:
    return of_timm("ConvNormAct", 8, 8, 3)


def batch_norm(epsilon: float = 1e-5) -> pn.Layer:
    return pn.BatchNorm2D(8, epsilon=epsilon)


def tanh_gelu(x: paddle.Tensor) -> Any:
    return paddle_functional.gelu(x, approximate=True)


Layers = Callable[[], Sequence[Any]]
NORMS = (nn.BatchNorm2d, nn.GroupNorm, nn.LayerNorm)


def aligned(reference: Layers, port: Layers, mode: Any = "eval") -> Report:
    """Of the layers between two convolutions, or between two Linears where they are made for rows."""
    torch.manual_seed(0)
    own, others = list(reference()), list(port())
    rows = isinstance(own[0], (LinearAnd, nn.Linear, nn.LayerNorm))
    shape = (16, 6) if rows else (2, 3, 12, 12)
    if rows:
        model = nn.Sequential(nn.Linear(6, 8), *own, nn.Linear(8, 4))
        frame = pn.Sequential(pn.Linear(6, 8), *others, pn.Linear(8, 4))
    else:
        model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *own, nn.Conv2d(8, 4, 1))
        frame = pn.Sequential(pn.Conv2D(3, 8, 3, padding=1), *others, pn.Conv2D(8, 4, 1))
    with torch.no_grad():
        model[0].weight.mul_(4.0)
        for module in model.modules():
            if isinstance(module, NORMS):
                module.weight.uniform_(0.6, 1.4)
                module.bias.normal_(0.0, 0.3)
    given = np.random.default_rng(0).standard_normal(shape).astype("float32") * 3.0
    return align(model, frame, given, mode=mode)


def blamed(report: Report) -> list[tuple[str | None, str | None]]:
    """Path and code of everything that follows from nothing else."""
    return [
        (each.port and each.port.path, each.cause and each.cause.code)
        for each in report.divergences
        if not each.inherited
    ]


FUSED_IN_THE_REFERENCE: dict[str, tuple[Layers, Layers, tuple[str, str]]] = {
    "another slope": (
        lambda: [batch_norm_act(partial(nn.LeakyReLU, 0.01))],
        lambda: [batch_norm(), pn.LeakyReLU(0.2)],
        ("2", "config.slope"),
    ),
    "nearly the same function": (
        lambda: [batch_norm_act(nn.SiLU)],
        lambda: [batch_norm(), pn.Hardswish()],
        ("2", "op.activation"),
    ),
    "the formula of a gelu": (
        lambda: [batch_norm_act(nn.GELU)],
        lambda: [batch_norm(), pn.GELU(approximate=True)],
        ("2", "op.approximation"),
    ),
    "a function, the formula of a gelu": (
        lambda: [GroupNormAnd(functional.gelu)],
        lambda: [pn.GroupNorm(2, 8), pn.GELU(approximate=True)],
        ("2", "op.approximation"),
    ),
    "a function of another range": (
        lambda: [GroupNormAnd(functional.sigmoid)],
        lambda: [pn.GroupNorm(2, 8), pn.Tanh()],
        ("2", "op.activation"),
    ),
    "a group norm": (
        lambda: [group_norm_act()],
        lambda: [pn.GroupNorm(2, 8), pn.Silu()],
        ("2", "op.activation"),
    ),
    "a layer norm": (
        lambda: [layer_norm_act()],
        lambda: [pn.LayerNorm(8), pn.ReLU()],
        ("2", "op.activation"),
    ),
    "a linear layer": (
        lambda: [LinearAnd(functional.gelu)],
        lambda: [pn.Linear(8, 8), pn.ReLU()],
        ("2", "op.activation"),
    ),
    "forgotten": (lambda: [batch_norm_act(nn.ReLU)], lambda: [batch_norm()], ("", "op.missing")),
    "the norm and the activation": (
        lambda: [batch_norm_act(nn.SiLU)],
        lambda: [batch_norm(1e-2), pn.ReLU()],
        ("1", "config.epsilon"),
    ),
    "a wrapper's layer": (
        lambda: [batch_norm_act(nn.SiLU)],
        lambda: [PortWrapped(batch_norm(), pn.ReLU())],
        ("1.act", "op.activation"),
    ),
    "forgotten in a wrapper": (
        lambda: [batch_norm_act(nn.SiLU)],
        lambda: [PortWrapped(batch_norm())],
        ("1", "op.missing"),
    ),
    "a block's layer": (
        lambda: [conv_norm_act()],
        lambda: [PortConvNormAct(pn.Silu())],
        ("1.act", "op.activation"),
    ),
    "a block's norm, and a function after it": (
        lambda: [conv_norm_act()],
        lambda: [PortConvNormAct(paddle_functional.relu, 1e-2)],
        ("1.bn", "config.epsilon"),
    ),
    "forgotten in a block": (
        lambda: [conv_norm_act()],
        lambda: [PortConvNormAct(None)],
        ("1", "op.missing"),
    ),
    "a wrapper's norm": (
        lambda: [batch_norm_act(nn.ReLU)],
        lambda: [PortWrapped(batch_norm(1e-2), pn.ReLU())],
        ("1.norm", "config.epsilon"),
    ),
}
FUSED_IN_THE_PORT: dict[str, tuple[Layers, Layers, tuple[str, str]]] = {
    "told to the framework's layer": (
        lambda: [nn.BatchNorm2d(8), nn.SiLU()],
        lambda: [pn.BatchNorm(8, act="relu")],
        ("1", "op.activation"),
    ),
    "told to the framework's layer, of another range": (
        lambda: [nn.BatchNorm2d(8), nn.Sigmoid()],
        lambda: [pn.BatchNorm(8, act="tanh")],
        ("1", "op.activation"),
    ),
    "nearly the same function": (
        lambda: [nn.BatchNorm2d(8), nn.SiLU()],
        lambda: [PortBatchNormAnd(paddle_functional.hardswish)],
        ("1", "op.activation"),
    ),
    "another slope": (
        lambda: [nn.BatchNorm2d(8), nn.LeakyReLU(0.01)],
        lambda: [PortBatchNormAnd(partial(paddle_functional.leaky_relu, negative_slope=0.2))],
        ("1", "config.slope"),
    ),
    "the formula of a gelu": (
        lambda: [nn.BatchNorm2d(8), nn.GELU()],
        lambda: [PortBatchNormAnd(tanh_gelu)],
        ("1", "op.approximation"),
    ),
    "the norm": (
        lambda: [nn.BatchNorm2d(8), nn.SiLU()],
        lambda: [PortBatchNormAnd(paddle_functional.silu, 1e-2)],
        ("1", "config.epsilon"),
    ),
    "the norm of two fused layers": (
        lambda: [batch_norm_act(nn.SiLU)],
        lambda: [PortBatchNormAnd(paddle_functional.silu, 1e-2)],
        ("1", "config.epsilon"),
    ),
    "a linear layer": (
        lambda: [nn.Linear(8, 8), nn.GELU()],
        lambda: [PortLinearAnd(paddle_functional.relu)],
        ("1", "op.activation"),
    ),
    "forgotten in a wrapper": (
        lambda: [nn.BatchNorm2d(8), nn.ReLU()],
        lambda: [PortWrapped(batch_norm())],
        ("", "op.missing"),
    ),
    "a wrapper's function": (
        lambda: [nn.BatchNorm2d(8), nn.SiLU()],
        lambda: [PortWrapped(batch_norm(), paddle_functional.relu)],
        ("1", "op.activation"),
    ),
}


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize(
    ("reference", "port", "expected"), FUSED_IN_THE_REFERENCE.values(), ids=list(FUSED_IN_THE_REFERENCE)
)
def test_the_half_that_is_wrong_is_blamed_where_the_reference_fuses(
    reference: Layers, port: Layers, expected: tuple[str, str], mode: str
) -> None:
    assert blamed(aligned(reference, port, mode)) == [expected]


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize(
    ("reference", "port", "expected"), FUSED_IN_THE_PORT.values(), ids=list(FUSED_IN_THE_PORT)
)
def test_the_half_that_is_wrong_is_blamed_where_the_port_fuses(
    reference: Layers, port: Layers, expected: tuple[str, str], mode: str
) -> None:
    assert blamed(aligned(reference, port, mode)) == [expected]


def test_the_wrong_activation_is_blamed_and_not_the_norm() -> None:
    report = aligned(lambda: [batch_norm_act()], lambda: [batch_norm(), pn.ReLU()])
    assert blamed(report) == [("2", "op.activation")]
    assert report.first is not None
    assert report.first.cause is not None
    assert report.first.cause.fix == "port[2] = paddle.nn.ReLU6()"
    function = aligned(lambda: [NormAndSwish(2, 8)], lambda: [pn.GroupNorm(2, 8), pn.ReLU()])
    assert blamed(function) == [("2", "op.activation")]


def test_a_wrong_norm_is_blamed_and_not_the_activation() -> None:
    report = aligned(lambda: [batch_norm_act()], lambda: [batch_norm(1e-2), pn.ReLU6()])
    assert blamed(report) == [("1", "config.epsilon")]


CORRECT: dict[str, tuple[Layers, Layers]] = {
    "a batch norm": (lambda: [batch_norm_act()], lambda: [batch_norm(), pn.ReLU6()]),
    "a slope": (
        lambda: [batch_norm_act(partial(nn.LeakyReLU, 0.2))],
        lambda: [batch_norm(), pn.LeakyReLU(0.2)],
    ),
    "a function": (lambda: [NormAndSwish(2, 8)], lambda: [pn.GroupNorm(2, 8), pn.Silu()]),
    "a group norm": (lambda: [group_norm_act()], lambda: [pn.GroupNorm(2, 8), pn.ReLU()]),
    "a layer norm": (lambda: [layer_norm_act()], lambda: [pn.LayerNorm(8), pn.GELU()]),
    "a linear layer": (lambda: [LinearAnd(functional.gelu)], lambda: [pn.Linear(8, 8), pn.GELU()]),
    "a port's linear layer": (
        lambda: [nn.Linear(8, 8), nn.GELU()],
        lambda: [PortLinearAnd(paddle_functional.gelu)],
    ),
    "a port's layer that is told": (
        lambda: [nn.BatchNorm2d(8), nn.ReLU()],
        lambda: [pn.BatchNorm(8, act="relu")],
    ),
    "a port's layer": (
        lambda: [nn.BatchNorm2d(8), nn.SiLU()],
        lambda: [PortBatchNormAnd(paddle_functional.silu)],
    ),
    "two wrappers": (
        lambda: [Wrapped(nn.BatchNorm2d(8), functional.silu)],
        lambda: [PortWrapped(batch_norm(), pn.Silu())],
    ),
    "a block": (lambda: [conv_norm_act()], lambda: [PortConvNormAct(paddle_functional.relu)]),
}


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize(("reference", "port"), CORRECT.values(), ids=list(CORRECT))
def test_a_correct_port_is_the_same(reference: Layers, port: Layers, mode: str) -> None:
    assert aligned(reference, port, mode).ok


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = of_timm("ConvNormAct", 8, 8, 3, act_layer=nn.SiLU)
        self.outer = batch_norm_act(nn.SiLU)

    def forward(self, x: torch.Tensor) -> Any:
        return self.outer(x + self.inner(x))


class PortBlock(pn.Layer):
    """Of several like it only one is wrong, and all run the same lines."""

    def __init__(
        self, inner: Any = paddle_functional.silu, outer: Any = paddle_functional.silu, **epsilons: float
    ) -> None:
        super().__init__()
        self.inner = PortConvNormAct(inner, epsilons.get("inner_epsilon", 1e-5))
        self.norm, self.act = batch_norm(epsilons.get("outer_epsilon", 1e-5)), outer

    def forward(self, x: paddle.Tensor) -> Any:
        x = self.norm(x + self.inner(x))
        return x if self.act is None else self.act(x)


OF_SEVERAL: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "another function": ({"inner": paddle_functional.relu}, ("2.inner", "op.activation")),
    "forgotten": ({"inner": None}, ("2.inner", "op.missing")),
    "the norm": ({"inner_epsilon": 1e-3}, ("2.inner.bn", "config.epsilon")),
    "another function after the sum": ({"outer": paddle_functional.relu}, ("2", "op.activation")),
    "forgotten after the sum": ({"outer": None}, ("2", "op.missing")),
    "the norm after the sum": ({"outer_epsilon": 1e-3}, ("2.norm", "config.epsilon")),
}


@pytest.mark.parametrize("mode", ["eval", "train"])
@pytest.mark.parametrize(("wrong", "expected"), OF_SEVERAL.values(), ids=list(OF_SEVERAL))
def test_the_block_that_is_wrong_is_blamed_of_several(
    wrong: dict[str, Any], expected: tuple[str, str], mode: str
) -> None:
    report = aligned(
        lambda: [Block() for _ in range(3)], lambda: [PortBlock(), PortBlock(**wrong), PortBlock()], mode
    )
    assert blamed(report) == [expected]


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_several_correct_blocks_are_the_same(mode: str) -> None:
    assert aligned(lambda: [Block() for _ in range(3)], lambda: [PortBlock() for _ in range(3)], mode).ok
