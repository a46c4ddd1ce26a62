"""Projects that are no copies of the bundled pair: mistakes are placed, correct ones are accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.cli.command import run_here
from tests.guide.own import PROJECTS, Mistake, make, mistakes

WAYS = (True, False)
SEEDS = range(5)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder of every project that is wanted, made once: a mistake is put in and taken out again."""
    folders: dict[tuple[str, bool], Path] = {}

    def folder(project: str, together: bool) -> Path:
        if (project, together) not in folders:
            target = tmp_path_factory.mktemp("own") / project
            folders[project, together] = make(project, target, together=together)
        return folders[project, together]

    return folder


@pytest.mark.parametrize("together", WAYS, ids=["together", "apart"])
@pytest.mark.parametrize("mistake", mistakes(), ids=lambda each: each.name)
def test_a_mistake_is_found_with_its_line(made, mistake: Mistake, together: bool) -> None:
    folder = made(mistake.project, together)
    file = folder / mistake.file
    text = file.read_text("utf-8")
    assert text.count(mistake.right) == 1, f"{mistake.right!r} in {mistake.file}"
    file.write_text(text.replace(mistake.right, mistake.wrong))
    try:
        checked = check(read_project(folder), [mistake.step])
    finally:
        file.write_text(text)
    red = {each.name: each for each in checked.results if each.status is StepStatus.FAILED}
    assert set(red) == {mistake.step}, [(each.name, each.status, each.message) for each in checked.results]
    first = red[mistake.step].problems[0]
    told = f"{first['where']} {first['what']} {first['message']} {first['fix']}"
    assert first["code"] == mistake.code, first
    assert first["fix"], first
    assert mistake.told in told
    if mistake.line:
        assert mistake.place(text) in told


@pytest.mark.parametrize("project", PROJECTS)
def test_every_project_has_the_mistakes_that_people_make(project: str) -> None:
    found = {mistake.step for mistake in mistakes() if mistake.project == project}
    wanted = {"model", "loss", "metric", "regularisation", "learning_rate", "initialisation"}
    assert wanted <= found
    assert found & {"evaluation_data", "training_data"}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("project", PROJECTS)
def test_the_correct_one_is_accepted(tmp_path, monkeypatch, capsys, project: str, seed: int) -> None:
    together = seed % 2 == 0
    folder = make(project, tmp_path / project, together=together, seed=seed)
    checked = run_here(monkeypatch, capsys, "check", "--json", "--project", folder)
    assert checked.status == 0, checked.out
    assert json.loads(checked.out)["way"] == ("together" if together else "apart")
    assert run_here(monkeypatch, capsys, "accept", "--project", folder).status == 0
    verified = run_here(monkeypatch, capsys, "accept", "--verify", folder / "acceptance")
    assert verified.status == 0, verified.out
