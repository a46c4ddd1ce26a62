"""Where more than a word is wrong, the fix is the reference's way in the port's own names, and it mends."""

# ruff: noqa: E501  a fault is a line of a table

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import parfocal as pf
from tests.faults.mending import Pair, apply_fix, build, reference_of
from tests.faults.test_fixes import Fault, check_named_and_mended, pair

BLOCKS = pair(
    """
self.position = nn.Parameter(torch.randn(1, 5, 12))
self.norm1, self.norm2, self.last = nn.LayerNorm(12), nn.LayerNorm(12), nn.LayerNorm(12)
self.mix, self.deep, self.gate, self.head = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 4)
self.act = nn.ReLU()
""",
    """
x = x + self.position
x = x + self.mix(self.norm1(x))
y = self.deep(self.norm2(x))
x = self.act(y + x)
gate = torch.sigmoid(self.gate(x.mean(1)))
x = x * gate[:, None, :]
x = x + x.mean(1, keepdim=True)
return self.head(self.last(x)[:, 0])
""",
    """
self.position = self.create_parameter([1, 5, 12])
self.norm1, self.norm2, self.last = nn.LayerNorm(12), nn.LayerNorm(12), nn.LayerNorm(12)
self.mix, self.deep, self.gate, self.head = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 4)
self.act = nn.ReLU()
""",
    """
x = x + self.position
x = x + self.mix(self.norm1(x))
y = self.deep(self.norm2(x))
x = self.act(y + x)
gate = F.sigmoid(self.gate(x.mean(1)))
x = x * gate.unsqueeze(1)
x = x + x.mean(1, keepdim=True)
return self.head(self.last(x)[:, 0])
""",
    *(3, 5, 12),
)
MASKED = pair(
    "self.fc, self.weigh, self.out = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 3)",
    """
y = self.fc(x)
empty = (x[:, :, :1] > 0).to(y.dtype)
share = torch.softmax(self.weigh(y) - 1e4 * empty, 1)
causal = torch.full((7, 7), float("-inf")).triu(1)
y = torch.softmax(y @ y.transpose(1, 2) + causal, -1) @ y
return self.out((share * y).sum(1))
""",
    "self.fc, self.weigh, self.out = nn.Linear(6, 8), nn.Linear(8, 1), nn.Linear(8, 3)",
    """
y = self.fc(x)
empty = (x[:, :, :1] > 0).astype(y.dtype)
share = F.softmax(self.weigh(y) - 1e4 * empty, 1)
causal = paddle.full([7, 7], float("-inf")).triu(1)
y = paddle.matmul(F.softmax(paddle.matmul(y, y, transpose_y=True) + causal, -1), y)
return self.out((share * y).sum(1))
""",
    *(2, 7, 6),
)
RECURRENT = pair(
    "self.first, self.second, self.out = nn.GRU(6, 8, batch_first=True), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)",
    """
seen, state = self.first(x)
again, _ = self.second(x.flip(1), state)
return self.out(seen + again)
""",
    "self.first, self.second, self.out = nn.GRU(6, 8), nn.GRU(6, 8), nn.Linear(8, 3)",
    """
seen, state = self.first(x)
again, _ = self.second(x.flip(1), state)
return self.out(seen + again)
""",
    *(2, 5, 6),
)
TIED = pair(
    """
self.embed, self.deep, self.again = nn.Embedding(10, 8), nn.Linear(8, 8), nn.Linear(8, 8)
self.again.weight = self.deep.weight
""",
    """
tokens = (x.abs() * 4).long().clamp(max=9)
y = torch.tanh(self.again(torch.tanh(self.deep(self.embed(tokens)))))
return F.linear(y, self.embed.weight)
""",
    """
self.embed, self.deep, self.again = nn.Embedding(10, 8), nn.Linear(8, 8), nn.Linear(8, 8)
self.again.weight = self.deep.weight
""",
    """
tokens = (x.abs() * 4).astype("int64").clip(max=9)
y = paddle.tanh(self.again(paddle.tanh(self.deep(self.embed(tokens)))))
return paddle.matmul(y, self.embed.weight, transpose_y=True)
""",
    *(5, 6),
)
PICTURE = pair(
    "self.mix, self.shuffle, self.paint = nn.Conv2d(3, 8, 3, padding=1), nn.PixelShuffle(2), nn.Conv2d(2, 3, 1)",
    """
fine = self.mix(x)
coarse = F.avg_pool2d(fine, 2)
fine = fine + F.interpolate(coarse, scale_factor=2.0, mode="nearest")
return self.paint(torch.relu(self.shuffle(fine)))
""",
    "self.mix, self.shuffle, self.paint = nn.Conv2D(3, 8, 3, padding=1), nn.PixelShuffle(2), nn.Conv2D(2, 3, 1)",
    """
fine = self.mix(x)
coarse = F.avg_pool2d(fine, 2)
fine = fine + F.interpolate(coarse, scale_factor=2, mode="nearest")
return self.paint(F.relu(self.shuffle(fine)))
""",
    *(2, 3, 6, 6),
)
KINKED = pair(
    "self.fc, self.out = nn.Linear(6, 8, bias=False), nn.Linear(8, 3)",
    """
y = F.leaky_relu(self.fc(torch.relu(x.detach() - 1.5)), 0.1)
return self.out(y.amax(1))
""",
    "self.fc, self.out = nn.Linear(6, 8, bias_attr=False), nn.Linear(8, 3)",
    """
y = self.fc(F.relu(x.detach() - 1.5))
y = paddle.where(y > 0, y, 0.1 * y)
return self.out(y.amax(1))
""",
    *(4, 16, 6),
)
SHARED = pair(
    "self.blocks = nn.Sequential(Block(1), Block(2), Block(1))",
    "return self.blocks(x)",
    "self.blocks = nn.Sequential(Block(1), Block(2), Block(1))",
    "return self.blocks(x)",
    *(2, 3, 8),
)
_BLOCK = """class Block(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step, self.fc = step, nn.Linear(8, 8)

    def forward(self, x):
        y = self.fc(x)
        if self.step == 1:
            y = x + y
        return F.relu(y)


class Model"""
SHARED = replace(
    SHARED,
    reference=SHARED.reference.replace("class Model", _BLOCK),
    port=SHARED.port.replace("class Model", _BLOCK.replace("nn.Module", "nn.Layer")),
)
PAIRS = (BLOCKS, MASKED, RECURRENT, TIED, PICTURE, KINKED, SHARED)
# fmt: off
FAULTS = (
    Fault("no position", BLOCKS, "x = x + self.position\n        x = x + self.mix(self.norm1(x))", "x = x + self.mix(self.norm1(x))", "op.missing"),
    Fault("addition after the function", BLOCKS, "x = self.act(y + x)", "x = self.act(y) + x", "op.order"),
    Fault("norm after the addition", BLOCKS, "x = x + self.mix(self.norm1(x))", "x = self.norm1(x + self.mix(x))", "op.order"),
    Fault("norm kept for the addition", BLOCKS, "y = self.deep(self.norm2(x))", "x = self.norm2(x)\n        y = self.deep(x)", "op.order"),
    Fault("layer not called", BLOCKS, "self.last(x)[:, 0]", "x[:, 0]", "op.missing"),
    Fault("two ops not there", BLOCKS, "x = x + x.mean(1, keepdim=True)\n        return", "return", "op.missing"),
    Fault("gate not applied", BLOCKS, "gate = F.sigmoid(self.gate(x.mean(1)))\n        x = x * gate.unsqueeze(1)", "F.sigmoid(self.gate(x.mean(1)))", "op.missing"),
    Fault("mask for its opposite", MASKED, "1e4 * empty", "1e4 * (1 - empty)", "op.mask"),
    Fault("no mask", MASKED, "self.weigh(y) - 1e4 * empty", "self.weigh(y)", "op.mask"),
    Fault("other triangle", MASKED, ".triu(1)", ".tril(-1)", "op.mask"),
    Fault("state not passed", RECURRENT, "self.second(x.flip(1), state)", "self.second(x.flip(1))", "op.missing"),
    Fault("state of ones", RECURRENT, "self.first(x)", "self.first(x, paddle.ones([1, 2, 8]))", "op.extra"),
    Fault("layer by hand, wrongly", PICTURE, "self.shuffle(fine)", "fine.reshape([2, 2, 2, 2, 6, 6]).transpose([0, 3, 4, 1, 5, 2]).reshape([2, 2, 12, 12])", "layout.permuted"),
    Fault("no path from above", PICTURE, "fine = fine + F.interpolate(coarse, scale_factor=2, mode=\"nearest\")\n", "\n", "op.missing"),
    Fault("gradient at zero", KINKED, "y = paddle.where(y > 0, y, 0.1 * y)", "y = F.leaky_relu(y, 0.1)", "grad.tie"),
    Fault("in a line of several modules", SHARED, "if self.step == 1:\n            y = x + y", "y = x + y", "op.extra"),
)
# fmt: on


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_line_mends_the_port(fault: Fault, tmp_path: Path) -> None:
    check_named_and_mended(fault, tmp_path)


_TIE = "self.again.weight = self.deep.weight"
UNTIED = {
    "as it is": ((_TIE, ""),),
    "transposed": (
        (_TIE, f"{_TIE}\n        self.head = nn.Linear(8, 10, bias_attr=False)"),
        ("paddle.matmul(y, self.embed.weight, transpose_y=True)", "self.head(y)"),
    ),
}


@pytest.mark.parametrize("texts", UNTIED.values(), ids=UNTIED.keys())
def test_two_parameters_become_one(texts: tuple[tuple[str, str], ...], tmp_path: Path) -> None:
    source = TIED.port
    for right, wrong in texts:
        assert right in source
        source = source.replace(right, wrong)
    reference, port = reference_of(tmp_path, TIED), build(tmp_path, "port", source)
    found = [
        each.cause for each in pf.align(reference, port, TIED.inputs(), mode="eval").divergences if each.cause
    ]
    assert {cause.code for cause in found} == {"weight.tied"}
    mended = apply_fix(tmp_path, source, port, reference, found[0].fix)
    pf.align(reference, mended, TIED.inputs(), mode="eval").raise_if_diverged()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.port[180:200])
def test_the_pairs_are_right_without_a_fault(pair: Pair, tmp_path: Path) -> None:
    reference, port = reference_of(tmp_path, pair), build(tmp_path, "port", pair.port)
    pf.align(reference, port, pair.inputs(), mode="eval").raise_if_diverged()
