"""What two recorded runs begin with, how many steps they have, and statistics that only sketches know of."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
import torch

import parfocal as pf
from tests.pairs.workflow.recordings import Side, record_side

pytestmark = pytest.mark.filterwarnings(
    "ignore:When training, we now always track global mean and variance:UserWarning"
)


def pair(width):
    torch.manual_seed(0)
    reference = torch.nn.Sequential(
        torch.nn.Linear(8, width), torch.nn.BatchNorm1d(width), torch.nn.ReLU(), torch.nn.Linear(width, 3)
    )
    port = paddle.nn.Sequential(
        paddle.nn.Linear(8, width), paddle.nn.BatchNorm1D(width), paddle.nn.ReLU(), paddle.nn.Linear(width, 3)
    )
    pf.transfer(reference, port)
    return reference, port


def compared(folder, models, steps=(2, 2), rows=8, **options):
    generator = np.random.default_rng(0)
    batches = [
        (generator.normal(size=(rows, 8)).astype("float32"), np.zeros((rows, 3), "float32"))
        for _ in range(max(steps))
    ]
    paths = []
    for model, count, name in zip(models, steps, ("reference", "port"), strict=True):
        side = Side(model, lambda output, target: ((output - target) ** 2).mean())
        model.train()
        paths.append(record_side(side, folder / name, batches[:count], **options))
    return pf.compare(*paths)


@pytest.mark.parametrize("steps", [(5, 3), (3, 5)])
def test_steps_that_one_run_lacks_are_told_and_the_verdict_is_limited(steps, tmp_path):
    report = compared(tmp_path, pair(6), steps)
    assert report.ok
    text = str(report)
    assert text.startswith("SAME as far as recorded")
    said = f"the reference has {steps[0]} steps, the port {steps[1]}: not compared are 3, 4"
    assert any(each.message == said for each in report.findings), text


def test_runs_of_equally_many_steps_say_nothing_of_it(tmp_path):
    report = compared(tmp_path, pair(6))
    assert str(report).startswith("SAME: ")
    assert not any(each.code == "run.steps" for each in report.findings)


@pytest.mark.parametrize("tensors", ["full", "sketch"])
@pytest.mark.parametrize("name", ["_variance", "_mean"])
def test_a_statistic_that_was_not_copied_is_a_difference(tensors, name, tmp_path):
    models = pair(6)
    buffer = getattr(models[1][1], name)
    buffer.set_value(buffer * 2.0 + 0.5)
    report = compared(tmp_path, models, tensors=tensors)
    first = report.first
    assert not report.ok
    assert (first.phase, first.what) == ("buffer", f"buffer 1.{name}, before the first step")
    assert first.cause.code == "weight.mismatched"


@pytest.mark.parametrize("width", [6, 3000])
@pytest.mark.parametrize("rows", [3, 16])
def test_statistics_over_few_values_agree_in_sketches(width, rows, tmp_path):
    report = compared(tmp_path, pair(width), rows=rows, tensors="sketch")
    assert report.ok, report
    (told,) = (each.message for each in report.findings if each.code == "buffer.running_variance")
    assert f"at n = {rows}" in told


def test_runs_from_weights_of_their_own_say_so_first(tmp_path):
    """Each script seeded its own framework: one thing to say, and nothing of what is computed with them."""
    reference, port = pair(6)
    for layer in (port[0], port[3]):
        layer.weight.set_value(paddle.randn(layer.weight.shape) * 0.3)
        layer.bias.set_value(paddle.randn(layer.bias.shape) * 0.3)
    report = compared(tmp_path, (reference, port))
    assert report.first.phase == "weights"
    message = report.first.cause.message
    assert message.startswith(
        "the runs begin with other weights: 4 of 6 parameters have other values (0.weight"
    )
    assert "record --weights FILE" in report.first.cause.fix
    assert len([each for each in report.divergences if each.phase == "weights"]) == 1
    assert not any(each.code == "run.weights" for each in report.findings)


def test_one_parameter_that_was_not_copied_is_named_by_itself(tmp_path):
    reference, port = pair(6)
    port[3].weight.set_value(port[3].weight * 1.5 + 0.1)
    report = compared(tmp_path, (reference, port))
    assert report.first.what == "parameter 3.weight"
    assert report.first.cause.message == "3.weight has other values than 3.weight of the reference"
