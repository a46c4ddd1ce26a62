"""``parfocal convert``: exit status, what is printed, what is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from parfocal.cli.main import main
from parfocal.weights.checkpoints.reading import load_checkpoint
from tests.unit.weights.checkpoints.files import same, write

FACTORIES = """
import warnings
warnings.simplefilter("ignore")
import paddle

def build():
    return paddle.nn.Sequential(paddle.nn.Linear(6, 4), paddle.nn.LayerNorm(4))

def broken():
    raise RuntimeError("no such file of settings")
"""


def state() -> dict[str, Any]:
    generator = np.random.default_rng(0)
    shapes = {"0.weight": (4, 6), "0.bias": (4,), "1.weight": (4,), "1.bias": (4,)}
    return {name: generator.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """The command in this process, in its folder: starting an interpreter each time takes seconds."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["parfocal", "convert", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Done(int(ended.value.code or 0), captured.out, captured.err)

    yield run
    sys.modules.pop("ports", None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "in.pth", state())
    template = {name: np.zeros_like(array.T) for name, array in state().items()}
    write(tmp_path / "template.pdparams", template)
    (tmp_path / "ports.py").write_text(FACTORIES)
    return tmp_path


def check_output(folder: Path) -> None:
    found = load_checkpoint(folder / "out.pdparams").tensors
    assert set(found) == set(state())
    for name, array in state().items():
        assert same(found[name].read(), np.ascontiguousarray(array.T))


def test_by_a_template(folder: Path, run: Run) -> None:
    done = run("in.pth", "--to", "out.pdparams", "--template", "template.pdparams")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[-1] == "written to out.pdparams"
    assert "4 copies, complete; not verified by running" in lines
    assert any(line.startswith("0.weight") and "transposed" in line for line in lines)
    check_output(folder)


def test_by_a_port_of_the_current_folder(folder: Path) -> None:
    """As a user starts it: an interpreter of its own, whose path does not have the folder."""
    script = Path(sys.executable).with_name("parfocal")
    command = [str(script), "convert", "in.pth", "--to", "out.pdparams", "--port", "ports:build", "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["written"], found["complete"], len(found["plan"]["entries"])) == ("out.pdparams", True, 4)
    check_output(folder)


def test_a_saved_plan_is_accepted_again(folder: Path, run: Run) -> None:
    options = ("in.pth", "--to", "out.pdparams", "--template", "template.pdparams")
    assert run(*options, "--save-plan", "plan.json").returncode == 0
    os.unlink(folder / "out.pdparams")
    done = run(*options, "--plan", "plan.json")
    assert (done.returncode, done.stderr) == (0, "")
    check_output(folder)


def test_tensors_without_a_counterpart(folder: Path, run: Run) -> None:
    write(folder / "in.pth", {**state(), "2.weight": np.ones((5, 7), "float32")})
    options = ("in.pth", "--to", "out.pdparams", "--template", "template.pdparams")
    done = run(*options, "--save-plan", "plan.json", "--json")
    assert done.returncode == 2
    assert "parfocal: 1 problem; nothing was written" in done.stderr
    assert "unmatched in the reference: 2.weight [5, 7]" in done.stderr
    assert not (folder / "out.pdparams").exists()
    assert json.loads(done.stdout)["complete"] is False
    assert json.loads(done.stdout)["written"] is None
    assert json.loads((folder / "plan.json").read_text())["unmatched_reference"][0]["path"] == "2.weight"
    partial = run(*options, "--partial")
    assert partial.returncode == 0
    assert "4 copies, incomplete" in partial.stdout
    check_output(folder)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing.pth", "--template", "template.pdparams"), "there is no file missing.pth"),
        (("in.pth",), "give either --port or --template"),
        (
            ("in.pth", "--template", "template.pdparams", "--port", "ports:build"),
            "give either --port or --template",
        ),
        (("in.pth", "--template", "ports.py"), "the suffix '.py' is not that of a checkpoint"),
        (("in.pth", "--port", "ports"), "neither file.py:name nor package.module:name"),
        (("in.pth", "--port", "nowhere:build"), "no module named 'nowhere'"),
        (("in.pth", "--port", "ports:nothing"), "has no 'nothing'"),
        (("in.pth", "--port", "ports:broken"), "RuntimeError: no such file of settings"),
        (("in.pth", "--template", "template.pdparams", "--plan", "missing.json"), "cannot read the plan"),
    ],
)
def test_wrong_calls(folder: Path, run: Run, arguments: tuple[str, ...], words: str) -> None:
    done = run(arguments[0], "--to", "out.pdparams", *arguments[1:])
    assert done.returncode == 2
    assert done.stderr.startswith("parfocal: ")
    assert words in done.stderr
    assert done.stdout == ""
    assert not (folder / "out.pdparams").exists()


def test_a_wrong_output(folder: Path, run: Run) -> None:
    done = run("in.pth", "--to", "out.onnx", "--template", "template.pdparams")
    assert done.returncode == 2
    assert "the suffix '.onnx' is not that of a checkpoint" in done.stderr


def test_a_plan_that_cannot_be_saved_is_said_beside_what_is_written(folder: Path, run: Run) -> None:
    done = run(
        "in.pth",
        "--to",
        "out.pdparams",
        "--template",
        "template.pdparams",
        "--save-plan",
        "nowhere/plan.json",
    )
    assert done.returncode == 2
    assert "cannot write the plan to nowhere/plan.json" in done.stderr
    assert "out.pdparams itself is written" in done.stderr
    check_output(folder)


def test_help_names_every_option(folder: Path, run: Run) -> None:
    done = run("--help")
    assert done.returncode == 0
    for option in ("--to", "--port", "--template", "--plan", "--save-plan", "--partial", "--json"):
        assert option in done.stdout
