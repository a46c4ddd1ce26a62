"""Real reports of every kind in Chinese: no English sentence is left, and no line is too wide."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.columns import width_of
from parfocal.report.report import Report
from tests.pairs.training.tools import compare, paddle_optim, torch_optim

WORDS = re.compile(r"\b[a-z]{2,}(?:[ ,]+[a-z']{2,})+\b")  # two words of English in a row
CODE = re.compile(r"\S*[(=./\[#]\S*|0-9")  # what belongs to a line of code, or is a path


def english_in(text: str) -> list[str]:
    """Runs of English words that are not part of code."""
    return [found[0] for line in text.splitlines() if (found := WORDS.search(CODE.sub("|", line)))]


def test_english_is_found():
    assert english_in("原因 the port has another epsilon") == ["the port has another epsilon"]
    assert english_in("修复 port.norm = paddle.nn.LayerNorm(8, epsilon=1e-05)") == []
    assert english_in("参考模型 blocks.1.norm  LayerNorm  net.py:12") == []


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8, eps=1e-5)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.norm(self.linear(x))) * 2.0


class PortedBlock(paddle.nn.Layer):
    def __init__(self, epsilon: float, factor: float) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(8, 8)
        self.norm = paddle.nn.LayerNorm(8, epsilon=epsilon)
        self.factor = factor

    def forward(self, x: Any) -> Any:
        return paddle.nn.functional.relu(self.norm(self.linear(x))) * self.factor


def aligned(epsilon: float = 1e-5, factor: float = 2.0, **options: Any) -> Report:
    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    return pf.align(Block(), PortedBlock(epsilon, factor), x, **options)


def recorded(folder: Path) -> Report:
    torch.manual_seed(0)
    reference, port = Block(), PortedBlock(1e-3, 2.0)
    pf.transfer(reference, port)
    x = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    for name, model, given in (
        ("reference", reference, torch.from_numpy(x)),
        ("port", port, paddle.to_tensor(x)),
    ):
        with pf.record(model, folder / name):
            model(given).mean().backward()
    return pf.compare(folder / "reference", folder / "port")


def samples(scale: float, turned: bool = False) -> list[tuple[Any, int]]:
    generator = np.random.default_rng(1)
    pictures = [generator.standard_normal((3, 4, 4)).astype("float32") * scale for _ in range(6)]
    return [(x[::-1].copy() if turned else x, number) for number, x in enumerate(pictures)]


def schedules(folder: Path) -> Report:
    def reference(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

    made = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    return pf.compare_schedule(reference(made), paddle.optimizer.lr.StepDecay(0.1, 4, 0.5), steps=12)


def losses(folder: Path) -> Report:
    generator = np.random.default_rng(0)
    logits, labels = generator.standard_normal((6, 4)).astype("float32"), generator.integers(0, 4, 6)
    return pf.compare_loss(
        torch.nn.CrossEntropyLoss(label_smoothing=0.1), paddle.nn.CrossEntropyLoss(), logits, labels
    )


def metrics(folder: Path) -> Report:
    generator = np.random.default_rng(0)
    scores, labels = generator.standard_normal((40, 10)), generator.integers(0, 10, 40)

    def accuracy(predictions: Any, truth: Any) -> float:
        return float((predictions.argmax(-1) == truth).mean())

    return pf.compare_metric(accuracy, lambda p, y: 100 * accuracy(p, y), scores, labels)


REPORTS: dict[str, Callable[[Path], Report]] = {
    "same": lambda folder: aligned(),
    "different": lambda folder: aligned(epsilon=1e-3, factor=3.0),
    "different in training": lambda folder: aligned(epsilon=1e-3, mode="train", loss=lambda y: y.mean()),
    "tolerance": lambda folder: aligned(epsilon=1e-3, tolerance=pf.Tolerance(1e-6, 1e-7)),
    "training": lambda folder: compare(
        lambda given: torch_optim.Adam(given, 0.01, eps=1e-6),
        lambda given: paddle_optim.Adam(0.02, parameters=given),
    ),
    "same training": lambda folder: compare(
        lambda given: torch_optim.SGD(given, 0.01), lambda given: paddle_optim.SGD(0.01, parameters=given)
    ),
    "data": lambda folder: pf.compare_data(samples(1.0), samples(2.0)[:-1]),
    "channels": lambda folder: pf.compare_data(samples(1.0), samples(1.0, turned=True)),
    "schedules": schedules,
    "losses": losses,
    "metrics": metrics,
    "recorded": recorded,
    "initial values": lambda folder: pf.compare_init(
        lambda: torch.nn.Linear(64, 64), lambda: paddle.nn.Linear(64, 64), seeds=4
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_a_real_report_has_no_english_sentence(name: str, tmp_path: Path) -> None:
    report = REPORTS[name](tmp_path)
    assert report.ok == name.startswith("same")
    whole, screen = report.text(language="zh", verbose=True), report.text(language="zh")
    assert english_in(whole) == []
    assert screen.startswith("一致：" if report.ok else "不一致：")
    wide = [line for line in screen.splitlines() if width_of(line) > 80]
    assert [line for line in wide if not CODE.search(line)] == []  # a line of code is not broken
    again = Report.from_json(report.to_json())
    assert again.text(language="zh", verbose=True) == whole
    assert again.text(verbose=True) == report.text(verbose=True)
