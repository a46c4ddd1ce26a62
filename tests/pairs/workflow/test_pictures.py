"""Reports of every kind show where in a tensor a difference sits, and stay small."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import parfocal as pf
from parfocal.workflow.pictures import PICTURES

DATA = np.random.default_rng(0).standard_normal((6, 4)).astype("float32")


def _model(epsilon: float) -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.LayerNorm(8, eps=epsilon), torch.nn.Linear(8, 2)
    )


def _recorded(folder, tensors: str, epsilons=(1e-5, 1e-1)) -> pf.Report:
    runs = []
    for number, epsilon in enumerate(epsilons):
        model = _model(epsilon)
        with pf.record(model, folder / str(number), tensors=tensors) as recorder:
            model(torch.from_numpy(DATA)).sum().backward()
        runs.append(recorder.path)
    return pf.compare(*runs)


def _pictures(report: pf.Report) -> list:
    return [
        each.error.picture
        for each in report.divergences
        if each.error is not None and each.error.picture is not None
    ]


def test_recorded_runs(tmp_path):
    report = _recorded(tmp_path, "full")
    assert report.first.port.path == "1"
    picture = report.first.error.picture
    assert sum(picture.histogram.counts) == picture.sampled == 6 * 8
    assert picture.maps[0].lengths == (6, 8)
    assert '"maps"' in (report.save(tmp_path / "saved") / "report.html").read_text(encoding="utf-8")


def test_sketches_have_no_values_to_show(tmp_path):
    assert _pictures(_recorded(tmp_path, "sketch")) == []


def test_runs_that_agree_have_no_picture(tmp_path):
    report = _recorded(tmp_path, "full", (1e-5, 1e-5))
    assert report.ok
    assert _pictures(report) == []


def test_a_training():
    batches = [(DATA, np.arange(6) % 2)] * 2
    report = pf.compare_training(
        _model(1e-5),
        _model(1e-5),
        batches,
        loss=torch.nn.CrossEntropyLoss(),
        optimizers=(
            lambda model: torch.optim.SGD(model.parameters(), lr=0.1),
            lambda model: torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1),
        ),
    )
    assert report.first.phase == "optimizer"
    assert _pictures(report)


def test_data():
    report = pf.compare_data([DATA, DATA + 1], [DATA, DATA + 1.5])
    assert report.first.phase == "data"
    assert report.first.error.picture.histogram is not None


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_a_loss(reduction):
    """Of one number there is nothing to show but the number."""
    ours = torch.nn.SmoothL1Loss(reduction=reduction)
    theirs = torch.nn.SmoothL1Loss(reduction=reduction, beta=0.5)
    report = pf.compare_loss(ours, theirs, DATA, DATA[::-1].copy())
    assert not report.ok
    assert (report.first.error.picture is not None) == (reduction == "none")


def test_few_are_kept():
    from dataclasses import replace

    from parfocal.workflow.pictures import with_few_pictures

    first = pf.compare_data([DATA], [DATA + 1]).first
    kept = with_few_pictures(replace(first, step=step) for step in range(PICTURES + 3))
    assert [each.error.picture is not None for each in kept] == [True] * PICTURES + [False] * 3
