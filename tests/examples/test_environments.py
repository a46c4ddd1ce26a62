"""AlexNet through all steps with an environment for each framework, neither of which has the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

from parfocal.workflow.guide.steps import NAMES
from tests.examples.environments import has, make_environment
from tests.examples.walkthrough import change_values, copy_example

SMALLER = {"epochs": "1", "lockstep": "2", "seeds": "2", "updates": "2", "within": "1.0"}


def test_two_environments_take_alexnet_through_all_steps(tmp_path):
    with_torch = make_environment(tmp_path / "with torch", lacking="paddle")
    with_paddle = make_environment(tmp_path / "with paddle", lacking="torch")
    assert [has(with_torch, each) for each in ("torch", "paddle")] == [True, False]
    assert [has(with_paddle, each) for each in ("torch", "paddle")] == [False, True]

    folder = copy_example("alexnet", tmp_path / "alexnet")
    made = [sys.executable, "make_pictures.py", "--training", "8", "--evaluation", "4"]
    subprocess.run(made, cwd=folder, check=True)
    plan = folder / "parfocal.toml"
    change_values(plan, **SMALLER)
    text = plan.read_text(encoding="utf-8")
    for name, python in (("venv-torch", with_torch), ("venv-paddle", with_paddle)):
        text, count = re.subn(
            rf'^# python = "{name}/bin/python".*$', f"python = '{python}'", text, flags=re.MULTILINE
        )
        assert count == 1
    plan.write_text(text, encoding="utf-8")

    done = subprocess.run(  # the command itself is in the environment that has no paddle
        [str(with_torch), "-m", "parfocal.cli.main", "check", "--json"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    expected = {**dict.fromkeys(NAMES, "passed"), "many_cards": "left out"}
    assert {each["name"]: each["status"] for each in found["steps"]} == expected
    assert found["way"] == "apart"
    assert all(each["green"] for each in found["checkpoints"])
    assert done.returncode == 0
