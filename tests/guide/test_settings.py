"""What is wrong with ``parfocal.toml`` is one error, with the file and the line."""

from __future__ import annotations

import re
import sys

import pytest

from parfocal.errors import InputError, ParfocalError
from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.starting import start_project
from parfocal.workflow.guide.state import StepStatus
from tests.guide.projects import change, toy

# What is written instead, what is told, and the text on the line that is told.
WRONG = {
    "unknown key": ("[port]\n", '[port]\ncolour = "red"\n', "port.colour is not known", "colour"),
    "unknown section": ("[compare]", "[comparing]", "comparing is not known", "[comparing]"),
    "unknown key at the top": ("seed = 0 ", "sead = 0 ", "sead is not known", "sead"),
    "wrong type": (
        "updates = 5 ",
        'updates = "five" ',
        "compare.updates is 'five', not a whole number above 0",
        "five",
    ),
    "no whole number": (
        "epochs = 2",
        "epochs = 0",
        "training.epochs is 0, not a whole number above 0",
        "epochs",
    ),
    "no such choice": (
        '"update"    #',
        '"batch"    #',
        'training.schedule is \'batch\', not "update" or "epoch"',
        'batch"',
    ),
    "no factory": ('model = "port_side.py:model"\n', "", "port.model is missing", "[port]"),
    "no file": (
        '"port_side.py:loss"',
        '"ports.py:loss"',
        "port.loss is 'ports.py:loss': there is no file ports.py",
        "ports.py",
    ),
    "no framework of ours": (
        'framework = "paddle"',
        'framework = "padle"',
        "port.framework is 'padle'; there are paddle, torch",
        "padle",
    ),
    "no data": (
        "seed = 0 ",
        'data = ["pictures"]\nseed = 0 ',
        "data names 'pictures': there is no such file or folder",
        'data = ["pictures"]',
    ),
    "data of no path": ("seed = 0 ", "data = 3\nseed = 0 ", "data is 3, not a file or folder", "data = 3"),
    "one rank": (
        "[compare]",
        "[many_cards]\nranks = 1\n[compare]",
        "many_cards.ranks is 1, not a whole number above 1",
        "ranks = 1",
    ),
    "no input": ('model = ["x', 'modell = ["x', "input.modell is not known", "modell"),
}


def line_of(folder, text: str, name: str = "parfocal.toml") -> int:
    lines = (folder / name).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_error_with_its_line(tmp_path, name):
    right, wrong, message, marker = WRONG[name]
    start_project(tmp_path)
    change(tmp_path / "parfocal.toml", right, wrong)
    with pytest.raises(InputError) as caught:
        read_project(tmp_path)
    assert caught.value.message.startswith(f"parfocal.toml:{line_of(tmp_path, marker)}: {message}")


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path):
    start_project(tmp_path)
    change(tmp_path / "parfocal.toml", "epochs = 2", "epochs = = 2")
    line = line_of(tmp_path, "epochs = = 2")
    with pytest.raises(InputError, match=rf"parfocal.toml is not valid TOML: .*line {line}"):
        read_project(tmp_path)


def test_a_folder_without_a_plan_is_told(tmp_path):
    with pytest.raises(InputError, match=r"there is no parfocal\.toml in"):
        read_project(tmp_path)


# What is written in the port instead, the key whose line is told, what is told, and what more is said.
BROKEN = {
    "that raises": (
        *("return Net()", "raise ValueError('no such backbone')", "model"),
        *("raised ValueError: no such backbone", "in model"),
    ),
    "that is missing": (
        "def loss(",
        "def lost(",
        "loss",
        "port_side.py has no 'loss'",
        "metric, lost, optimizer",
    ),
    "that gives nothing": ("return Net()", "Net()", "model", "gives None", "return what it makes"),
    "that gives something else": (
        *("return Net()", "return 3", "model"),
        *("gives an object of builtins.int, not a model of paddle", "port.framework"),
    ),
    "in a file that cannot be imported": (
        *("import math", "import mathematics", "model"),
        *("there is no module named 'mathematics'", "dependencies"),
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_factory(tmp_path, name):
    right, wrong, key, message, more = BROKEN[name]
    project = toy(tmp_path)
    change(tmp_path / "port_side.py", right, wrong)
    checked = check(project, ["loss", "evaluation_data"])
    assert checked.status == 2
    error = next(each for each in checked.results if each.status is StepStatus.ERROR)
    line = line_of(tmp_path, f'{key} = "port_side.py')
    assert error.message.startswith(f"parfocal.toml:{line}: port.{key} = port_side.py:{key}")
    assert message in error.message
    assert more in f"{error.message}\n{error.hint}"
    if name == "that raises":
        place = f'port_side.py", line {line_of(tmp_path, "no such backbone", "port_side.py")}, in model'
        assert place in error.message


def test_one_step_that_crashes_leaves_the_others(tmp_path):
    """Told with the user's own lines, and where relative paths begin."""
    project = toy(tmp_path)
    change(tmp_path / "port_side.py", "return _pictures(seed=1, count=64)", "return Files()")
    (tmp_path / "port_side.py").write_text(
        (tmp_path / "port_side.py").read_text() + "\n\nclass Files(paddle.io.Dataset):\n"
        "    def __len__(self):\n        return 64\n\n"
        "    def __getitem__(self, index):\n        return open('../pictures/none.png').read()\n"
    )
    results = {each.name: each for each in check(project, ["evaluation_data", "loss", "metric"]).results}
    assert results["loss"].status is StepStatus.PASSED
    assert results["metric"].status is StepStatus.BLOCKED
    error = results["evaluation_data"]
    assert error.status is StepStatus.ERROR
    assert "raised FileNotFoundError" in error.message
    assert "in __getitem__" in error.message
    assert "parfocal/workflow" not in error.message
    assert f"relative paths begin at {tmp_path}" in error.hint


def interpreter(folder, without: str):
    """A Python in which a framework cannot be found."""
    path = folder / f"python-without-{without}"
    hidden = folder / "hidden"
    hidden.mkdir(exist_ok=True)
    (hidden / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "found = u.find_spec\n"
        f"u.find_spec = lambda name, *more: None if name == {without!r} else found(name, *more)\n"
    )
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{hidden}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    path.chmod(0o755)
    return path


def with_python(project, python):
    change(project.folder / "parfocal.toml", "[port]\n", f'[port]\npython = "{python}"\n')
    line = line_of(project.folder, f'python = "{python}"')
    return read_project(project.folder), f"parfocal.toml:{line}: port.python"


def test_an_interpreter_that_lacks_its_framework(tmp_path):
    python = interpreter(tmp_path, "paddle")
    project, place = with_python(toy(tmp_path / "toy"), python)
    with pytest.raises(ParfocalError) as caught:
        check(project)
    told = f"{place}: PaddlePaddle, the framework of the port, is not installed for {python}"
    assert caught.value.message == told
    assert caught.value.hint.startswith(f"{python} -m pip install 'parfocal[paddle]', or name")


def test_an_interpreter_that_is_none(tmp_path):
    project, place = with_python(toy(tmp_path / "toy"), "nowhere/python")
    with pytest.raises(ParfocalError, match=re.escape(f"{place} is 'nowhere/python': there is no such file")):
        check(project)


def test_an_interpreter_without_parfocal(tmp_path):
    python = tmp_path / "bare"
    python.write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python3" -I -S "$@"\n')
    python.chmod(0o755)
    project, place = with_python(toy(tmp_path / "toy"), python)
    with pytest.raises(ParfocalError) as caught:
        check(project)
    assert caught.value.message.startswith(f"{place} = {python}: parfocal does not start there")
    assert "No module named" in caught.value.message
