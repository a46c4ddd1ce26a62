"""Many cards: both sides launched on two ranks of this machine by their own launchers."""

from __future__ import annotations

import pytest

from parfocal.judge.verdict import Cause, Divergence, Grounds, Site
from parfocal.workflow.guide import judging_launches
from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.guide.projects import change, toy
from tests.guide.test_settings import line_of

REDUCE = """
import paddle


def reduce(parameters):
    for parameter in parameters:
        paddle.distributed.all_reduce(parameter.grad)
        parameter.grad.set_value(SCALE * parameter.grad)
"""
WRAP = """
def parallel(model):
    raise RuntimeError("no such strategy")
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The bundled pair, asked for many cards. What a test changes is in a file of its own."""
    folder = toy(tmp_path_factory.mktemp("cards") / "toy").folder
    plan = folder / "parfocal.toml"
    plan.write_text(plan.read_text() + "\n[many_cards]\nranks = 2\n")
    change(plan, "lockstep = 8", "lockstep = 2")
    return read_project(folder)


def many_cards(project, side: str, factory: str, text: str):
    """The step, with a factory of its own on one side."""
    plan = project.folder / "parfocal.toml"
    right = plan.read_text()
    change(plan, f"[{side}]\n", f'[{side}]\n{factory} = "cards.py:{factory}"\n')
    (project.folder / "cards.py").write_text(text)
    try:
        return check(read_project(project.folder), ["many_cards"]).results[-1]
    finally:
        plan.write_text(right)


def test_gradients_that_are_averaged_by_hand_are_those_of_the_wrapper(project):
    result = many_cards(project, "port", "reduce", REDUCE.replace("SCALE", "0.5"))
    assert result.status is StepStatus.PASSED, result
    assert "ranks with each other" in (project.folder / result.report).read_text()
    # that the frameworks do so is known, and no problem: their running variances, their ranks' own statistics
    assert {each["code"] for each in result.findings} == {"buffer.running_variance", "dist.rank"}


def test_gradients_that_are_summed_are_told(project):
    result = many_cards(project, "port", "reduce", REDUCE.replace("SCALE", "1.0"))
    assert result.status is StepStatus.FAILED
    assert {each["code"] for each in result.problems if not each["inherited"]} == {"dist.reduction"}


def test_a_factory_that_raises_on_a_rank_is_told_with_its_line(project):
    line = line_of(project.folder, "[reference]") + 1
    result = many_cards(project, "reference", "parallel", WRAP)
    assert result.status is StepStatus.ERROR
    told = f"parfocal.toml:{line}: reference.parallel = cards.py:parallel raised RuntimeError"
    assert result.message.startswith(told)
    assert "no such strategy" in result.message
    assert "(rank " in result.message


class Found:
    """As much of a report as is asked for."""

    def __init__(self, *codes: str) -> None:
        self.divergences = [
            Divergence(
                "lr",
                Site("", ""),
                Site("", ""),
                code,
                None,
                None,
                9.0,
                cause=Cause(code, code, "", None, Grounds.VALUES),
            )
            for code in codes
        ]


def told(*codes: str):
    return {"problems": [{"code": code} for code in codes], "findings": []}


def test_what_both_launches_do_otherwise_than_one_process_is_only_worth_knowing():
    found = told()
    judging_launches._add_differences(found, Found("dist.batch_scale"), Found("dist.batch_scale"))
    assert found["problems"] == []
    assert [each["code"] for each in found["findings"]] == ["dist.batch_scale"]
    assert found["findings"][0]["message"].startswith("both launches differ from one process: ")


def test_what_only_the_ports_launch_does_is_a_problem_once():
    found = told()
    judging_launches._add_differences(found, Found(), Found("dist.reduction"))
    assert [each["code"] for each in found["problems"]] == ["dist.reduction"]
    known = told("dist.reduction")
    judging_launches._add_differences(known, Found(), Found("dist.reduction"))
    assert known == told("dist.reduction")
