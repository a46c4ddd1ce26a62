"""What is remembered of a step holds as long as all that it rests on is as it was, wherever that lies."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from parfocal.workflow.guide.checking import check, stand
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.cli.command import run_here
from tests.guide.projects import change, toy


def outside(folder: Path, text: str, *, by: str = "import tricks") -> Path:
    """A module beside the project, on the path of modules by a line of the port's adapter."""
    beside = folder.parent / "port"
    beside.mkdir()
    module = beside / "tricks.py"
    module.write_text(text)
    adapter = folder / "port_side.py"
    first = adapter.read_text().index("import paddle")
    lines = f"import sys\n\nsys.path.insert(0, {str(beside)!r})\n{by}\n"
    adapter.write_text(adapter.read_text()[:first] + lines + adapter.read_text()[first:])
    return module


def older(*paths: Path) -> None:
    """As if it had been written a while ago: a check does not trust what changes while it runs."""
    for path in paths:
        os.utime(path, (time.time() - 100, time.time() - 100))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    "by",
    ["import tricks", "import importlib\ntricks = importlib.import_module('tricks')", "from tricks import *"],
    ids=["import", "by name", "star"],
)
def test_code_elsewhere_is_what_a_step_rests_on(tmp_path, by, together, monkeypatch, capsys):
    folder = tmp_path / "toy"
    project = toy(folder, together=together)
    module = outside(folder, "RATE = 1.0\n", by=by)
    use = "RATE" if "*" in by else "tricks.RATE"
    adapter = folder / "port_side.py"
    (line,) = (
        each for each in adapter.read_text().splitlines() if "learning_rate=" in each and "optimizer" in each
    )
    given = line.partition("learning_rate=")[2].partition(",")[0]
    change(adapter, line, line.replace(f"learning_rate={given}", f"learning_rate={given} * {use}"))
    older(module, adapter)
    assert check(project).status == 0
    assert check(project).ran == ()
    module.write_text("RATE = 1.01\n")
    standing = stand(project)
    assert any("tricks.py" in why for why in standing.changed["optimizer"])
    shown = run_here(monkeypatch, capsys, "status", "--project", folder)
    assert "optimizer: changed since it ran: ../port/tricks.py" in shown.out
    older(module)
    wrong = check(project)
    assert "optimizer" in wrong.ran
    assert {each.status for each in wrong.results} & {StepStatus.FAILED}
    known = run_here(monkeypatch, capsys, "check", "--project", folder)
    assert known.status == 1
    assert "failed (known)" in known.out
    module.write_text("RATE = 1.0\n")
    assert check(project).status == 0


def test_files_that_a_module_or_a_dataset_opens_count_and_others_do_not(tmp_path):
    folder = tmp_path / "toy"
    project = toy(folder)
    beside = tmp_path / "port"
    module = outside(
        folder,
        "from pathlib import Path\n"
        "WORDS = Path(__file__).with_name('words.txt').read_text()\n"
        "def look():\n"
        "    return [each.read_bytes() for each in sorted(Path(__file__).with_name('pictures').iterdir())]\n",
    )
    (beside / "words.txt").write_text("one")
    (beside / "unread.txt").write_text("one")
    (beside / "pictures").mkdir()
    (beside / "pictures" / "a.bin").write_bytes(b"1")
    adapter = folder / "port_side.py"
    change(adapter, "def evaluation_data():\n", "def evaluation_data():\n    tricks.look()\n")
    older(module, adapter, beside / "words.txt", beside / "pictures" / "a.bin")
    assert check(project).status == 0
    (beside / "unread.txt").write_text("two")
    assert stand(project).changed == {}
    (beside / "words.txt").write_text("two")
    assert "model" in stand(project).changed
    (beside / "words.txt").write_text("one")
    assert stand(project).changed == {}
    (beside / "pictures" / "b.bin").write_bytes(b"2")
    changed = stand(project).changed
    assert "../port/pictures" in changed["evaluation_data"][0]
    assert "loss" not in changed


def test_what_changes_while_a_check_runs_is_run_again(tmp_path):
    folder = tmp_path / "toy"
    project = toy(folder)
    adapter = folder / "port_side.py"
    adapter.write_text(adapter.read_text() + f"\nimport os\nos.utime({str(adapter)!r}, None)\n")
    assert check(project, ["model"]).status == 0
    assert "port_side.py" in stand(project).changed["model"][0]


def test_packages_that_read_unseen_leave_nothing_known_of_their_data(tmp_path):
    folder = tmp_path / "toy"
    project = toy(folder)
    module = outside(folder, "", by="import lmdb")
    module.with_name("lmdb.py").write_text("")
    older(folder / "port_side.py", module.with_name("lmdb.py"))
    wanted = ["evaluation_data", "learning_rate"]
    assert check(project, wanted).ran == ("evaluation_data", "learning_rate")
    assert check(project, wanted).ran == ("evaluation_data",)
    assert "lmdb may have read anything" in stand(project).changed["evaluation_data"][0]
    plan = folder / "parfocal.toml"
    plan.write_text('data = ["../port/tricks.py"]\n' + plan.read_text())
    assert check(read_project(folder), wanted).ran == ("evaluation_data",)
    assert check(read_project(folder), wanted).ran == ()
