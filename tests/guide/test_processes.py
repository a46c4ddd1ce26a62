"""A side that crashes or hangs is told with its last lines; a parent that is killed loses nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from parfocal.workflow.guide.checking import check
from parfocal.workflow.guide.settings import read_project
from parfocal.workflow.guide.state import StepStatus
from tests.guide.projects import PLANNED, change, toy
from tests.warm import warm_python

KILLS = int(os.environ.get("PARFOCAL_KILLS", "3"))  # PARFOCAL_KILLS=100 python -m pytest -k kill tests/guide


def metric_of(checked):
    return next(each for each in checked.results if each.name == "metric")


@pytest.mark.cold  # a crash is told in the words of a process as users start it
@pytest.mark.parametrize("together", [True, False], ids=["together", "apart"])
def test_a_crash_is_told_with_the_last_lines_and_stops_only_what_needs_it(tmp_path, together):
    project = toy(tmp_path, together=together)
    crash = "import os\n    print('counting hits')\n    os.abort()\n    return {"
    change(project.folder / "port_side.py", 'return {"top1"', f'{crash}"top1"')
    checked = check(read_project(project.folder), ["metric", "learning_rate"])
    result = metric_of(checked)
    assert result.status is StepStatus.ERROR
    assert "was ended by SIGABRT during predict" in result.message
    assert "counting hits" in result.message
    assert "port_side.py" in result.message  # of the fault handler
    assert {each.name for each in checked.results if each.status is StepStatus.PASSED} == {
        "model",
        "evaluation_data",
        "learning_rate",
    }
    assert checked.status == 2


def test_a_hang_is_told_after_the_time_limit(tmp_path):
    project = toy(tmp_path, time_limit="20")
    hang = "import time\n    print('waiting for data')\n    time.sleep(600)\n    return _pictures(seed=1"
    change(project.folder / "port_side.py", "return _pictures(seed=1", hang)
    checked = check(read_project(project.folder), ["evaluation_data"])
    result = next(each for each in checked.results if each.name == "evaluation_data")
    assert result.status is StepStatus.ERROR
    assert "did not finish read_data in 20 seconds" in result.message
    assert "waiting for data" in result.message
    assert "raise the limit at parfocal.toml:1: time_limit" in result.hint


def test_an_error_is_tried_again(tmp_path):
    project = toy(tmp_path)
    trap = "import os\n    if not os.path.exists('ready'):\n        exit(3)\n    return _pictures(seed=1"
    change(project.folder / "port_side.py", "return _pictures(seed=1", trap)
    (error,) = (each for each in check(project, ["evaluation_data"]).results if each.message)
    assert error.status is StepStatus.ERROR
    assert "raised SystemExit: 3" in error.message
    (project.folder / "ready").touch()
    assert check(read_project(project.folder), ["evaluation_data"]).status == 0


def test_nothing_finished_is_lost_or_run_twice_after_a_kill(tmp_path):
    """Killed at random moments until all steps are done; then every step has been finished exactly once."""
    project = toy(tmp_path / "toy")
    calls = tmp_path / "calls.txt"
    for factory in ("evaluation_data", "training_data"):
        change(
            project.folder / "port_side.py",
            f"def {factory}():\n",
            f"def {factory}():\n    open({str(calls)!r}, 'a').write('{factory}\\n')\n",
        )
    generator = random.Random(KILLS)
    finished: dict[str, float] = {}
    killed = 0
    while killed < KILLS:
        process = start(project.folder)
        try:
            process.wait(generator.uniform(0.2, 6.0))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            killed += 1
        else:
            assert process.returncode == 0
            (project.folder / ".parfocal").rename(tmp_path / f"done-{time.time_ns()}")  # and from the start
            finished = {}
            continue
        now = finished_steps(project.folder)
        for name, when in finished.items():
            assert now[name] == when, f"{name} was run again"
        finished = now
    done = check(read_project(project.folder))
    assert done.status == 0
    states = {each.name: each.status for each in done.results if each.name in PLANNED}
    assert states == dict.fromkeys(PLANNED, StepStatus.PASSED)
    assert not set(done.ran) & finished.keys()
    assert not left_behind(project.folder)


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [*warm_python(), "-m", "parfocal.cli.main", "check", "--project", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def finished_steps(folder: Path) -> dict[str, float]:
    return {
        path.stem: json.loads(path.read_text())["when"]
        for path in (folder / ".parfocal" / "steps").glob("*.json")
    }


def left_behind(folder: Path) -> list[str]:
    """Processes of sides whose parent is gone."""
    for _ in range(50):
        found = [
            name
            for name in os.listdir("/proc")
            if name.isdigit() and str(folder).encode() in read(Path("/proc") / name / "cmdline")
        ]
        if not found:
            return []
        time.sleep(0.2)
    return found


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
