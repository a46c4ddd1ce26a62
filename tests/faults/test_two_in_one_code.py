"""Two mistakes in consecutive statements of the same code: each has a line of its own."""

from __future__ import annotations

from pathlib import Path

from tests.faults.mending import Pair, apply_fix, build, reference_of
from tests.faults.test_fixes import Fault, aligned

REFERENCE = """
import torch
import torch.nn as nn
import torch.nn.functional as F

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, 2, 1)
        self.join, self.grow = nn.Conv2d(16, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x):
        one = torch.tanh(self.first(x))
        two = torch.tanh(self.down(one))
        three = torch.relu(two * two)
        h = self.join(torch.cat([three, two], 1))
        h = self.grow(F.interpolate(h, scale_factor=2, mode="nearest"))
        return torch.sigmoid(h)

def build():
    return Net()
"""
PORT = """
import paddle
import paddle.nn as nn
import paddle.nn.functional as F

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.down = nn.Conv2D(3, 8, 3, padding=1), nn.Conv2D(8, 8, 3, 2, 1)
        self.join, self.grow = nn.Conv2D(16, 8, 3, padding=1), nn.Conv2D(8, 3, 3, padding=1)

    def forward(self, x):
        one = paddle.tanh(self.first(x))
        two = paddle.tanh(self.down(one))
        three = F.relu(two * two)
        h = self.join(paddle.concat([three, two], axis=1))
        h = self.grow(F.interpolate(h, scale_factor=2, mode="nearest"))
        return F.sigmoid(h)

def build():
    return Net()
"""
PAIR = Pair(REFERENCE, PORT, ((2, 3, 8, 8),))


def test_both_are_named_and_both_lines_mend(tmp_path: Path) -> None:
    fault = Fault("joined otherwise", PAIR, "[three, two]", "[two, three]", "op.order")
    wrong = fault.source().replace('mode="nearest"', 'mode="bilinear"')
    reference, port = reference_of(tmp_path, PAIR), build(tmp_path, "port", wrong)
    own = [each for each in aligned(reference, port, fault).divergences if not each.inherited]
    codes = [None if each.cause is None else each.cause.code for each in own]
    assert codes == ["op.order", "op.interpolation"], own
    fixes = "\n".join(each.cause.fix for each in own if each.cause is not None)
    assert aligned(reference, apply_fix(tmp_path, wrong, port, reference, fixes), fault).ok, fixes


def test_nothing_is_named_where_nothing_is_wrong(tmp_path: Path) -> None:
    fault = Fault("none", PAIR, "", "", "")
    assert aligned(reference_of(tmp_path, PAIR), build(tmp_path, "port", PORT), fault).ok
