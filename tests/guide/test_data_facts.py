"""The facts of a data set that a plan states: both sides are held against them."""

from __future__ import annotations

import json

import pytest

from parfocal.errors import InputError
from parfocal.workflow.guide.checking import check, stand
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.starting import start_project
from parfocal.workflow.guide.state import StepStatus
from tests.cli.command import run_here
from tests.guide.projects import change, toy
from tests.guide.test_settings import line_of

RIGHT = {
    "evaluation_data": 'samples = 64\nclasses = 4\nshape = [1, 8, 8]\ndtype = "float32"\n',
    "training_data": "samples = 128\nclasses = 4\nshape = [1, -1, 8]\n",
}


def stating(folder, facts: dict[str, str], *, together: bool = True):
    toy(folder, together=together)
    plan = folder / "parfocal.toml"
    plan.write_text(plan.read_text() + "".join(f"\n[{name}]\n{lines}" for name, lines in facts.items()))
    return read_project(folder)


def steps(project):
    return {each.name: each for each in check(project, ["evaluation_data", "training_data"]).results}


@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_data_that_are_as_stated(tmp_path, together):
    found = steps(stating(tmp_path, RIGHT, together=together))
    for name in RIGHT:
        assert found[name].status is StepStatus.PASSED
        assert found[name].findings == ()


WRONG = {
    ("evaluation_data", "samples"): (
        "samples = 64",
        "samples = 10000",
        "64 in the reference, 64 in the port",
    ),
    ("evaluation_data", "classes"): (
        *("classes = 4\nshape = [1, 8, 8]", "classes = 10\nshape = [1, 8, 8]"),
        "4 (from 0 to 3) in the reference, 4 (from 0 to 3) in the port",
    ),
    ("training_data", "shape"): (
        *("shape = [1, -1, 8]", "shape = [3, -1, 8]"),
        "[1, 8, 8] in the reference, [1, 8, 8] in the port",
    ),
    ("evaluation_data", "dtype"): (
        *('dtype = "float32"\n\n[training', 'dtype = "uint8"\n\n[training'),
        "float32 in the reference, float32 in the port",
    ),
}


@pytest.mark.parametrize(("step", "key"), WRONG)
def test_made_up_data_on_which_both_sides_agree(tmp_path, step, key):
    project = stating(tmp_path, RIGHT)
    right, wrong, sides = WRONG[step, key]
    change(tmp_path / "parfocal.toml", right, wrong)
    found = steps(read_project(tmp_path))
    other = next(name for name in RIGHT if name != step)
    assert found[other].status is StepStatus.PASSED
    assert found[step].status is StepStatus.FAILED
    (problem,) = found[step].problems
    stated = wrong.splitlines()[0].split(" = ")[-1].strip('"')
    text = (project.folder / "parfocal.toml").read_text().splitlines()
    place = problem["what"].split("(")[1].split(")")[0]
    assert text[int(place.split(":")[1]) - 1].startswith(f"{key} = ")
    assert problem["what"] == f"{key} of the data: {stated} stated ({place}), {sides}"
    assert place in problem["fix"]


def test_a_side_that_reads_something_else_is_told_beside_the_difference(tmp_path):
    stating(tmp_path, RIGHT)
    change(tmp_path / "port_side.py", "seed=1, count=64", "seed=1, count=60")
    found = steps(read_project(tmp_path))["evaluation_data"]
    assert found.problems[0]["code"] == "data.length"  # why comes first
    assert "64 in the reference, 60 in the port" in found.problems[1]["what"]


def test_another_fact_runs_its_step_again_and_no_other(tmp_path):
    project = stating(tmp_path, RIGHT)
    steps(project)
    change(tmp_path / "parfocal.toml", "samples = 128", "samples = 127")
    assert list(stand(read_project(tmp_path)).changed) == ["training_data"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("samples = 0", "samples is 0, not a whole number above 0"),
        ("shape = 3", "shape is 3, not lengths like [3, 224, 224], -1 for one that varies"),
        ("shape = [3, -2]", "shape is [3, -2], not lengths like"),
        ("pictures = 3", "pictures is not known"),
    ],
)
def test_a_fact_that_is_none(tmp_path, line, told):
    with pytest.raises(InputError) as caught:
        stating(tmp_path, {"training_data": f"{line}\n"})
    number = line_of(tmp_path, line)
    assert caught.value.message.startswith(f"parfocal.toml:{number}: training_data.{told}")


def test_what_init_writes_of_it_works_when_it_is_taken_in(tmp_path):
    """The comment of a new plan is a plan: without the number sign it is read as it is meant."""
    start_project(tmp_path)
    plan = tmp_path / "parfocal.toml"
    text = plan.read_text()
    at = text.index("# [evaluation_data]")
    plan.write_text(text[:at] + text[at:].replace("# ", "", 1).replace("\n# ", "\n"))
    project = read_project(tmp_path)
    assert project.evaluation_data.stated == {
        "samples": 10000, "classes": 10, "shape": (3, 32, 32), "dtype": "float32", "ignored": 255,
    }  # fmt: skip
    assert project.training_data.stated == {"samples": 50000, "classes": 10, "shape": (3, 32, 32)}


def test_the_folder_says_what_was_stated_and_when_nothing_was(checked, tmp_path, monkeypatch, capsys):
    out = tmp_path / "silent"
    run_here(monkeypatch, capsys, "accept", "--project", checked.folder, "--out", out)
    silent = run_here(monkeypatch, capsys, "accept", "--verify", out)
    assert silent.status == 0
    assert "note: nothing is stated of the data" in silent.out
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["stated"] == {"evaluation_data": {}, "training_data": {}}
    manifest["stated"]["evaluation_data"] = {"samples": 64, "shape": [1, 8, 8]}
    (out / "manifest.json").write_text(json.dumps(manifest))
    spoken = run_here(monkeypatch, capsys, "accept", "--verify", out)
    assert "nothing is stated" not in spoken.out
    assert "stated of the data: evaluation_data (samples 64, shape [1, 8, 8])" in spoken.out
    told = run_here(monkeypatch, capsys, "accept", "--verify", out, "--json")
    assert len(json.loads(told.out)["notes"]) == 1
