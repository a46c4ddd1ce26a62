"""What two recorded ops of one name were told otherwise, and what they were given in another order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parfocal.explain.fixes.recorded_constructors import made_at
from parfocal.replay.trace import Node
from parfocal.run.records import CallRecord, Structure, TensorValue
from parfocal.workflow.recorded_runs.op_causes import op_cause


def tensor(number: int) -> TensorValue:
    return TensorValue("float32", (number,), None, None, None)


def call(op: str, *tensors: int, **told: Any) -> CallRecord:
    leaves = {str(number): tensor(each) for number, each in enumerate(tensors)} | told
    shape = [
        "tuple",
        [["tuple", list(map(str, range(len(tensors))))], ["dict", {name: name for name in told}]],
    ]
    inputs = Structure(leaves, shape)
    return CallRecord(0, None, 0, "up", "Up", "Up", op, 0, "/code/unet.py", 12, True, {}, inputs, inputs)


def same(mine: TensorValue, yours: TensorValue) -> bool:
    return mine.shape == yours.shape


@pytest.mark.parametrize(
    ("other", "own", "code", "fix"),
    [
        (
            call("interpolate", 1, mode="bilinear", align_corners=False, antialias=False),
            call("interpolate", 1, mode="bilinear", align_corners=True),
            "op.align_corners",
            "tell interpolate align_corners=False in unet.py:12",
        ),
        (
            call("gelu", 1),
            call("gelu", 1, approximate=True),
            "op.approximation",
            "tell gelu approximate=False in unet.py:12",
        ),
        (
            call("softmax", 1, dim=1),
            call("softmax", 1, axis=-1),
            "op.axis",
            "tell softmax axis=1 in unet.py:12",
        ),
        (
            call("concat", 1, 2, dim=1),
            call("concat", 2, 1, axis=1),
            "op.order",
            "in unet.py:12 pass the tensors to concat in the order 1, 0",
        ),
    ],
)
def test_what_differs_is_told(other: CallRecord, own: CallRecord, code: str, fix: str) -> None:
    cause = op_cause(other, own, same)
    assert cause is not None
    assert (cause.code, cause.fix, cause.proof) == (code, fix, None)


@pytest.mark.parametrize(
    ("other", "own"),
    [
        (call("softmax", 1, dim=1), call("softmax", 1, axis=1)),
        (call("concat", 1, 2, dim=1), call("concat", 1, 2, axis=1)),
        (call("concat", 1, 2, dim=1), call("concat", 1, 3, axis=1)),  # another tensor, and no other order
        (call("add", 1, 2), call("add", 2, 1)),
        (call("gelu", 1, approximate="none"), call("gelu", 1, approximate=False)),
        (call("interpolate", 1, align_corners=False), call("interpolate", 1)),  # a default is not recorded
    ],
)
def test_what_is_the_same_is_no_cause(other: CallRecord, own: CallRecord) -> None:
    assert op_cause(other, own, same) is None


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("self.norm = nn.LayerNorm(8)", 4),
        ("self.norm: nn.Layer = None\n        self.norm = nn.LayerNorm(8)", 5),
        ("self.other = nn.LayerNorm(8)", 0),
        ("self.norm = nn.BatchNorm1D(8)", 0),
        ("self.norm = nn.LayerNorm(8)\n        self.norm = nn.LayerNorm(9)", 0),
    ],
)
def test_the_line_that_makes_a_layer(tmp_path: Path, body: str, line: int) -> None:
    file = tmp_path / "network.py"
    file.write_text(
        f"from paddle import nn\nclass Model(nn.Layer):\n    def __init__(self):\n        {body}\n"
    )
    node = Node(
        *(0, None, 1, "block.0.norm", "LayerNorm", "LayerNorm", True, 0, {}, True, False), str(file), 9
    )
    assert made_at(node) == (f"network.py:{line}" if line else "")


def test_no_line_where_the_source_is_not_there(tmp_path: Path) -> None:
    node = Node(*(0, None, 1, "norm", "LayerNorm", "LayerNorm", True, 0, {}, True, False), str(tmp_path), 9)
    assert made_at(node) == ""


HELD = """class Net:
    def __init__(self):
        self.stem = nn.Sequential(nn.Conv2D(3, 8, 3), nn.LayerNorm(8))
        self.head = nn.Sequential(nn.Linear(8, 2))
"""


@pytest.mark.parametrize(
    ("path", "line"), [("stem.1", 3), ("blocks.0.stem.1", 3), ("head.0", 0), ("stem", 0)]
)
def test_the_line_of_what_is_in_a_sequence(tmp_path: Path, path: str, line: int) -> None:
    file = tmp_path / "network.py"
    file.write_text(HELD)
    node = Node(*(0, None, 1, path, "LayerNorm", "LayerNorm", True, 0, {}, True, False), str(file), 9)
    assert made_at(node) == (f"network.py:{line}" if line else "")
