"""A newcomer's path: the wheel alone, no framework. What needs one says how to get it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import parfocal as pf
from parfocal.workflow.guide.starting import start_project
from tests.examples.environments import has, install_wheel

MODEL = "import {framework}\n\ndef build():\n    return {framework}.nn.Linear(4, 4)\n"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def newcomer(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """``parfocal ...`` in a folder with runs, a report and arrays, and models that cannot be built."""
    folder = tmp_path_factory.mktemp("newcomer")
    python = install_wheel(folder / "environment")
    assert [has(python, each) for each in ("parfocal", "torch", "paddle")] == [True, False, False]
    _make_files(folder)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(python.with_name("parfocal")), *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)

    return run


def _make_files(folder: Path) -> None:
    import torch

    data = torch.ones(2, 4)
    for name, epsilon in (("a", 1e-5), ("b", 1e-2)):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4, eps=epsilon))
        with pf.record(model, folder / name):
            model(data)
    pf.compare(folder / "a", folder / "b").save(folder / "saved")
    np.save(folder / "one.npy", np.ones(3))
    np.save(folder / "two.npy", np.zeros(3))
    for framework in ("torch", "paddle"):
        (folder / f"with_{framework}.py").write_text(MODEL.format(framework=framework))
    start_project(folder / "begun")


def test_help(newcomer: Run) -> None:
    done = newcomer("--help")
    assert done.returncode == 0
    assert all(f" {name} " in done.stdout for name in ("align", "diff", "compare", "report", "doctor"))


WITHOUT = {
    "compare": (1, ("compare", "a", "b"), "DIFFERENT"),
    "diff": (1, ("diff", "one.npy", "two.npy"), "different: 1 compared, 1 above"),
    "diff of runs": (1, ("diff", "a", "b"), "different: "),
    "report": (1, ("report", "saved", "--format", "txt"), "DIFFERENT"),
    "report of runs": (1, ("report", "a", "b", "--format", "md"), "### parfocal: DIFFERENT"),
    "page": (1, ("report", "saved"), "report.html"),
    "map": (0, ("map", "nn.Linear"), "torch.nn.Linear -> paddle.nn.Linear"),
    "doctor": (0, ("doctor",), "not installed: pip install 'parfocal[torch]'"),
    "init": (0, ("init", "project"), "wrote project/parfocal.toml"),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_needs_no_framework_works(newcomer: Run, name: str) -> None:
    status, arguments, said = WITHOUT[name]
    done = newcomer(*arguments)
    assert done.returncode == status, done.stderr
    assert said in done.stdout


INPUT = ("--input", "float32[2,4]")
NEEDING = {
    "align": ("torch", ("align", "with_torch.py:build", "with_paddle.py:build", *INPUT)),
    "record": ("torch", ("record", "--model", "with_torch.py:build", *INPUT)),
    "record of a script": ("paddle", ("record", "with_paddle.py")),
    "describe": ("paddle", ("describe", "with_paddle.py:build")),
    "convert": ("paddle", ("convert", "w.pt", "--port", "with_paddle.py:build", "--to", "w.pdparams")),
    "check": ("torch", ("check", "--project", "begun")),
}


@pytest.mark.parametrize("name", NEEDING)
def test_what_needs_a_framework_says_how_to_get_it(newcomer: Run, name: str) -> None:
    framework, arguments = NEEDING[name]
    done = newcomer(*arguments)
    assert done.returncode == 2
    assert "is not installed" in done.stderr
    assert f"hint: pip install 'parfocal[{framework}]'" in done.stderr
    assert "Traceback" not in done.stderr
