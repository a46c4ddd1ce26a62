"""A line that runs several times with other values: its fix is right in every run of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paddle
import pytest

import parfocal as pf
from tests.faults.mending import Pair, build, patched, reference_of

HEAD = """from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


{code}


def build():
    return Model()
"""


def pair(code: str, *shape: int) -> Pair:
    reference = HEAD.format(code=code.strip())
    port = reference.replace("torch", "paddle").replace("nn.Module", "nn.Layer")
    return Pair(reference, port, (shape,))


HELPER = pair(
    """
def act(x, slope=0.2):
    return F.leaky_relu(x, slope)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def level(self, x, scale):
        return torch.tanh(x) * scale

    def forward(self, x):
        rank = x.ndim
        a = self.level(act(self.a(x)), 2.0)
        b = self.level(act(self.b(a), 0.3), 3.0)
        return self.c(a + b) * 2.0 + rank
""",
    *(4, 8),
)
LOOP = pair(
    """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.gains = [0.5, 0.7, 0.9]

    def forward(self, x):
        for i, layer in enumerate((self.a, self.b, self.c)):
            x = x + torch.tanh(layer(x)) * self.gains[i]
            x = torch.sin(x / (i + 1))
        return x
""",
    *(4, 8),
)
PARTS = pair(
    """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.weights = [0.5, 1.5, 2.0]

    def forward(self, x):
        layers = (self.a, self.b, self.c)
        parts = [torch.tanh(layer(x)) * weight for layer, weight in zip(layers, self.weights)]
        total = 0
        for part in parts:
            total = total + part
        return torch.sigmoid(total) + parts[0] - parts[2]
""",
    *(4, 8),
)
KEPT = pair(
    """
class Block(nn.Module):
    def __init__(self, act="gelu"):
        super().__init__()
        self.fc, self.act = nn.Linear(8, 8), getattr(F, act)

    def forward(self, x):
        return x + self.act(self.fc(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = Block(), Block("relu"), Block("silu")

    def forward(self, x):
        states, named = [x], {}
        for block in (self.one, self.two, self.three):
            x = block(x) * 0.5
            states.append(x)
            named[f"stage{len(states)}"] = torch.tanh(x)
        return states[-1] + states[1] - named["stage3"]
""",
    *(4, 8),
)
STEPS = pair(
    """
class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.x, self.h = nn.Linear(6, 12), nn.Linear(6, 12)

    def forward(self, x, h):
        gate, new = (self.x(x) + self.h(h)).chunk(2, -1)
        return torch.sigmoid(gate) * torch.tanh(new) + h


class Model(nn.Module):
    STRIDES = (1, 2, 4)

    def __init__(self):
        super().__init__()
        self.cell, self.out, self.side = Cell(), nn.Linear(6, 3), nn.Linear(4, 3)

    def pooled(self, x, stride):
        return x if stride == 1 else F.avg_pool1d(x, stride, stride)

    def forward(self, x):
        h = x.mean(1)
        for step in range(x.shape[1]):
            h = self.cell(x[:, step], h)
        sides = [self.side(self.pooled(x, stride).mean(-1)) for stride in self.STRIDES]
        return self.out(h) + sides[0] - sides[1] * sides[2]
""",
    *(3, 4, 6),
)
BLOCKS = pair(
    """
@dataclass
class Config:
    scale: float
    slope: float = 0.2


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config, self.width = config, 8
        self.fc = nn.Linear(8, 8)

    def forward(self, x, gain):
        y = F.leaky_relu(self.fc(x), self.config.slope) * self.config.scale
        return x + y * gain


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Block(Config(0.5)), Block(Config(0.8, slope=0.3))

    def forward(self, x):
        x = self.one(x, 0.5)
        for step in range(1, 4):
            x = self.two(x, 1 / step)
        return x
""",
    *(4, 8),
)


@dataclass(frozen=True)
class Fault:
    pair: Pair
    right: str
    wrong: str
    fix: str  # the line to write, without its place


FAULTS = {
    "a number for a name": Fault(HELPER, "* scale", "* 2.0", "return paddle.tanh(x) * scale"),
    "a number that is never right": Fault(HELPER, "* scale", "* 1.0", "return paddle.tanh(x) * scale"),
    "handed in": Fault(HELPER, ", 3.0)", ", 2.0)", "b = self.level(act(self.b(a), 0.3), 3.0)"),
    "left to its default": Fault(
        HELPER, "act(self.b(a), 0.3)", "act(self.b(a))", "b = self.level(act(self.b(a), slope=0.3), 3.0)"
    ),
    "a number that a name has by chance": Fault(
        HELPER, "(a + b) * 2.0", "(a + b) * 2.5", "return self.c(a + b) * 2.0 + rank"
    ),
    "another item": Fault(
        LOOP, "self.gains[i]", "self.gains[0]", "x = x + paddle.tanh(layer(x)) * self.gains[i]"
    ),
    "an item": Fault(LOOP, "[0.5, 0.7, 0.9]", "[0.5, 0.6, 0.9]", "port.gains[1] = 0.7"),
    "a count": Fault(LOOP, "(i + 1)", "(i + 2)", "x = paddle.sin(x / (i + 1))"),
    "in a comprehension": Fault(
        PARTS,
        "* weight for",
        "* 0.5 for",
        "parts = [paddle.tanh(layer(x)) * weight for layer, weight in zip(layers, self.weights)]",
    ),
    "a sum that is not carried on": Fault(PARTS, "total + part", "part", "total = total + part"),
    "a function that a module keeps": Fault(
        KEPT, 'Block("silu")', "Block()", "port.three.act = paddle.nn.functional.silu"
    ),
    "another item of a list": Fault(
        KEPT, "states[1]", "states[0]", 'return states[-1] + states[1] - named["stage3"]'
    ),
    "another item of a dictionary": Fault(
        KEPT, 'named["stage3"]', 'named["stage2"]', 'return states[-1] + states[1] - named["stage3"]'
    ),
    "parts under each other's names": Fault(
        STEPS, "gate, new =", "new, gate =", "gate, new = (self.x(x) + self.h(h)).chunk(2, -1)"
    ),
    "an index": Fault(STEPS, "x[:, step]", "x[:, 0]", "h = self.cell(x[:, step], h)"),
    "another function of other numbers": Fault(
        STEPS,
        "F.avg_pool1d(x, stride, stride)",
        "F.max_pool1d(x, stride, stride)",
        "return x if stride == 1 else F.avg_pool1d(x, kernel_size=stride, stride=stride, exclusive=False)",
    ),
    "a setting's name": Fault(
        BLOCKS,
        "self.config.scale",
        "0.8",
        "y = F.leaky_relu(self.fc(x), self.config.slope) * self.config.scale",
    ),
    "a setting's value": Fault(
        BLOCKS, "slope: float = 0.2", "slope: float = 0.1", "port.one.config.slope = 0.2"
    ),
    "handed to a module": Fault(BLOCKS, "y * gain", "y * 0.5", "return x + y * gain"),
    "handed to a module by another": Fault(BLOCKS, "1 / step", "0.5", "x = self.two(x, 1 / step)"),
}


def aligned(reference: Any, port: Any, pair: Pair) -> pf.Report:
    return pf.align(reference, port, pair.inputs(), mode="eval", backward=False)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_fix_mends_every_run_of_the_line(fault: Fault, tmp_path: Path) -> None:
    assert fault.right in fault.pair.port
    source = fault.pair.port.replace(fault.right, fault.wrong, 1)
    reference, port = reference_of(tmp_path, fault.pair), build(tmp_path, "port", source)
    report = aligned(reference, port, fault.pair)
    assert report.first is not None
    assert report.first.cause is not None, str(report)
    fix = report.first.cause.fix
    assert fix.partition("  #")[0] == fault.fix
    text = patched(source, fix)
    if text is None:
        exec(fix, {"port": port, "paddle": paddle})
    else:
        port = build(tmp_path, "port", text)
    aligned(reference, port, fault.pair).raise_if_diverged()


@pytest.mark.parametrize("pair", [HELPER, LOOP, PARTS, KEPT, STEPS, BLOCKS])
def test_the_pairs_are_right_without_a_fault(pair: Pair, tmp_path: Path) -> None:
    port = build(tmp_path, "port", pair.port)
    aligned(reference_of(tmp_path, pair), port, pair).raise_if_diverged()
