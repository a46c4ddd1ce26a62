"""Every step: a mistake of its own turns it red and no other; the clean pair is green."""

from __future__ import annotations

import pytest

from parfocal.workflow.guide.checking import CheckedProject, check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.guide.bugs import BUGS, Bug
from tests.guide.projects import PLANNED, RED, change, toy

FIRST = tuple({bug.step: bug for bug in reversed(BUGS)}.values())
OTHERS = tuple(bug for bug in BUGS if bug not in FIRST)
APART = (
    *(bug for bug in FIRST if bug.step in ("model", "metric", "loss", "learning_rate", "training")),
    *(bug for bug in BUGS if bug.code in ("op.activation", "grad.detached")),
)


def red_steps(checked: CheckedProject) -> list[str]:
    return [result.name for result in checked.results if result.status in RED]


def first_code(checked: CheckedProject, name: str) -> str:
    (result,) = (each for each in checked.results if each.name == name)
    return str(result.problems[0]["code"])


def name_of(bug: Bug) -> str:
    return f"{bug.step}-{bug.code}"


@pytest.mark.cold
@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_the_clean_pair_is_green(tmp_path, together):
    checked = check(toy(tmp_path / "toy", together=together))
    *planned, many_cards = checked.results
    assert [result.status for result in planned] == [StepStatus.PASSED] * len(PLANNED)
    assert many_cards.status is StepStatus.LEFT_OUT
    assert many_cards.message == "parfocal.toml names no many_cards.ranks"
    assert checked.ran == PLANNED
    assert checked.way == ("together" if together else "apart")
    assert all(each.green for each in checked.checkpoints)
    assert checked.status == 0


def test_every_step_has_a_mistake():
    assert {bug.step for bug in BUGS} == set(PLANNED)


@pytest.mark.parametrize("bug", FIRST, ids=name_of)
def test_a_mistake_turns_its_own_step_red(tmp_path, bug):
    checked = check(toy(tmp_path / "toy", bug=bug))
    assert red_steps(checked) == [bug.step]
    assert first_code(checked, bug.step) == bug.code
    assert checked.status == 1


@pytest.mark.parametrize("bug", OTHERS, ids=name_of)
def test_so_does_another_of_the_same_step(tmp_path, bug):
    checked = check(toy(tmp_path / "toy", bug=bug), [bug.step])
    assert red_steps(checked) == [bug.step]
    assert first_code(checked, bug.step) == bug.code


@pytest.mark.parametrize("bug", APART, ids=name_of)
def test_apart_it_is_the_same_step(tmp_path, bug):
    checked = check(toy(tmp_path / "toy", bug=bug, together=False))
    assert red_steps(checked) == [bug.step]
    assert first_code(checked, bug.step) == bug.code


@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_another_rate_hides_no_other_mistake(tmp_path, together):
    project = toy(tmp_path / "toy", together=together)
    change(project.folder / "port_side.py", "learning_rate=0.05", "learning_rate=0.1")
    change(project.folder / "port_side.py", "momentum=0.9, weight", "momentum=0.8, weight")
    checked = check(project, ["optimizer", "learning_rate"])
    assert red_steps(checked) == ["optimizer", "learning_rate"]
    assert first_code(checked, "optimizer") == "optim.momentum"
    assert first_code(checked, "learning_rate") == "lr.value"


def test_a_failing_step_stops_those_that_need_it_and_mending_runs_only_what_changed(tmp_path):
    bug = next(each for each in BUGS if each.step == "metric")
    project = toy(tmp_path / "toy", bug=bug)
    checked = check(project)
    states = {result.name: result for result in checked.results}
    assert states["metric"].status is StepStatus.FAILED
    assert states["training"].status is StepStatus.BLOCKED
    assert states["training"].message == "needs metric (failed)"
    assert states["initialisation"].status is StepStatus.PASSED
    change(project.folder / "port_side.py", bug.wrong, bug.right)
    again = check(read_project(project.folder))
    assert again.status == 0
    assert check(read_project(project.folder)).ran == ()  # nothing has changed since
