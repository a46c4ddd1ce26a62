"""Every fix is a line of code that mends the port when it is put where it says."""

# ruff: noqa: E501  a fault is a line of a table

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import parfocal as pf
from parfocal.judge.verdict import Cause
from tests.faults.mending import Pair, apply_fix, build, reference_of, replaced

TORCH = """import math

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, x):
{forward}


def build():
    return Model()
"""
PADDLE = TORCH.replace("torch", "paddle").replace("nn.Module", "nn.Layer")


def pair(torch_init: str, torch_forward: str, paddle_init: str, paddle_forward: str, *shape: int) -> Pair:
    texts = [
        "\n".join(f"        {line}" for line in text.strip().splitlines())
        for text in (torch_init, torch_forward, paddle_init, paddle_forward)
    ]
    return Pair(
        TORCH.format(init=texts[0], forward=texts[1]),
        PADDLE.format(init=texts[2], forward=texts[3]),
        (shape,),
    )


MLP = pair(
    """
self.first, self.norm, self.second = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(16, 12)
self.last = nn.Linear(12, 12)
""",
    """
hidden = F.gelu(self.norm(self.first(x)))
hidden = F.dropout(hidden, 0.4, training=self.training)
x = x + 0.5 * self.second(hidden)
size = torch.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-2)
return F.log_softmax(self.last(torch.tanh(x / size)), dim=-1)
""",
    """
self.first, self.norm, self.second = nn.Linear(12, 16), nn.LayerNorm(16), nn.Linear(16, 12)
self.last = nn.Linear(12, 12)
""",
    """
hidden = F.gelu(self.norm(self.first(x)))
hidden = F.dropout(hidden, 0.4, training=self.training)
x = x + 0.5 * self.second(hidden)
size = paddle.sqrt(x.pow(2).mean(-1, keepdim=True) + 1e-2)
return F.log_softmax(self.last(paddle.tanh(x / size)), axis=-1)
""",
    *(3, 5, 12),
)
ATTENTION = pair(
    """
self.query, self.key, self.value = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)
self.out = nn.Linear(12, 12)
""",
    """
query, key, value = (
    layer(x).reshape(x.shape[0], x.shape[1], 3, 4).transpose(1, 2)
    for layer in (self.query, self.key, self.value)
)
scores = query @ key.transpose(-2, -1) * 4**-0.5
mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
scores = scores.masked_fill(mask, -1e4)
weights = torch.softmax(scores, dim=-1)
mixed = (weights @ value).permute(0, 2, 1, 3).reshape(x.shape[0], x.shape[1], 12)
return self.out(mixed)
""",
    """
self.query, self.key, self.value = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12)
self.out = nn.Linear(12, 12)
""",
    """
query, key, value = (
    layer(x).reshape([x.shape[0], x.shape[1], 3, 4]).transpose([0, 2, 1, 3])
    for layer in (self.query, self.key, self.value)
)
scores = paddle.matmul(query, key, transpose_y=True) * 0.5
mask = paddle.triu(paddle.ones([x.shape[1], x.shape[1]], dtype="bool"), 1)
scores = paddle.where(mask, paddle.full_like(scores, -1e4), scores)
weights = F.softmax(scores, axis=-1)
mixed = paddle.matmul(weights, value).transpose([0, 2, 1, 3]).reshape([x.shape[0], x.shape[1], 12])
return self.out(mixed)
""",
    *(2, 6, 12),
)
CONV = pair(
    """
self.conv = nn.Conv2d(3, 8, 3, stride=2, padding=1)
self.norm, self.act = nn.BatchNorm2d(8), nn.LeakyReLU(0.1)
self.pool, self.second = nn.AvgPool2d(3, 2, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=2)
self.up, self.drop, self.head = nn.Upsample(scale_factor=2, mode="bilinear"), nn.Dropout(0.5), nn.Linear(19, 4)
""",
    """
y = self.act(self.norm(self.conv(x)))
y = self.drop(y)
z = self.up(self.second(self.pool(y)))
gate = torch.sigmoid(z.mean([2, 3], keepdim=True))
y = torch.relu(y - gate * z)
x = F.interpolate(x, size=(8, 8), mode="bilinear", align_corners=False)
y = torch.cat([y, x, z], dim=1)
return self.head(y.mean([2, 3]))
""",
    """
self.conv = nn.Conv2D(3, 8, 3, stride=2, padding=1)
self.norm, self.act = nn.BatchNorm2D(8), nn.LeakyReLU(0.1)
self.pool = nn.AvgPool2D(3, 2, padding=1, exclusive=False)
self.second = nn.Conv2D(8, 8, 3, padding=1, groups=2)
self.up, self.drop, self.head = nn.Upsample(scale_factor=2, mode="bilinear"), nn.Dropout(0.5), nn.Linear(19, 4)
""",
    """
y = self.act(self.norm(self.conv(x)))
y = self.drop(y)
z = self.up(self.second(self.pool(y)))
gate = F.sigmoid(z.mean([2, 3], keepdim=True))
y = F.relu(y - gate * z)
x = F.interpolate(x, size=[8, 8], mode="bilinear", align_corners=False)
y = paddle.concat([y, x, z], axis=1)
return self.head(y.mean([2, 3]))
""",
    *(2, 3, 16, 16),
)


NORM = pair(
    "self.first, self.norm, self.second = nn.Linear(12, 16), nn.LayerNorm(16, eps=1e-3), nn.Linear(16, 12)",
    "return self.second(self.norm(self.first(x)))",
    """
self.first, self.norm, self.second = nn.Linear(12, 16), Norm(16), nn.Linear(16, 12)
self.norm.epsilon = 1e-3
""",
    "return self.second(self.norm(self.first(x)))",
    *(3, 5, 12),
)
NORM = replace(
    NORM,
    port=NORM.port.replace(
        "class Model",
        """class Norm(nn.Layer):
    def __init__(self, width):
        super().__init__()
        self.weight, self.bias = self.create_parameter([width]), self.create_parameter([width], is_bias=True)
        self.epsilon = 1e-5

    def forward(self, x):
        apart = x - x.mean(-1, keepdim=True)
        variance = apart.square().mean(-1, keepdim=True)
        return apart / paddle.sqrt(variance + self.epsilon) * self.weight + self.bias


class Model""",
    ),
)


TENSOR = replace(
    NORM, port=NORM.port.replace("variance + self.epsilon", "variance + paddle.to_tensor([self.epsilon])")
)


@dataclass(frozen=True)
class Fault:
    """A text of the port's source, what a mistaken port has instead, and the right cause."""

    name: str
    pair: Pair
    right: str
    wrong: str
    code: str
    prepare: str = ""  # done to the built port
    options: dict[str, Any] = field(default_factory=dict)

    def source(self) -> str:
        assert self.pair.port.count(self.right) >= 1, self.right
        return self.pair.port.replace(self.right, self.wrong, 1)


WEIGHTS = {"transfer": False}
# fmt: off
LAYERS = (
    Fault("epsilon", MLP, "nn.LayerNorm(16)", "nn.LayerNorm(16, epsilon=1e-3)", "config.epsilon"),
    Fault("slope", CONV, "nn.LeakyReLU(0.1)", "nn.LeakyReLU(0.2)", "config.slope"),
    Fault("activation", CONV, "nn.LeakyReLU(0.1)", "nn.Mish()", "op.activation"),
    Fault("pool count", CONV, ", exclusive=False", "", "op.pool_count"),
    Fault("padding mode", CONV, "padding=1, groups=2", 'padding=1, padding_mode="circular", groups=2', "op.padding_mode"),
    Fault("padding and dilation", CONV, "padding=1, groups=2", "padding=2, dilation=2, groups=2", "config.padding"),
    Fault("kernel", CONV, "nn.AvgPool2D(3, 2, padding=1", "nn.AvgPool2D(5, 2, padding=2", "config.kernel"),
    Fault("momentum", CONV, "nn.BatchNorm2D(8)", "nn.BatchNorm2D(8, momentum=0.1)", "config.momentum", options={"mode": "train"}),
    Fault("corners", CONV, 'mode="bilinear"), nn', 'mode="bilinear", align_corners=True), nn', "op.align_corners"),
    Fault("method", CONV, 'mode="bilinear"), nn', 'mode="nearest"), nn', "op.interpolation"),
    Fault("norm in train mode", CONV, "", "", "mode.training", "port.eval(); port.norm.train()", {"mode": "keep"}),
)
CODE = (
    Fault("approximation", MLP, "F.gelu(self.norm(self.first(x)))", "F.gelu(self.norm(self.first(x)), True)", "op.approximation"),
    Fault("function", MLP, "F.gelu(", "F.silu(", "op.activation"),
    Fault("function behind", MLP, "paddle.tanh(x / size)", "F.sigmoid(x / size)", "op.activation"),
    Fault("function at the end", MLP, "F.log_softmax(", "F.softmax(", "op.activation"),
    Fault("dropout on", MLP, "training=self.training", "training=True", "mode.training"),
    Fault("scale", MLP, "0.5 * self.second", "0.1 * self.second", "op.scale"),
    Fault("no scale", MLP, "0.5 * self.second(hidden)", "self.second(hidden)", "op.scale"),
    Fault("epsilon in code", MLP, "+ 1e-2", "+ 1e-1", "config.epsilon"),
    Fault("epsilon of a hand-written layer", NORM, "self.norm.epsilon = 1e-3", "self.norm.epsilon = 1e-1", "config.epsilon"),
    Fault("epsilon as a tensor", TENSOR, "self.norm.epsilon = 1e-3", "self.norm.epsilon = 1e-1", "config.epsilon"),
    Fault("power", MLP, "x.pow(2)", "x.pow(4)", "config.other"),
    Fault("mean over another axis", MLP, "mean(-1, keepdim", "mean(1, keepdim", "op.axis"),
    Fault("softmax over another axis", MLP, "axis=-1)", "axis=1)", "op.axis"),
    Fault("no function", MLP, "paddle.tanh(x / size)", "x / size", "op.missing"),
    Fault("no function at the end", MLP, "F.log_softmax(self.last(paddle.tanh(x / size)), axis=-1)", "self.last(paddle.tanh(x / size))", "op.missing"),
    Fault("one function more", MLP, "paddle.tanh(x / size)", "F.relu(paddle.tanh(x / size))", "op.extra"),
    Fault("one function more at the end", MLP, "return F.log_softmax(self.last(paddle.tanh(x / size)), axis=-1)", "x = F.log_softmax(self.last(paddle.tanh(x / size)), axis=-1)\n        return F.relu(x)", "op.extra"),
    Fault("detached", MLP, "x = x + 0.5", "x = x.detach() + 0.5", "grad.detached"),
    Fault("detached inside", MLP, "self.second(hidden)", "self.second(hidden.detach())", "grad.detached"),
    Fault("lower precision", MLP, "self.second(hidden)", 'self.second(hidden.astype("float16").astype("float32"))', "dtype.precision"),
    Fault("no residual", MLP, "x = x + 0.5 * self.second(hidden)", "x = 0.5 * self.second(hidden)", "op.missing"),
    Fault("noise", MLP, "x = x + 0.5 * self.second(hidden)", "x = x + 0.5 * self.second(hidden) + 0.1 * paddle.randn(x.shape)", "random.source"),
    Fault("hook", MLP, "x = x + 0.5", "hidden.register_hook(lambda gradient: 3 * gradient)\n        x = x + 0.5", "grad.scale"),
    Fault("doubled gradient", MLP, "self.second(hidden)", "self.second(2 * hidden - hidden.detach())", "grad.scale"),
    Fault("sum for mean", MLP, "x.pow(2).mean(-1", "x.pow(2).sum(-1", "op.scale"),
    Fault("maximum for mean", MLP, "x.pow(2).mean(-1", "x.pow(2).max(-1", "op.kind"),
    Fault("sign", MLP, "x = x + 0.5", "x = x - 0.5", "op.kind"),
    Fault("attention scale", ATTENTION, "* 0.5", "* 0.25", "op.scale"),
    Fault("no attention scale", ATTENTION, " * 0.5", "", "op.scale"),
    Fault("attention axis", ATTENTION, "axis=-1", "axis=-2", "op.axis"),
    Fault("inverted mask", ATTENTION, "paddle.where(mask, paddle.full_like(scores, -1e4), scores)", "paddle.where(mask, scores, paddle.full_like(scores, -1e4))", "op.mask"),
    Fault("mask off by one", ATTENTION, '"bool"), 1)', '"bool"), 2)', "op.mask"),
    Fault("queries and keys", ATTENTION, "paddle.matmul(query, key,", "paddle.matmul(key, query,", "op.order"),
    Fault("heads joined", ATTENTION, "value).transpose([0, 2, 1, 3])", "value)", "layout.permuted"),
    Fault("heads joined otherwise", ATTENTION, "value).transpose([0, 2, 1, 3])", "value).transpose([0, 2, 3, 1])", "layout.permuted"),
    Fault("concat order", CONV, "[y, x, z]", "[x, y, z]", "op.order"),
    Fault("another function in code", CONV, "F.relu(y - gate", "F.gelu(y - gate", "op.activation"),
    Fault("another tensor", CONV, "y - gate * z", "y - gate * y", "op.order"),
    Fault("operands", CONV, "y - gate * z", "gate * z - y", "op.order"),
    Fault("corners in code", CONV, "align_corners=False", "align_corners=True", "op.align_corners"),
    Fault("method in code", CONV, 'mode="bilinear", align_corners=False', 'mode="nearest"', "op.interpolation"),
    Fault("mean over other axes", CONV, "gate = F.sigmoid(z.mean([2, 3]", "gate = F.sigmoid(z.mean([1, 3]", "op.axis"),
)
STATE = (
    Fault("transposed", MLP, "", "", "weight.transposed", "port.last.weight.set_value(port.last.weight.t().clone())", WEIGHTS),
    Fault("mismatched", MLP, "", "", "weight.mismatched", "port.second.bias.set_value(port.second.bias * 1.5 + 1.0)", WEIGHTS),
    Fault("permuted", CONV, "", "", "weight.permuted", "port.conv.weight.set_value(port.conv.weight.flip(1))", WEIGHTS),
)
# fmt: on
FAULTS = (*LAYERS, *CODE, *STATE)


ALL = {fault.name: fault for fault in FAULTS}
# A mistake, and one in another statement of the same pair, whose fix is no cure.
OTHERS = (
    ("scale", "softmax over another axis"),
    ("epsilon in code", "function"),
    ("detached", "epsilon in code"),
    ("attention axis", "attention scale"),
    ("concat order", "corners in code"),
    ("slope", "pool count"),
    ("pool count", "concat order"),
)


def aligned(reference: Any, port: Any, fault: Fault) -> pf.Report:
    options = {"mode": "eval", "backward": fault.code.startswith("grad"), **fault.options}
    return pf.align(reference, port, fault.pair.inputs(), **options)


def planted(fault: Fault, folder: Path) -> tuple[Any, Any]:
    reference, port = reference_of(folder, fault.pair), build(folder, "port", fault.source())
    if fault.options.get("transfer") is False or fault.options.get("mode") == "keep":
        pf.transfer(reference, port, fault.pair.inputs())
    exec(fault.prepare, {"port": port})
    return reference, port


def cause_of(fault: Fault, folder: Path) -> tuple[Any, Any, Cause]:
    reference, port = planted(fault, folder)
    first = aligned(reference, port, fault).first
    assert first is not None
    assert first.cause is not None, first
    return reference, port, first.cause


def check_named_and_mended(fault: Fault, tmp_path: Path) -> None:
    """The cause has its code, and the port is right with its fix, which is code."""
    reference, port, cause = cause_of(fault, tmp_path)
    assert cause.code == fault.code, cause
    ast.parse(cause.fix)
    mended = apply_fix(tmp_path, fault.source(), port, reference, cause.fix)
    aligned(reference, mended, fault).raise_if_diverged()


@pytest.mark.filterwarnings("ignore:When training, we now always track global mean:UserWarning")
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_fix_mends_the_port(fault: Fault, tmp_path: Path) -> None:
    check_named_and_mended(fault, tmp_path)


@pytest.mark.parametrize(("name", "other"), OTHERS)
def test_the_fix_of_another_mistake_does_not(name: str, other: str, tmp_path: Path) -> None:
    fault = ALL[name]
    (tmp_path / "other").mkdir()
    _, _, cause = cause_of(ALL[other], tmp_path / "other")
    reference, port = planted(fault, tmp_path)
    mended = apply_fix(tmp_path, fault.source(), port, reference, cause.fix)
    assert not aligned(reference, mended, fault).ok


@pytest.mark.parametrize("pair", [MLP, ATTENTION, CONV, NORM, TENSOR])
def test_the_pairs_are_right_without_a_fault(pair: Pair, tmp_path: Path) -> None:
    report = pf.align(
        reference_of(tmp_path, pair), build(tmp_path, "port", pair.port), pair.inputs(), mode="eval"
    )
    report.raise_if_diverged()


TORCH_PORTS = (
    (MLP, "F.gelu(self.norm(self.first(x)))", 'F.gelu(self.norm(self.first(x)), approximate="tanh")'),
    (MLP, "F.log_softmax(", "F.softmax("),
    (MLP, "torch.tanh(x / size)", "x / size"),
    (MLP, "mean(-1, keepdim", "mean(1, keepdim"),
    (MLP, "x = x + 0.5 * self.second(hidden)", "x = 0.5 * self.second(hidden)"),
    (ATTENTION, ".masked_fill(mask,", ".masked_fill(~mask,"),
    (ATTENTION, ".permute(0, 2, 1, 3)", ".permute(0, 2, 3, 1)"),
    (CONV, "torch.cat([y, x, z]", "torch.cat([x, y, z]"),
    (CONV, "nn.LeakyReLU(0.1)", "nn.LeakyReLU(0.2)"),
)


@pytest.mark.parametrize(("pair", "right", "wrong"), TORCH_PORTS)
def test_a_port_to_torch_is_mended_in_its_own_words(
    pair: Pair, right: str, wrong: str, tmp_path: Path
) -> None:
    reference = build(tmp_path, "reference", pair.port)
    pf.transfer(reference_of(tmp_path, pair), reference, pair.inputs())
    reference.eval()
    source = pair.reference.replace(right, wrong, 1)
    assert source != pair.reference
    port = build(tmp_path, "port", source)
    first = pf.align(reference, port, pair.inputs(), mode="eval", backward=False).first
    assert first is not None
    assert first.cause is not None
    mended = apply_fix(tmp_path, source, port, reference, first.cause.fix)
    pf.align(reference, mended, pair.inputs(), mode="eval").raise_if_diverged()


def test_a_statement_is_replaced_and_nothing_else() -> None:
    source = "def f(x):\n    if x:\n        y = g(\n            x,\n        )  # why\n    return y\n"
    assert replaced(source, 4, "y = h(x)") == "def f(x):\n    if x:\n        y = h(x)\n    return y\n"
