"""Reports of every kind of comparison, read back from their JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from parfocal.report.report import Report
from tests.pairs.training.tools import compare, paddle_optim, torch_optim
from tests.pairs.workflow.tools import IMAGES, PADDLE, TORCH, X, mlp


def same() -> Report:
    return pf.align(mlp(TORCH), mlp(PADDLE), X)


def different() -> Report:
    return pf.align(mlp(TORCH), mlp(PADDLE, activation="GELU"), X)


def fixed_tolerance() -> Report:
    return pf.align(mlp(TORCH), mlp(PADDLE, activation="GELU"), X, tolerance=pf.Tolerance(1e-5, 1e-6))


def convolutions() -> Report:
    """Settings that are tuples."""
    nets = []
    for nn, conv, padding in ((torch.nn, torch.nn.Conv2d, (1, 1)), (paddle.nn, paddle.nn.Conv2D, (1, 0))):
        nets.append(nn.Sequential(conv(3, 4, 3, padding=padding), nn.ReLU()))
    return pf.align(*nets, IMAGES)


def training() -> Report:
    return compare(lambda p: torch_optim.SGD(p, 0.1), lambda p: paddle_optim.SGD(0.2, parameters=p), steps=3)


def schedule() -> Report:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], 0.1)
    return pf.compare_schedule(
        torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.1), paddle.optimizer.lr.StepDecay(0.1, 4, 0.1), 9
    )


def data() -> Report:
    samples = [np.random.default_rng(index).normal(size=(3, 4)).astype("float32") for index in range(6)]
    return pf.compare_data(samples, [2 * sample for sample in samples])


KINDS: list[Callable[[], Report]] = [same, different, fixed_tolerance, convolutions, training, schedule, data]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_report_survives_its_json(kind: Any) -> None:
    report = kind()
    assert report.ok is (kind is same), str(report)
    written = json.dumps(report.to_json(), allow_nan=False)
    again = Report.from_json(json.loads(written))
    assert again.text(verbose=True) == report.text(verbose=True)
    assert json.dumps(again.to_json(), allow_nan=False) == written


def test_a_report_holds_what_a_page_shows_of_its_pairs() -> None:
    report = different()
    assert [pair.port.order for pair in report.pairs] == sorted(pair.port.order for pair in report.pairs)
    told = [pair.forward_error for pair in report.pairs if pair.forward_error is not None]
    assert told
    for pair in report.pairs:
        if pair.forward_error is not None and pair.forward_error.floor and pair.forward is not None:
            # the score is the larger of the ratio of root mean squares and that of the peaks
            assert pair.forward >= pair.forward_error.error / pair.forward_error.floor * (1 - 1e-6)
    assert report.first is not None
    assert report.first.error is not None
    assert report.first.error.picture is not None
    assert not any(each.error and each.error.picture for each in same().divergences)
