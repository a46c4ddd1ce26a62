"""Processes that start with the frameworks already loaded: forked from one that has done nothing else.

A fresh interpreter needs seven seconds for its imports, and most tests that need a process of its own do not
care about them. Those that do (what is imported when, what a crash looks like) start one as users do.
"""

from __future__ import annotations

import atexit
import os
import shlex
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


def client_of(address: str) -> list[str]:
    """The beginning of a command that is run by the warm process which listens there."""
    return [sys.executable, "-I", "-S", str(HERE / "client.py"), address]


@cache
def warm_python() -> list[str]:
    """In place of ``sys.executable``: ``[*warm_python(), "-m", "parfocal.cli.main", ...]``."""
    ending = ExitStack()
    atexit.register(ending.close)
    folder = ending.enter_context(tempfile.TemporaryDirectory(prefix="warm-"))
    address = Path(folder, "socket")
    command = [sys.executable, "-W", "ignore", "-m", "tests.warm.server", str(address)]
    server = ending.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, cwd=HERE.parents[1]))
    ending.callback(server.kill)
    while not address.exists():
        assert server.poll() is None, f"the warm process ended with {server.returncode}"
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
