"""A schedule that is stepped once an epoch is compared as far as the training goes."""

from __future__ import annotations

import pytest

from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.guide.projects import change, toy

# of the reference and of the port
STEPPED = (
    "torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.8)",
    "paddle.optimizer.lr.StepDecay(learning_rate=0.05, step_size=4, gamma=0.8)",
)
COSINE = (
    "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, {})",
    "paddle.optimizer.lr.CosineAnnealingDecay(0.05, {})",
)
FALLING = (
    "torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, {}])",
    "paddle.optimizer.lr.MultiStepDecay(0.05, [3, {}])",
)


def scheduled(folder, kind, reference, port):
    toy(folder)
    change(folder / "parfocal.toml", "epochs = 2", "epochs = 8")
    change(folder / "parfocal.toml", 'schedule = "update" ', 'schedule = "epoch" ')
    project = read_project(folder)
    change(folder / "reference_side.py", STEPPED[0], kind[0].format(reference))
    change(folder / "port_side.py", STEPPED[1], kind[1].format(port))
    (rate,) = (each for each in check(project, ["learning_rate"]).results if each.name == "learning_rate")
    return rate


def test_another_length_of_a_cosine_is_named(tmp_path):
    rate = scheduled(tmp_path / "toy", COSINE, 8, 7)
    assert rate.status is StepStatus.FAILED
    (problem,) = rate.problems
    assert "over 7 updates in the port" in problem["message"]
    assert rate.compared == "8 learning rates"


@pytest.mark.parametrize(("port", "told"), [(20, []), (12, ["lr.end"])])
def test_what_differs_beyond_the_training_is_worth_knowing(tmp_path, port, told):
    rate = scheduled(tmp_path / "toy", FALLING, 20, port)
    assert rate.status is StepStatus.PASSED
    assert [each["code"] for each in rate.findings] == told
    assert all("from step 12 on they would differ" in each["message"] for each in rate.findings)


def test_what_differs_within_the_training_fails(tmp_path):
    assert scheduled(tmp_path / "toy", FALLING, 20, 7).status is StepStatus.FAILED
