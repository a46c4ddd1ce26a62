"""``parfocal doctor``: what is there, what is not, and how to get it."""

from __future__ import annotations

import json
import platform
import re
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest

import parfocal
from parfocal.backends.gaps import gaps
from parfocal.capture import selftest
from parfocal.cli import doctor
from parfocal.native.library import path_in_use
from tests.cli.command import run_apart, run_here


def test_versions_on_screen(monkeypatch, capsys):
    done = run_here(monkeypatch, capsys, "doctor")
    assert done.status == 0
    first, *lines = done.out.splitlines()
    assert first.startswith(f"parfocal {parfocal.__version__}, Python {platform.python_version()}, ")
    found = {line[2:34].strip(): line[34:] for line in lines}
    assert found["numpy"] == np.__version__
    assert sum("recording works" in line for line in lines) == 2
    assert found["known differences"].startswith("by where they show: forward ")
    assert re.fullmatch(
        rf"{path_in_use()}.*: compares [0-9.]+ GB/s, [0-9.]+ times a memory copy", found["compiled loops"]
    )


def test_json(monkeypatch, capsys):
    facts = json.loads(run_here(monkeypatch, capsys, "doctor", "--json").out)
    assert facts["parfocal"] == parfocal.__version__
    assert facts["packages"]["numpy"] == np.__version__
    assert [each["problem"] for each in facts["frameworks"].values()] == ["", ""]
    assert facts["frameworks"]["torch"]["devices"][0] == "cpu"
    assert facts["traps"]["forward"] > 40
    loops = facts["loops"]
    assert loops["path"] == path_in_use()
    assert loops["path"] in [*loops["paths"], "none"]
    assert loops["compare_bytes_per_second"] > 0
    assert loops["copy_bytes_per_second"] > 0


@pytest.mark.parametrize(("path", "shown"), [("none", "none, NumPy alone: compares"), ("oak", None)])
def test_a_path_that_was_asked_for(path, shown, monkeypatch, tmp_path):
    """In a process of its own: the variable is read when the library is loaded."""
    monkeypatch.setenv("PARFOCAL_CPU", path)
    done = run_apart(tmp_path, "doctor", cold=True)
    if shown:
        assert done.status == 0
        assert shown in done.out
    else:
        assert done.status == 2
        assert "there is no path 'oak' for this processor" in done.err or "without a C compiler" in done.err
        assert "hint: " in done.err


def test_all_known_differences_are_listed_when_asked_for(monkeypatch, capsys):
    listed = run_here(monkeypatch, capsys, "doctor", "--traps").out
    assert all(gap.english.title in listed for gap in gaps())


def test_recording_that_does_not_work_is_told_and_fails(monkeypatch, capsys):
    monkeypatch.setattr(selftest, "recorder_works", lambda name: selftest.SelfTest(0, 0, f"no {name} today"))
    done = run_here(monkeypatch, capsys, "doctor")
    assert done.status == 1
    assert "recording does not work: no paddle today" in done.out


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
