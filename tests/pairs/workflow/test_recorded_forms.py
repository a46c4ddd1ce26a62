"""Compare: order under sketches, running statistics, ops, texts, runs that were cut short."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.workflow.recordings import Side, compare_sides, digest, record_side

RANDOM = np.random.default_rng(11)
EITHER = pytest.mark.parametrize("tensors", ["full", "sketch"])
SEQUENCES = [
    (RANDOM.normal(size=(4, 6, 6)).astype("float32"), RANDOM.normal(size=(4, 6, 6)).astype("float32"))
    for _ in range(2)
]


def squared(output: Any, target: Any) -> Any:
    return ((output - target) ** 2).mean()


class Change(torch.nn.Module):
    def __init__(self, change: Any) -> None:
        super().__init__()
        self.change = (change,)

    def forward(self, x: Any) -> Any:
        return self.change[0](x)


def tagger(change: Any, *, head: Any = None) -> Side:
    torch.manual_seed(0)
    parts = [
        torch.nn.Linear(6, 6),
        torch.nn.Tanh(),
        Change(change),
        torch.nn.Linear(6, 6),
        Change(head or same),
    ]
    return Side(torch.nn.Sequential(*parts), squared)


def same(x: Any) -> Any:
    return x


@EITHER
@pytest.mark.parametrize(
    ("change", "head", "place"),
    [
        (same, same, None),
        (lambda y: y.flip(1), same, "2"),
        (lambda y: y.transpose(1, 2), same, "2"),
        (same, lambda y: y.roll(1, -1), "4"),
        (lambda y: y.roll(1, 0), same, "2"),
    ],
)
def test_an_output_in_another_order_is_wrong(
    tmp_path: Path, tensors: str, change: Any, head: Any, place: str | None
) -> None:
    report = compare_sides(tmp_path, tagger(same), tagger(change, head=head), SEQUENCES, tensors=tensors)
    if place is None:
        assert report.ok, str(report)
        return
    assert report.first is not None
    assert (report.first.phase, report.first.port.path) == ("forward", place), str(report)


@EITHER
def test_axes_that_lie_otherwise_on_the_way_are_no_difference(tmp_path: Path, tensors: str) -> None:
    """One side computes channels last, as many channels as pixels, and gives what the other gives."""

    def net(last: bool) -> Any:
        torch.manual_seed(0)
        convolution = torch.nn.Conv2d(8, 8, 3, padding=1)
        head = torch.nn.Conv2d(8, 3, 1)

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.convolution, self.act, self.head = convolution, Change(torch.tanh), head

            def forward(self, x: Any) -> Any:
                y = self.convolution(x)
                y = self.act(y.permute(0, 2, 3, 1)).permute(0, 3, 1, 2) if last else self.act(y)
                return self.head(y)

        return Net()

    batches = [(RANDOM.normal(size=(2, 8, 8, 8)).astype("float32"), np.float32(0.0).reshape(1))]
    report = compare_sides(
        tmp_path, Side(net(False), squared), Side(net(True), squared), batches, tensors=tensors
    )
    assert report.ok, str(report)


# Running statistics.


def normed(framework: Any, momentum: float | None = None) -> Any:
    if framework is torch:
        torch.manual_seed(0)
        nn = torch.nn
        return nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(96, 4))
    nn = paddle.nn
    return nn.Sequential(
        nn.Conv2D(3, 6, 3), nn.BatchNorm2D(6, momentum=momentum), nn.ReLU(), nn.Flatten(), nn.Linear(96, 4)
    )


IMAGES = [
    (RANDOM.normal(size=(5, 3, 6, 6)).astype("float32"), RANDOM.integers(0, 4, size=5).astype("int64"))
    for _ in range(4)
]


@pytest.mark.filterwarnings("ignore:When training, we now always track:UserWarning")
@EITHER
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
@pytest.mark.parametrize("momentum", [0.9, 0.8])
def test_running_statistics_over_several_steps(
    tmp_path: Path, tensors: str, kind: str, momentum: float
) -> None:
    reference = Side(
        normed(torch),
        torch.nn.functional.cross_entropy,
        lambda m: getattr(torch.optim, kind)(m.parameters(), lr=0.01),
    )
    model = normed(paddle, momentum)
    pf.transfer(reference.model, model)
    port = Side(
        model,
        paddle.nn.functional.cross_entropy,
        lambda m: getattr(paddle.optimizer, kind)(learning_rate=0.01, parameters=m.parameters()),
    )
    report = compare_sides(tmp_path, reference, port, IMAGES, tensors=tensors)
    if momentum == 0.9:
        assert report.ok, str(report)
        assert [each.code for each in report.findings] == ["buffer.running_variance"]
    else:
        assert digest(report) == ("buffer", 0, 0, "1", "config.momentum"), str(report)


# Runs that were cut short.


class Failing(torch.nn.Module):
    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def forward(self, x: Any) -> Any:
        self.left -= 1
        if self.left < 0:
            raise RuntimeError("out of luck")
        return torch.tanh(x)


def deep(calls: int) -> Side:
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh()) for _ in range(3)]
    blocks[2] = torch.nn.Sequential(torch.nn.Linear(6, 6), Failing(calls))
    return Side(torch.nn.Sequential(*blocks, torch.nn.Linear(6, 6)), squared)


@EITHER
@pytest.mark.parametrize("step", [0, 1])
def test_a_run_that_ends_early_is_told_by_its_place(tmp_path: Path, tensors: str, step: int) -> None:
    whole = record_side(deep(9), tmp_path / "whole", SEQUENCES, tensors=tensors)
    with suppress(RuntimeError):
        record_side(deep(step), tmp_path / "part", SEQUENCES, tensors=tensors)
    report = pf.compare(whole, tmp_path / "part")
    text = " ".join(str(report).split())
    assert report.ok, str(report)
    assert text.startswith("SAME as far as recorded")
    assert f"the port's run ends at step {step}, in 2.1 (RuntimeError)" in text
    assert "shape" not in text


def test_a_run_that_was_killed_is_told_by_what_comes_next(tmp_path: Path) -> None:
    whole = record_side(deep(9), tmp_path / "whole", SEQUENCES)
    with suppress(RuntimeError):
        record_side(deep(0), tmp_path / "part", SEQUENCES)
    records = tmp_path / "part" / "records.jsonl"
    lines = [line for line in records.read_text().splitlines() if '"type":"interruption"' not in line]
    records.write_text("\n".join(lines) + "\n")
    report = pf.compare(whole, tmp_path / "part")
    assert report.ok, str(report)
    assert "the port's run ends at step 0, in 2.1" in " ".join(str(report).split())


# Words.


@EITHER
def test_a_good_verdict_says_nothing_against_itself(tmp_path: Path, tensors: str) -> None:
    report = compare_sides(tmp_path, tagger(same), tagger(same), SEQUENCES, tensors=tensors)
    text = str(report)
    assert report.ok
    assert "loss at step" not in text
    grown = [score for pair in report.pairs for score in (pair.forward, pair.backward) if score is not None]
    assert max(grown) <= report.limit


# Ops.


class TorchBlock(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        y = self.first(x)
        positions = torch.arange(6, dtype=torch.float32) / 6
        y = torch.softmax(y * 0.5 + positions, -1) @ x
        return self.last(torch.nn.functional.gelu(y) + x)


class PaddleBlock(paddle.nn.Layer):
    def __init__(self, scale: float = 0.5, axis: int = -1) -> None:
        super().__init__()
        self.options = (scale, axis)
        self.first, self.last = paddle.nn.Linear(6, 6), paddle.nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        scale, axis = self.options
        y = self.first(x)
        positions = paddle.arange(6).astype("float32") / 6
        y = paddle.matmul(paddle.nn.functional.softmax(y * scale + positions, axis=axis), x)
        return self.last(paddle.nn.functional.gelu(y) + x)


@EITHER
@pytest.mark.parametrize(
    ("changes", "op"),
    [({}, None), ({"scale": 0.6}, "mul"), ({"axis": 1}, "softmax")],
)
def test_ops_find_the_line_and_give_no_verdict_of_their_own(
    tmp_path: Path, tensors: str, changes: dict[str, Any], op: str | None
) -> None:
    reference = Side(TorchBlock(), squared)
    model = PaddleBlock(**changes)
    pf.transfer(reference.model, model)
    report = compare_sides(tmp_path, reference, Side(model, squared), SEQUENCES, tensors=tensors, level="ops")
    if op is None:
        assert report.ok, str(report)
        return
    first = report.first
    assert first is not None
    assert (first.phase, first.port.path, first.port.op) == ("forward", "", op), str(report)
    assert first.port.file == __file__
    assert first.score < 1e9
