"""``parfocal accept --verify``: one table, one status."""

from __future__ import annotations

import json

from tests.cli.command import run_apart, run_here
from tests.unit.workflow.acceptance.folders import write_folder


def test_a_correct_folder_is_accepted(tmp_path, monkeypatch, capsys):
    folder = write_folder(tmp_path / "log_reprod")
    result = run_here(monkeypatch, capsys, "accept", "--verify", folder)
    assert result.status == 0
    assert "accepted: 5 of 5 checkpoints, 0 problems" in result.out


def test_problems_are_rows_of_the_table(tmp_path, monkeypatch, capsys):
    folder = write_folder(tmp_path / "log_reprod")
    (folder / "loss_torch.npy").unlink()
    result = run_here(monkeypatch, capsys, "accept", "--verify", folder)
    assert result.status == 1
    assert "missing: loss_torch.npy is missing" in result.out
    assert "not accepted: 4 of 5 checkpoints, 1 problem" in result.out


def test_json_has_every_problem_with_its_values(tmp_path, monkeypatch, capsys):
    folder = write_folder(
        tmp_path / "log_reprod", port={"metric": {"top1_acc": 62.5, "mean_class_accuracy": 0.6041667}}
    )
    result = run_here(monkeypatch, capsys, "accept", "--verify", folder, "--json")
    assert result.status == 1
    found = json.loads(result.out)
    (metric,) = (one for one in found["checkpoints"] if one["name"] == "metric")
    assert not found["ok"]
    assert not metric["ok"]
    assert [problem["name"] for problem in metric["problems"]] == ["units", "log-failed"]
    assert metric["problems"][0]["values"] == {"key": "top1_acc", "reference": "0.625", "port": "62.5"}


def test_a_part_is_judged_when_asked_for(tmp_path, monkeypatch, capsys):
    folder = write_folder(tmp_path / "log_reprod")
    for path in folder.glob("train_align*"):
        path.unlink()
    assert run_here(monkeypatch, capsys, "accept", "--verify", folder).status == 1
    result = run_here(monkeypatch, capsys, "accept", "--verify", folder, "--partial")
    assert result.status == 0
    assert "left out" in result.out


def test_a_wrong_call_is_one_clear_error(tmp_path):
    result = run_apart(tmp_path, "accept", "--verify", tmp_path / "nowhere")
    assert result.status == 2
    assert "nowhere does not exist" in result.err
    assert "Traceback" not in result.err
