"""Running the command: in this process where that is enough, in a fresh one where it matters."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from parfocal.cli.main import main
from tests.warm import warm_python


@dataclass(frozen=True)
class Done:
    status: int
    out: str
    err: str


def run_here(monkeypatch: pytest.MonkeyPatch, capsys: Any, *arguments: Any) -> Done:
    """``parfocal ...`` as the console script runs it."""
    monkeypatch.setattr(sys, "argv", ["parfocal", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    captured = capsys.readouterr()
    code = stopped.value.code
    return Done(code if isinstance(code, int) else 0 if code is None else 1, captured.out, captured.err)


def run_apart(folder: Any, *arguments: Any, cold: bool = False) -> Done:
    """``parfocal ...`` in a process of its own, with its output in a pipe; ``cold``: nothing loaded yet."""
    python = [sys.executable, "-W", "ignore"] if cold else warm_python()
    done = subprocess.run(
        [*python, "-m", "parfocal.cli.main", *map(str, arguments)],
        cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


def write_pair(folder: Path, monkeypatch: pytest.MonkeyPatch, reference: str, port: str) -> Path:
    """``ref.py`` and ``port.py`` in a folder that is the current one from now on."""
    (folder / "ref.py").write_text(reference)
    (folder / "port.py").write_text(port)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return folder
