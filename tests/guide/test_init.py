"""``parfocal init``: a project that works at once, also with the user's own two models."""

from __future__ import annotations

import pytest

from parfocal.errors import InputError
from parfocal.workflow.guide.checking import CheckedProject, check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.starting import start_project
from parfocal.workflow.guide.state import StepResult, StepStatus
from parfocal.workflow.guide.steps import NAMES
from parfocal.workflow.guide.texts import next_line
from tests.cli.command import run_here

REFERENCE = """
from torch import nn


def build():
    return nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 3))
"""
PORT = """
from paddle import nn


def build():
    return nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.GELU(), nn.Linear(12, 3))
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(REFERENCE)
    (tmp_path / "theirs.py").write_text(PORT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_three_files_and_nothing_else(tmp_path, monkeypatch, capsys):
    result = run_here(monkeypatch, capsys, "init", tmp_path / "toy")
    assert result.status == 0
    names = {path.name for path in (tmp_path / "toy").iterdir()}
    assert names == {"parfocal.toml", "reference_side.py", "port_side.py"}
    again = run_here(monkeypatch, capsys, "init", tmp_path / "toy")
    assert again.status == 2
    assert "is there already" in again.err


def test_models_of_ones_own_give_a_verdict_without_further_code(own, monkeypatch, capsys):
    arguments = ("init", "port", "--from", "mine.py:build", "theirs.py:build", "--input", "float32[5,6]")
    assert run_here(monkeypatch, capsys, *arguments).status == 0
    project = read_project(own / "port")
    assert [side.framework for side in project.sides] == ["torch", "paddle"]
    states = {each.name: each for each in check(project, ["model", "loss"]).results}
    assert states["model"].status is StepStatus.PASSED
    assert states["loss"].status is StepStatus.LEFT_OUT
    assert states["loss"].message == "parfocal.toml names no loss, input.label"
    (own / "theirs.py").write_text(PORT.replace("LayerNorm(12)", "LayerNorm(12, epsilon=1e-3)"))
    (failed,) = (each for each in check(project, ["model"]).results if each.name == "model")
    assert failed.status is StepStatus.FAILED
    assert failed.problems[0]["code"] == "config.epsilon"


def test_frameworks_are_read_from_what_the_files_import(own):
    start_project(own / "turned", ("theirs.py:build", "mine.py:build"), ["float32[5,6]"])
    assert [side.framework for side in read_project(own / "turned").sides] == ["paddle", "torch"]


@pytest.mark.parametrize(
    ("models", "inputs", "told"),
    [
        (("mine.py:build", "theirs.py:build"), (), "needs to know what the models take"),
        (("mine.py:build", "nowhere.py:build"), ("float32[5,6]",), "there is no file nowhere.py"),
        (("mine.py", "theirs.py:build"), ("float32[5,6]",), "is neither file.py:name nor"),
        (("mine.py:build", "theirs.py:build"), ("five",), "is not understood"),
        (None, ("float32[5,6]",), "has inputs of its own"),
    ],
)
def test_a_wrong_call_writes_nothing(own, models, inputs, told):
    with pytest.raises(InputError, match=told):
        start_project(own / "port", models, inputs)
    assert not (own / "port").exists()


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ({"loss": StepStatus.FAILED}, "next: find out why loss differs (loss), then parfocal check"),
        ({"loss": StepStatus.FAILED, "training": StepStatus.ERROR}, "next: mend training as told above"),
        ({"loss": StepStatus.LEFT_OUT, "metric": StepStatus.WAITING}, "next: parfocal check runs metric"),
        ({"loss": StepStatus.LEFT_OUT, "many_cards": StepStatus.LEFT_OUT}, "next: loss: names no loss"),
        ({"many_cards": StepStatus.LEFT_OUT}, "next: parfocal accept writes the acceptance folder"),
    ],
)
def test_what_comes_next_is_told(own, statuses, told):
    start_project(own / "port", ("mine.py:build", "theirs.py:build"), ["float32[5,6]"])
    results = [
        StepResult(name, statuses.get(name, StepStatus.PASSED), message=f"names no {name}") for name in NAMES
    ]
    checked = CheckedProject(read_project(own / "port"), tuple(results), ())
    assert next_line(checked).startswith(told)


@pytest.mark.parametrize(
    ("fix", "told"), [("write it", "mend loss as told above"), ("", "find out why loss")]
)
def test_a_mistake_is_to_be_mended_as_told_only_where_that_was_told(own, fix, told):
    start_project(own / "port", ("mine.py:build", "theirs.py:build"), ["float32[5,6]"])
    failed = StepResult("loss", StepStatus.FAILED, problems=({"fix": fix},), report="report.txt")
    assert told in next_line(CheckedProject(read_project(own / "port"), (failed,), ()))
