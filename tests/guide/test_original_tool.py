"""The original ``reprod_log``, in an environment of its own, reads what we write, and we its files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import run_here
from tests.examples.environments import make_environment, packages_of

SCRIPT = Path(__file__).with_name("original_tool.py")
THRESHOLDS = {"forward": 1e-6, "metric": 1e-6, "loss": 1e-6, "bp_align": 1e-6, "train_align": 1.5e-3}
# What pip says where no index can be reached at all; anything else that goes wrong is an error.
OFFLINE = re.compile(
    r"NewConnectionError|NameResolutionError|ConnectTimeout|Network is unreachable|Max retries"
)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """An interpreter with the old tool's own wheel, and without parfocal's drop-in."""
    folder = tmp_path_factory.mktemp("environments") / "original"
    python = make_environment(folder, lacking="reprod_log")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--disable-pip-version-check"]
    command += ["--retries", "1", "--target", str(packages_of(folder)), "reprod_log==1.0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode and OFFLINE.search(done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    return python


def run(python, *arguments):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [str(python), "-W", "ignore", str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def lines_of(log: Path) -> list[str]:
    """Without the time of each line."""
    return [re.sub(r"^\[.*?\] ", "", line) for line in log.read_text().splitlines()]


def test_it_reads_our_folder_and_its_logs_are_ours(checked, original, tmp_path, monkeypatch, capsys):
    out = tmp_path / "submission"
    assert run_here(monkeypatch, capsys, "accept", "--project", checked.folder, "--out", out).status == 0
    thresholds = json.loads((out / "manifest.json").read_text())["thresholds"]
    assert set(thresholds) == set(THRESHOLDS)
    logs = tmp_path / "logs"
    logs.mkdir()
    told = run(original, "check", out / "log_reprod", logs, json.dumps(thresholds))
    assert "diff check failed" not in told
    for name in thresholds:
        theirs = lines_of(logs / f"{name}_diff.log")
        assert theirs[-1] == "root INFO: diff check passed"
        assert lines_of(out / "log_reprod" / f"{name}_diff.log") == theirs


def test_a_folder_that_was_made_by_hand_with_it_is_accepted(original, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "log_reprod"
    folder.mkdir()
    for side in ("torch", "paddle"):
        run(original, side, folder)
    run(original, "check", folder, folder, json.dumps(THRESHOLDS))
    result = run_here(monkeypatch, capsys, "accept", "--verify", folder)
    assert result.status == 0, result.out
    assert "accepted: 5 of 5 checkpoints, 0 problems" in result.out
    for path in folder.glob("train_align*"):  # the worked example ends with the backward pass
        path.unlink()
    assert run_here(monkeypatch, capsys, "accept", "--verify", folder, "--partial").status == 0
