"""``[accept] include``: the training program and its logs are handed in with the checkpoints."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from parfocal.errors import InputError
from parfocal.workflow.acceptance.layout import judged_names
from parfocal.workflow.guide.included import included_files
from parfocal.workflow.guide.settings import read_project
from tests.cli.command import run_here
from tests.guide.projects import toy


def including(folder: Path, *patterns: str):
    """A project in ``folder/project``, beside a training program and its logs."""
    project = toy(folder / "project")
    for name in ("train.py", "project/logs/one.txt", "project/logs/two.txt", "project/logs/old/three.log"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "project" / "logs" / "__pycache__").mkdir()
    (folder / "project" / "logs" / "__pycache__" / "one.pyc").write_text("")
    plan = project.folder / "parfocal.toml"
    plan.write_text(f"{plan.read_text()}\n[accept]\ninclude = {json.dumps(list(patterns))}\n")
    return read_project(plan)


def names(project, out: Path) -> set[str]:
    return {name.partition("/")[2] for name in included_files(project, out)}


NAMED = {
    "a file outside": (("../train.py",), {"train.py"}),
    "a folder": (("logs",), {"logs/one.txt", "logs/two.txt", "logs/old/three.log"}),
    "a pattern": (("logs/*.txt",), {"logs/one.txt", "logs/two.txt"}),
    "a pattern through folders": (("**/*.log",), {"logs/old/three.log"}),
    "the same twice": (("logs/one.txt", "logs/o*.txt"), {"logs/one.txt"}),
}


@pytest.mark.parametrize("kind", NAMED)
def test_files_folders_and_patterns(tmp_path, kind):
    patterns, wanted = NAMED[kind]
    assert names(including(tmp_path, *patterns), tmp_path / "project" / "acceptance") == wanted


def test_without_the_key_nothing_is_added(tmp_path):
    assert included_files(toy(tmp_path), tmp_path / "out") == {}


def test_what_parfocal_wrote_itself_is_left_out(tmp_path):
    project = including(tmp_path, ".")
    out = project.folder / "acceptance"
    for name in ("acceptance/report.txt", "acceptance.zip", ".parfocal/steps/model.json"):
        (project.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (project.folder / name).write_text("")
    found = names(project, out)
    assert {"parfocal.toml", "port_side.py", "logs/one.txt"} <= found
    assert not any(name.startswith(("acceptance", ".parfocal")) for name in found)


def test_a_pattern_that_names_nothing_is_one_error(tmp_path):
    project = including(tmp_path, "logs", "log/*.txt")
    line = len((project.folder / "parfocal.toml").read_text().splitlines())
    with pytest.raises(InputError) as caught:
        included_files(project, tmp_path / "out")
    assert caught.value.message == (
        f"parfocal.toml:{line}: accept.include names 'log/*.txt': there is no such file"
    )


@pytest.mark.parametrize("name", ["forward_torch.npy", "manifest.json", "train_align_diff.log"])
def test_a_file_that_would_be_judged_is_refused(tmp_path, name):
    project = including(tmp_path, "logs")
    (project.folder / "logs" / name).write_text("")
    assert name in judged_names()
    with pytest.raises(InputError, match="which has the name of a file that is judged"):
        included_files(project, tmp_path / "out")


def test_two_files_that_would_have_one_name_are_refused(tmp_path):
    project = including(tmp_path, "../train.py", "train.py")
    (project.folder / "train.py").write_text("another")
    with pytest.raises(InputError, match=r"which would both be included/train\.py"):
        included_files(project, tmp_path / "out")


def test_they_are_in_the_folder_in_the_zip_and_in_the_manifest(checked, tmp_path, monkeypatch, capsys):
    plan = checked.folder / "parfocal.toml"
    right = plan.read_text()
    (checked.folder / "logs").mkdir(exist_ok=True)
    (checked.folder / "logs" / "train.log").write_text("epoch 1 loss 0.5\n")
    plan.write_text(f'{right}\n[accept]\ninclude = ["logs", "port_side.py"]\n')
    out = tmp_path / "submission"
    try:
        result = run_here(monkeypatch, capsys, "accept", "--project", checked.folder, "--out", out)
    finally:
        plan.write_text(right)
    assert result.status == 0, result.out + result.err
    assert (out / "included" / "logs" / "train.log").read_text() == "epoch 1 loss 0.5\n"
    assert (out / "included" / "port_side.py").read_bytes() == (checked.folder / "port_side.py").read_bytes()
    listed = json.loads((out / "manifest.json").read_text())["files"]
    assert {"included/logs/train.log", "included/port_side.py"} <= set(listed)
    assert "submission/included/logs/train.log" in zipfile.ZipFile(tmp_path / "submission.zip").namelist()
    (out / "included" / "logs" / "train.log").write_text("epoch 1 loss 0.4\n")
    assert run_here(monkeypatch, capsys, "accept", "--verify", out).status == 1
