"""Rotary positions: a helper that runs for queries and for keys, wrong in one line, and a fix that mends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.mending import Pair, build, reference_of
from tests.faults.test_fixes import Fault, aligned, check_named_and_mended

REFERENCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

def rotate_half(x):
    first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]
    return torch.cat((-second, first), dim=-1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)
        self.out = nn.Linear(12, 12)
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, 6, 2).float() / 6)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (y.view(batch, length, 2, 6).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        angles = torch.outer(torch.arange(length).float(), self.frequencies)
        cos, sin = torch.cat((angles, angles), -1).cos(), torch.cat((angles, angles), -1).sin()
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))

def build():
    return Net()
"""
PORT = """
import math
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

def table(length, width, base=10000.0):
    inverse = 1.0 / base ** (paddle.arange(0, width, 2, dtype="float32") / width)
    angles = paddle.outer(paddle.arange(length, dtype="float32"), inverse)
    angles = paddle.concat([angles, angles], axis=-1)
    return paddle.cos(angles), paddle.sin(angles)

def turned(x, cos, sin):
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    return x * cos + paddle.concat([-second, first], axis=-1) * sin

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(12, 36)
        self.out = nn.Linear(12, 12)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = paddle.split(self.qkv(x), 3, axis=-1)
        q = q.reshape([batch, length, 2, 6]).transpose([0, 2, 1, 3])
        k = k.reshape([batch, length, 2, 6]).transpose([0, 2, 1, 3])
        v = v.reshape([batch, length, 2, 6]).transpose([0, 2, 1, 3])
        cos, sin = table(length, 6)
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        scores = paddle.matmul(q, k, transpose_y=True) / math.sqrt(6)
        hidden = paddle.triu(paddle.ones([length, length], dtype="bool"), 1)
        scores = paddle.where(hidden, paddle.full([], float("-inf")), scores)
        y = paddle.matmul(F.softmax(scores, axis=-1), v).transpose([0, 2, 1, 3])
        return self.out(y.reshape([batch, length, width]))

def build():
    return Net()
"""
ROTARY = Pair(REFERENCE, PORT, ((2, 5, 12),))
FAULTS = [
    Fault("sign", ROTARY, "[-second, first]", "[second, -first]", "op.order"),
    Fault("no sign", ROTARY, "[-second, first]", "[second, first]", "op.missing"),
    Fault("halves", ROTARY, "[-second, first]", "[-first, second]", "op.order"),
    Fault("pairs", ROTARY, "x[..., :half], x[..., half:]", "x[..., ::2], x[..., 1::2]", "config.other"),
    Fault("minus", ROTARY, "x * cos + paddle", "x * cos - paddle", "op.kind"),
    Fault("base", ROTARY, "base=10000.0", "base=500000.0", "config.other"),
    Fault("base in the call", ROTARY, "table(length, 6)", "table(length, 6, 100.0)", "config.other"),
    Fault("positions", ROTARY, "paddle.arange(length,", "paddle.arange(0, 2 * length, 2,", "config.other"),
    Fault("scale", ROTARY, "math.sqrt(6)", "math.sqrt(12)", "op.scale"),
]
HIDDEN = """        hidden = paddle.triu(paddle.ones([length, length], dtype="bool"), 1)
        scores = paddle.where(hidden, paddle.full([], float("-inf")), scores)
"""
KEPT = """        kept = paddle.tril(paddle.ones([length, length], dtype="bool"))
        scores = paddle.where(kept, scores, paddle.full([], -1e9))
"""
KEEPING = Pair(REFERENCE, PORT.replace(HIDDEN, KEPT), ((2, 5, 12),))
MASKS = [  # the reference leaves them to its attention
    Fault("triangle of what is hidden", ROTARY, 'dtype="bool"), 1)', 'dtype="bool"), 2)', "op.mask"),
    Fault("triangle of what is kept", KEEPING, 'dtype="bool"))', 'dtype="bool"), 1)', "op.mask"),
    Fault("no mask", ROTARY, HIDDEN, "", "op.mask"),
    Fault("filled with nothing", KEEPING, "-1e9", "0.0", "config.other"),
]
FAULTS += MASKS


def test_the_pair_is_right_without_a_fault(tmp_path: Path) -> None:
    for pair in (ROTARY, KEEPING):
        fault = Fault("none", pair, "", "", "")
        assert aligned(reference_of(tmp_path, pair), build(tmp_path, "port", pair.port), fault).ok


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_mistake_of_a_helper_that_runs_twice_is_named_and_mended(fault: Fault, tmp_path: Path) -> None:
    """The scale before is said by a division here and by a product there: no reason to stop at it."""
    check_named_and_mended(fault, tmp_path)


def test_a_table_that_no_number_leads_to_is_not_said_to_come_of_one(tmp_path: Path) -> None:
    fault = Fault("other", ROTARY, "1.0 / base **", "0.3 + 0.1 *", "")
    first = aligned(reference_of(tmp_path, ROTARY), build(tmp_path, "port", fault.source()), fault).first
    assert first is not None
    assert first.cause is None or "as if with" not in first.cause.message


PAIRWISE = Pair(
    """
import torch
import torch.nn as nn

class Turn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, turns):
        pairs = torch.view_as_complex(self.first(x).reshape(*x.shape[:-1], -1, 2))
        return self.second(torch.view_as_real(pairs * turns).flatten(-2))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = Turn()

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[1]).float(), 100.0 ** (-torch.arange(4).float() / 4))
        return self.turn(x, torch.polar(torch.ones_like(angles), angles))

def build():
    return Net()
""",
    """
import paddle
import paddle.nn as nn

class Turn(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x, cos, sin):
        y = self.first(x)
        even, odd = y[..., ::2], y[..., 1::2]
        y = paddle.stack([even * cos - odd * sin, odd * cos + even * sin], axis=-1)
        return self.second(y.flatten(-2))

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.turn = Turn()

    def forward(self, x):
        speed = 100.0 ** (-paddle.arange(4, dtype="float32") / 4)
        angles = paddle.outer(paddle.arange(x.shape[1], dtype="float32"), speed)
        return self.turn(x, paddle.cos(angles), paddle.sin(angles))

def build():
    return Net()
""",
    ((2, 5, 8),),
)
OF_PAIRS = [
    Fault("sign of one", PAIRWISE, "odd * cos + even * sin", "odd * cos - even * sin", "op.kind"),
    Fault("base outside", PAIRWISE, "100.0 **", "1000.0 **", "config.other"),
]


@pytest.mark.parametrize("fault", OF_PAIRS, ids=lambda fault: fault.name)
def test_a_rotation_by_complex_numbers_is_compared_by_its_parts(fault: Fault, tmp_path: Path) -> None:
    """What the port's layer is given has no counterpart: who gives it is looked at as well."""
    check_named_and_mended(fault, tmp_path)


def test_code_around_a_layer_is_blamed_for_what_it_gives_it(tmp_path: Path) -> None:
    fault = OF_PAIRS[1]
    first = aligned(reference_of(tmp_path, PAIRWISE), build(tmp_path, "port", fault.source()), fault).first
    assert first is not None
    assert first.port is not None
    line = fault.source()[: fault.source().index("speed = ")].count("\n") + 1
    assert (first.port.path, first.port.kind, first.port.line) == ("", "Net", line)


def test_a_layer_is_blamed_for_its_own_code_also_if_it_is_given_more_than_the_reference(
    tmp_path: Path,
) -> None:
    fault = OF_PAIRS[0]
    first = aligned(reference_of(tmp_path, PAIRWISE), build(tmp_path, "port", fault.source()), fault).first
    assert first is not None
    assert first.port is not None
    assert first.port.path == "turn"
