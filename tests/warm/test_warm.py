"""A process of the warm interpreter is as one of its own: arguments, folder, environment, output, ending."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.warm import warm_python

SCRIPT = """
import os, sys, helper
print(sys.argv[1:], os.getcwd(), os.environ["ASKED"], helper.WORD, __name__)
print("beside", file=sys.stderr)
sys.stdout.flush()
{ending}
"""
ENDINGS = {
    "": 0,
    "sys.exit()": 0,
    "sys.exit(3)": 3,
    "sys.exit('no')": 1,
    "1 / 0": 1,
    "os.kill(os.getpid(), 9)": -signal.SIGKILL,
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_script_runs_as_in_an_interpreter_of_its_own(tmp_path, ending):
    (tmp_path / "helper.py").write_text("WORD = 'loaded'")
    (tmp_path / "script.py").write_text(SCRIPT.format(ending=ending))
    done = subprocess.run(
        [*warm_python(), str(tmp_path / "script.py"), "a b", "c"],
        cwd="/", env={**os.environ, "ASKED": "yes"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "['a b', 'c'] / yes loaded __main__\n"
    assert done.returncode == ENDINGS[ending]
    assert ("ZeroDivisionError" in done.stderr) is (ending == "1 / 0")


def test_one_process_changes_nothing_for_the_next(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import torch\nprint(hasattr(torch, 'mine'))\ntorch.mine = 1\n")
    command = [*warm_python(), str(script)]
    assert [subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)] == [
        b"False\n",
        b"False\n",
    ]


def test_input_is_read_to_its_end(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(len(sys.stdin.read()))\n")
    done = subprocess.run(
        [*warm_python(), str(script)], input="x" * 200_000, capture_output=True, text=True, check=True
    )
    assert done.stdout == "200000\n"


def test_who_is_killed_takes_the_process_along(tmp_path):
    """As with an interpreter of one's own: launchers end the ranks that wait for one that is gone."""
    script = tmp_path / "script.py"
    script.write_text("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)\n")
    with subprocess.Popen([*warm_python(), str(script)], stdout=subprocess.PIPE, text=True) as asking:
        process = Path("/proc", asking.stdout.readline().strip())
        assert "tests.warm.server" in (process / "cmdline").read_text()
        asking.kill()
    until = time.monotonic() + 60
    while process.exists() and time.monotonic() < until:
        time.sleep(0.01)
    assert not process.exists()


def test_what_a_process_starts_is_warm_too(tmp_path):
    inner = "import sys; print('paddle' in sys.modules, sys.argv)"
    script = tmp_path / "script.py"
    script.write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-u', '-c', {inner!r}, 'a'])\n"
    )
    done = subprocess.run([*warm_python(), str(script)], capture_output=True, text=True, check=True)
    assert done.stdout == "True ['-c', 'a']\n"
