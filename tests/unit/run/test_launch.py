from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parfocal.errors import InputError
from parfocal.run.launch import Launch, current_launch

TORCH = {"RANK": "1", "WORLD_SIZE": "2"}
PADDLE = {"PADDLE_TRAINER_ID": "3", "PADDLE_TRAINERS_NUM": "4"}


@pytest.mark.parametrize("environment", [{}, {"RANK": "0"}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_without_a_launcher_there_is_one_rank(environment: dict[str, str]) -> None:
    assert current_launch(environment) == Launch(0, 1, "")


def test_both_launchers_are_understood() -> None:
    assert current_launch(TORCH | {"PARFOCAL_RUN_ID": "job"}) == Launch(1, 2, "job")
    assert current_launch(PADDLE | {"PARFOCAL_RUN_ID": "job"}) == Launch(3, 4, "job")


def test_a_rank_that_is_no_number_is_named() -> None:
    with pytest.raises(InputError, match="the environment says RANK='one', not a number"):
        current_launch(TORCH | {"RANK": "one"})


def test_the_children_of_one_launcher_agree_and_others_differ() -> None:
    code = "from parfocal.run.launch import current_launch; print(current_launch().run_id)"
    ids = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | TORCH | {"RANK": rank, "PARFOCAL_RUN_ID": ""},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for rank in "01"
    }
    assert len(ids) == 1
    assert str(os.getpid()) in ids.pop()
    assert str(os.getppid()) in current_launch(TORCH).run_id


def test_reading_runs_imports_no_framework() -> None:
    code = (
        "import sys; sys.modules.update(torch=None, paddle=None); "
        "import parfocal.run.files, parfocal.run.writer, parfocal.run.launch"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)
    failing = subprocess.run([sys.executable, "-c", f"{code}; import torch"], capture_output=True, text=True)
    assert "ModuleNotFoundError" in failing.stderr  # the check above can fail
