"""``parfocal doctor``: what is there, what is not, and how to get it."""

from __future__ import annotations

import json
import platform
from importlib.metadata import PackageNotFoundError

import numpy as np

import parfocal
from parfocal.cli import doctor
from tests.cli.command import run_here


def test_versions_on_screen(monkeypatch, capsys):
    done = run_here(monkeypatch, capsys, "doctor")
    assert done.status == 0
    first, *lines = done.out.splitlines()
    assert first.startswith(f"parfocal {parfocal.__version__}, Python {platform.python_version()}, ")
    found = {line[2:34].strip(): line[34:] for line in lines}
    assert found["numpy"] == np.__version__


def test_json(monkeypatch, capsys):
    facts = json.loads(run_here(monkeypatch, capsys, "doctor", "--json").out)
    assert facts["parfocal"] == parfocal.__version__
    assert facts["packages"]["numpy"] == np.__version__


def test_what_is_missing_is_said_with_the_remedy(monkeypatch, capsys):
    def version(name):
        if name in ("torch", "paddlepaddle"):
            raise PackageNotFoundError(name)
        return "1.2.3"

    monkeypatch.setattr(doctor, "version", version)
    done = run_here(monkeypatch, capsys, "doctor")
    assert done.status == 0
    assert "torch                           not installed: pip install 'parfocal[torch]'" in done.out
    assert "paddle                          1.2.3" in done.out  # the build for GPUs counts
