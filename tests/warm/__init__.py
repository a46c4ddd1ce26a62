"""Processes that start with the frameworks already loaded: forked from one that has done nothing else.

A fresh interpreter needs seven seconds for its imports, and most tests that need a process of its own do not
care about them. Those that do (what is imported when, what a crash looks like) start one as users do.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
STARTED: list[subprocess.Popen[bytes]] = []


def client_of(address: str) -> list[str]:
    """The beginning of a command that is run by the warm process which listens there."""
    return [sys.executable, "-I", "-S", str(HERE / "client.py"), address]


@cache
def warm_python() -> list[str]:
    """In place of ``sys.executable``: ``[*warm_python(), "-m", "parfocal.cli.main", ...]``.

    The processes that share the tests of a run share the warm one; it ends with the process that began
    the run.
    """
    shared = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = Path(tempfile.gettempdir(), f"warm-{shared or os.getpid()}")
    address = folder / "socket"
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass  # another process of this run starts it
    else:
        owner = os.getppid() if shared else os.getpid()
        command = [sys.executable, "-W", "ignore", "-m", "tests.warm.server", str(address), str(owner)]
        STARTED.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd=HERE.parents[1]))
    while not address.exists():
        assert folder.exists(), "the warm process ended before it had begun"
        time.sleep(0.01)
    return client_of(str(address))


def program_of(address: str) -> str:
    """A file in place of ``sys.executable``, and one that stands for ``parfocal`` beside it."""
    folder = Path(address).with_name("programs")
    folder.mkdir()
    for name, arguments in (("python", []), ("parfocal", ["-m", "parfocal.cli.main"])):
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec {shlex.join([*client_of(address), *arguments])} "$@"\n')
        program.chmod(0o755)
    return str(folder / "python")


def search_path() -> str:
    """``PATH`` with warm ``python`` and ``parfocal`` first, and then this interpreter's own programs."""
    programs = Path(warm_python()[-1]).with_name("programs")
    return os.pathsep.join((str(programs), str(Path(sys.executable).parent), os.environ["PATH"]))
