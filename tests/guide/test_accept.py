"""``parfocal accept`` and ``parfocal export``: what they write passes ``parfocal accept --verify``."""

from __future__ import annotations

import json

import numpy as np
import pytest

import parfocal as pf
from parfocal.workflow.acceptance.layout import CHECKPOINTS, Spelling
from parfocal.workflow.acceptance.writing import threshold_of
from tests.cli.command import run_here
from tests.guide.projects import change, toy

TOOL = {f"{each.name}_{each.reference}.npy" for each in CHECKPOINTS} | {
    name for each in CHECKPOINTS for name in (f"{each.name}_paddle.npy", f"{each.name}_diff.log")
}


def test_before_any_step_it_is_refused(tmp_path, monkeypatch, capsys):
    project = toy(tmp_path)
    result = run_here(monkeypatch, capsys, "accept", "--project", project.folder)
    assert result.status == 2
    assert "not every checkpoint is green: forward (model is waiting)" in result.err
    assert run_here(monkeypatch, capsys, "accept", "--project", project.folder, "--partial").status == 2


def test_the_folder_has_the_guides_names_and_is_accepted(checked, tmp_path, monkeypatch, capsys):
    out = tmp_path / "submission"
    result = run_here(monkeypatch, capsys, "accept", "--project", checked.folder, "--out", out)
    assert result.status == 0, result.out
    assert "accepted: 5 of 5 checkpoints, 0 problems" in result.out
    assert {path.name for path in (out / "log_reprod").iterdir()} == TOOL
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["missing"] == []
    assert manifest["seed"] == 0
    assert manifest["versions"]["port"]["frameworks"]["paddle"]
    assert set(manifest["files"]) >= {f"log_reprod/{name}" for name in TOOL} | {"report.txt", "report.json"}
    for packed in (out, tmp_path / "submission.zip"):
        assert run_here(monkeypatch, capsys, "accept", "--verify", packed).status == 0
    losses = np.load(out / "log_reprod" / "bp_align_torch.npy", allow_pickle=True).item()
    assert len(losses) == 5
    assert "diff check passed" in (out / "log_reprod" / "bp_align_diff.log").read_text()
    (out / "log_reprod" / "loss_torch.npy").write_bytes(
        (out / "log_reprod" / "metric_torch.npy").read_bytes()
    )
    assert run_here(monkeypatch, capsys, "accept", "--verify", out).status == 1


def test_the_other_spelling(checked, tmp_path, monkeypatch, capsys):
    out = tmp_path / "submission"
    arguments = ("accept", "--project", checked.folder, "--out", out, "--spelling", "pytorch")
    assert run_here(monkeypatch, capsys, *arguments).status == 0
    names = {path.name for path in (out / "log_reprod").iterdir()}
    assert {"forward_pytorch.npy", "forward_diff_log.txt", "train_align_benchmark.npy"} <= names
    assert "forward_torch.npy" not in names
    assert run_here(monkeypatch, capsys, *arguments[:-1], "tensorflow").status == 2


def test_a_folder_of_someone_else_is_not_written_over(checked, tmp_path, monkeypatch, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years")
    result = run_here(monkeypatch, capsys, "accept", "--project", checked.folder, "--out", tmp_path / "mine")
    assert result.status == 2
    assert "is no acceptance folder that parfocal wrote" in result.err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years"


def test_a_part_says_so_inside(checked, tmp_path, monkeypatch, capsys):
    """A change of the port alone makes its steps unknown again: only the others' checkpoints are written."""
    plan = checked.folder / "parfocal.toml"
    right = plan.read_text()
    change(plan, "epochs = 2", "epochs = 3")
    try:
        refused = run_here(monkeypatch, capsys, "accept", "--project", checked.folder)
        assert refused.status == 2
        assert "train_align (training is waiting)" in refused.err
        out = tmp_path / "part"
        arguments = ("accept", "--project", checked.folder, "--out", out, "--partial")
        assert run_here(monkeypatch, capsys, *arguments).status == 0
    finally:
        plan.write_text(right)
    assert json.loads((out / "manifest.json").read_text())["missing"] == ["train_align"]
    assert (out / "report.txt").read_text().startswith("Part of a submission, without train_align.")
    whole = run_here(monkeypatch, capsys, "accept", "--verify", out)
    assert whole.status == 1
    assert "part of a submission: without train_align" in whole.out


def test_status_tells_what_has_changed(checked, monkeypatch, capsys):
    plan = checked.folder / "parfocal.toml"
    right = plan.read_text()
    assert "changed since" not in run_here(monkeypatch, capsys, "status", "-p", checked.folder).out
    change(plan, "rates = 50", "rates = 51")
    try:
        result = run_here(monkeypatch, capsys, "status", "-p", checked.folder)
    finally:
        plan.write_text(right)
    assert "changed since they ran: learning_rate" in result.out
    assert result.status == 0


def test_rounding_raises_the_threshold_of_a_log_and_a_difference_does_not():
    forward = CHECKPOINTS[0]
    large = np.random.default_rng(0).normal(size=100).astype("float32") * 1000
    nudged = np.nextafter(large, np.float32(1e9))
    assert threshold_of(forward, {"x": large / 1000}, {"x": large / 1000}) == 1e-6
    assert threshold_of(forward, {"x": large}, {"x": nudged}) == 1e-4
    assert threshold_of(forward, {"x": large}, {"x": large + 1}) == 1e-6
    trained = CHECKPOINTS[-1]
    assert threshold_of(trained, {"top1": np.float32(76.0)}, {"top1": np.float32(76.1)}) == pytest.approx(
        0.15
    )
    assert [each.value for each in Spelling] == ["torch", "pytorch"]


def recorded(folder, framework, *, steps=3, logs=("top1",), scale=1.0):
    """A training by hand, recorded: the same numbers in both frameworks, which may agree to the last bit."""
    generator = np.random.default_rng(0)
    x, w = generator.normal(size=(16, 4)).astype("float32"), generator.normal(size=(4, 2)).astype("float32")
    w = w * np.float32(scale)
    if framework == "torch":
        import torch

        model = torch.nn.Linear(4, 2, bias=False)
        model.weight.data = torch.tensor(w.T.copy())
        optimizer, given = torch.optim.SGD(model.parameters(), 0.1), torch.tensor(x)
    else:
        import paddle

        model = paddle.nn.Linear(4, 2, bias_attr=False)
        model.weight.set_value(w)
        optimizer, given = paddle.optimizer.SGD(0.1, parameters=model.parameters()), paddle.to_tensor(x)
    with pf.record(model, folder, optimizer=optimizer) as recorder:
        for step in range(steps):
            loss = (model(given) ** 2).mean()
            loss.backward()
            optimizer.step()
            (optimizer.zero_grad if framework == "torch" else optimizer.clear_grad)()
            for name in logs:
                recorder.log(name, 0.5 + step / 8)
    return folder


def test_recorded_runs_become_the_guides_files(tmp_path, monkeypatch, capsys):
    runs = [recorded(tmp_path / name, name) for name in ("torch", "paddle")]
    result = run_here(monkeypatch, capsys, "export", *runs, "--guide", tmp_path / "guide")
    assert result.status == 0, result.out
    assert "accepted: 5 of 5 checkpoints" in result.out
    names = {path.name for path in (tmp_path / "guide" / "log_reprod").iterdir()}
    assert names == TOOL


def test_an_export_says_what_each_file_needs(tmp_path, monkeypatch, capsys):
    runs = [recorded(tmp_path / name, name, scale=1 + side) for side, name in enumerate(("torch", "paddle"))]
    result = run_here(monkeypatch, capsys, "export", *runs, "--guide", tmp_path / "guide")
    assert result.status == 1
    for name in ("forward", "loss", "bp_align"):
        assert f"{name} needs " in result.out
    assert "metric needs" not in result.out  # it was logged on both sides, and is the same
    assert "weight has other values" in result.out
    assert "fix: " in result.out


def test_what_runs_do_not_hold_is_told(tmp_path, monkeypatch, capsys):
    runs = [recorded(tmp_path / name, name, steps=1, logs=()) for name in ("torch", "paddle")]
    result = run_here(monkeypatch, capsys, "export", *runs, "--guide", tmp_path / "guide")
    assert result.status == 0, result.out
    assert "without bp_align: neither run has at least 2 steps with a loss" in result.out
    assert json.loads((tmp_path / "guide" / "manifest.json").read_text())["missing"] == [
        "metric",
        "bp_align",
        "train_align",
    ]
    assert run_here(monkeypatch, capsys, "export", runs[0], runs[0], "--guide", tmp_path / "x").status == 2
