"""The command itself: help, version, wrong calls, and how little it loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import parfocal
from parfocal.errors import ParfocalError
from tests.cli.command import run_apart, run_here

COMMANDS = ("align", "compare", "convert", "diff", "doctor", "record")


def test_help_names_every_command(monkeypatch, capsys):
    done = run_here(monkeypatch, capsys, "--help")
    assert done.status == 0
    for command in COMMANDS:
        assert f" {command} " in done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(monkeypatch, capsys, command):
    done = run_here(monkeypatch, capsys, command, "--help")
    assert done.status == 0
    assert "Usage: parfocal" in done.out


def test_the_version(monkeypatch, capsys):
    assert run_here(monkeypatch, capsys, "--version").out == f"parfocal {parfocal.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], ["diff"], ["diff", "a", "b", "--threshold", "x"], ["--wrong"]]
)
def test_a_wrong_call_is_status_2(monkeypatch, capsys, arguments):
    done = run_here(monkeypatch, capsys, *arguments)
    assert done.status == 2
    assert "Usage" in done.err


def test_an_error_is_one_message_with_its_hint_and_status_2(monkeypatch, capsys):
    def fails(*args, **kwargs):
        raise ParfocalError("it broke", hint="mend it")

    monkeypatch.setattr("parfocal.run.files.load_arrays", fails)
    done = run_here(monkeypatch, capsys, "diff", "a", "b")
    assert (done.status, done.out, done.err) == (2, "", "parfocal: it broke\n  hint: mend it\n")


def test_a_mistake_of_our_own_is_not_taken_for_a_difference(monkeypatch, capsys):
    def fails(*args, **kwargs):
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("parfocal.run.files.load_arrays", fails)
    done = run_here(monkeypatch, capsys, "diff", "a", "b")
    assert (done.status, done.out) == (3, "")
    assert "ZeroDivisionError: ours" in done.err
    assert done.err.endswith("parfocal: a mistake of parfocal's own; please report it with the lines above\n")


def test_an_interruption_is_neither_a_verdict_nor_a_trace(monkeypatch, capsys):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("parfocal.run.files.load_arrays", interrupted)
    done = run_here(monkeypatch, capsys, "diff", "a", "b")
    assert (done.status, done.out) == (130, "")
    assert "Traceback" not in done.err


HEAVY = ("torch", "paddle", "scipy", "jinja2")


def loaded_by(folder, *arguments):
    code = (
        "import sys\n"
        f"sys.argv = ['parfocal', *{list(map(str, arguments))!r}]\n"
        "from parfocal.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('loaded', [name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=folder
    )
    return done.stdout.splitlines()[-1]


def test_help_and_diff_load_no_framework(tmp_path):
    for name, value in (("a", 1), ("b", 2)):
        np.save(tmp_path / f"{name}.npy", np.full(3, value))
    for arguments in (["--help"], ["diff", "a.npy", "b.npy", "--log", "diff.log"]):
        assert loaded_by(tmp_path, *arguments) == "loaded []", arguments


def test_the_check_above_can_fail(tmp_path):
    (tmp_path / "model.py").write_text("import torch\nbuild = torch.nn.Linear\n")
    found = loaded_by(tmp_path, "align", "model.py:build", "model.py:build", "--input", "float32[2]")
    assert "torch" in found


def test_the_package_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "parfocal", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == f"parfocal {parfocal.__version__}\n"


def test_it_runs_as_a_module(tmp_path):
    done = run_apart(tmp_path, "--version")
    assert (done.status, done.out) == (0, f"parfocal {parfocal.__version__}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_no_room_for_the_output_is_no_verdict(tmp_path):
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", x=np.ones(2))
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "parfocal.cli.main", "diff", "a.npz", "b.npz"],
            cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "parfocal: cannot print the result: [Errno 28] No space left on device\n"


def test_a_long_message_is_cut_to_a_screen(monkeypatch, capsys):
    def fails(*args, **kwargs):
        raise ParfocalError("\n".join(["30 problems", *map(str, range(30))]), hint="mend them")

    monkeypatch.setattr("parfocal.run.files.load_arrays", fails)
    lines = run_here(monkeypatch, capsys, "diff", "a", "b").err.splitlines()
    assert len(lines) == 25
    assert lines[-2:] == ["  ... and 8 more lines", "  hint: mend them"]


@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_names_that_cannot_be_printed_are_told_all_the_same(tmp_path, encoding):
    for name in ("a", "b"):
        np.savez(tmp_path / f"{name}.npz", **{"größe μ": np.ones(2)})
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "parfocal.cli.main", "diff", "a.npz", "b.npz"],
        cwd=tmp_path, capture_output=True, timeout=60, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"same: 1 compared" in done.stdout
