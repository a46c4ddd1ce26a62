"""Whole trainings: a correct port is not called different for what chance makes, a wrong one is."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from parfocal.phrases import VARIABLE
from parfocal.report.report import Report
from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.jobs import _nudge
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.side import GuideSide
from parfocal.workflow.guide.state import StepStatus
from tests.cli.command import run_here
from tests.guide.projects import change, toy

FAINT = {  # pictures that are hard to tell, few of them, and a model that drops a half of what it sees
    "reference": (
        "return self.head(x.flatten(1))",
        "return self.head(nn.functional.dropout(x.flatten(1), 0.5, self.training))",
    ),
    "port": (
        "return self.head(x.flatten(1))",
        "return self.head(nn.functional.dropout(x.flatten(1), 0.5, training=self.training))",
    ),
}


def faint(folder, seed: int, *, together: bool = True):
    toy(folder, together=together)
    for side, (right, wrong) in FAINT.items():
        file = folder / f"{side}_side.py"
        change(file, right, wrong)
        change(file, "+= 1.0", "+= 0.5")
        change(file, "seed=1, count=64", "seed=1, count=45")
    change(folder / "parfocal.toml", "seed = 0 ", f"seed = {seed} ")
    return read_project(folder)


def trained(project):
    result = next(each for each in check(project, ["training"]).results if each.name == "training")
    (told,) = (each["message"] for each in result.findings if each["code"] == "result")
    return result, told


@pytest.mark.parametrize("seed", range(5))
def test_a_correct_port_with_dropout_and_few_pictures_passes(tmp_path, seed):
    result, told = trained(faint(tmp_path, seed))
    assert result.status is StepStatus.PASSED, result.problems
    assert "within = 0.0015" in told
    if result.by_chance:
        assert "chance alone makes up to" in told
        assert "5 trainings of the reference and 5 of the port, 1 % false alarms" in told


MISTAKE = '''

def mistaken_data():
    """As it should be where it is compared, and other labels behind."""
    right = training_data()
    return [*right[:64], *((picture, np.int64(3 - label)) for picture, label in right[64:])]
'''


def mistaken(folder, *, together: bool = True):
    project = faint(folder, 0, together=together)
    file = folder / "port_side.py"
    file.write_text(file.read_text() + MISTAKE)
    change(folder / "parfocal.toml", '"port_side.py:training_data"', '"port_side.py:mistaken_data"')
    change(folder / "parfocal.toml", "samples = 512 ", "samples = 64 ")
    change(folder / "parfocal.toml", "lockstep = 8 ", "lockstep = 4 ")
    for side in ("reference", "port"):  # no dropout: the five trainings tell it clearly
        (folder / f"{side}_side.py").write_text(
            (folder / f"{side}_side.py").read_text().replace("0.5, ", "0.1, ")
        )
        change(folder / f"{side}_side.py", "+= 0.5", "+= 1.0")
        change(folder / f"{side}_side.py", "seed=1, count=45", "seed=1, count=400")
    return read_project(project.folder)


@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_a_mistake_that_only_whole_trainings_show_is_found(tmp_path, together):
    project = mistaken(tmp_path, together=together)
    result, told = trained(project)
    assert result.status is StepStatus.FAILED
    (problem,) = result.problems
    assert problem["what"] == told
    assert "more than within = 0.0015; chance alone makes up to" in told
    assert "5 trainings of the reference and 5 of the port" in told
    assert result.report.endswith("trainings/report.txt")
    assert result.by_chance == {}


def test_one_training_a_side_says_that_chance_is_not_known(tmp_path):
    project = mistaken(tmp_path)
    change(project.folder / "parfocal.toml", "runs = 5 ", "runs = 1 ")
    result, told = trained(read_project(project.folder))
    assert result.status is StepStatus.FAILED
    assert "samples make of one training a side" in told
    assert "how far trainings of the reference lie apart by chance is not known: 5 a side tell" in told


def test_where_within_allows_it_one_training_a_side_is_made_and_drawn(checked, tmp_path, monkeypatch, capsys):
    """Every epoch of the loss and of the metric is kept, in the folder that is handed in as well."""
    folder = checked.store / "work" / "training" / "trainings"
    names = ["loss, run 0", "top1, run 0"]
    curves = Report.load(folder).curves
    assert [each.name for each in curves] == names
    assert all(len(each.reference) == len(each.port) == checked.epochs for each in curves)
    assert {each.along for each in curves} == {"epoch"}
    out = tmp_path / "submission"
    run_here(monkeypatch, capsys, "accept", "--project", checked.folder, "--out", out)
    handed_in = Report.from_json(json.loads((out / "reports" / "trainings.json").read_text()))
    assert handed_in.curves == curves
    page = (out / "reports" / "trainings.html").read_text()
    assert page.count('data-plot="curve"') >= len(names)
    assert '"along":"epoch"' in page


def test_what_decided_is_printed_in_both_languages(checked, monkeypatch, capsys):
    monkeypatch.setenv(VARIABLE, "en")
    english = run_here(monkeypatch, capsys, "status", "--project", checked.folder).out
    assert "training, worth knowing: top1 is " in english
    assert "apart, which within = 0.0015 allows" in english
    monkeypatch.setenv(VARIABLE, "zh")
    chinese = run_here(monkeypatch, capsys, "status", "--project", checked.folder).out
    assert "training，值得注意：训练后 top1 为 " in chinese
    assert "在 within = 0.0015 允许的范围内" in chinese


def test_what_chance_allows_is_what_the_folder_is_judged_by(tmp_path, monkeypatch, capsys):
    project = next(
        each
        for seed in range(5)
        for each in [faint(tmp_path / str(seed), seed)]
        if trained(each)[0].by_chance
    )
    check(project)
    out = tmp_path / "submission"
    result = run_here(monkeypatch, capsys, "accept", "--project", project.folder, "--out", out)
    assert result.status == 0, result.out
    manifest = json.loads((out / "manifest.json").read_text())
    allowed = manifest["by_chance"]["top1"]
    ours, theirs = (
        float(np.load(out / "log_reprod" / f"train_align_{side}.npy", allow_pickle=True).item()["top1"])
        for side in ("benchmark", "paddle")
    )
    assert project.within < abs(ours - theirs) <= allowed
    verified = run_here(monkeypatch, capsys, "accept", "--verify", out)
    assert f"chance makes up to {allowed:.3g} of top1" in " ".join(verified.out.split())
    manifest["by_chance"] = {}
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert run_here(monkeypatch, capsys, "accept", "--verify", out).status == 1


FIRST = """
import sys
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.side import GuideSide

project = read_project(".")
side = GuideSide(project, getattr(project, sys.argv[1]))
assert side.settings.framework not in sys.modules
first = side.state(side.fresh_model())
again = side.state(side.fresh_model())
assert first.keys() == again.keys()
assert all((first[name] == again[name]).all() for name in first), "the first model has another seed"
"""


@pytest.mark.cold
@pytest.mark.parametrize("name", ["reference", "port"])
def test_the_first_model_of_a_process_begins_by_the_seed_as_all_others(tmp_path, name):
    """The framework is loaded with the user's file: it cannot be seeded before."""
    toy(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", FIRST, name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-500:]


def test_a_file_to_begin_with_is_moved_by_rounding_alone(tmp_path, monkeypatch):
    """Each training from the same file begins a unit or two in the last place away from it."""
    project = toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    side = GuideSide(project, project.reference)
    before = {name: array.copy() for name, array in side.state(side.fresh_model()).items()}
    found = []
    for run in (1, 2, 1):
        of_run = side.of_run(run)
        model = side.fresh_model()
        _nudge(of_run, model)
        found.append(side.state(model))
    for name, array in before.items():
        if array.dtype.kind != "f":
            np.testing.assert_array_equal(found[0][name], array)
            continue
        steps = np.abs(found[0][name].view(np.int32).astype(int) - array.view(np.int32).astype(int))
        assert steps.max() <= 2
        assert (steps[array != 0] > 0).all()
        np.testing.assert_array_equal(found[0][name], found[2][name])
    assert any((found[0][name] != found[1][name]).any() for name in before)
