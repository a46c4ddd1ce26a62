"""The plugin, in sessions of its own: what fails, what is kept, what is seeded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from parfocal.pytest_plugin import LONGEST, folder_name

pytest_plugins = ["pytester"]

HEAD = """
import pytest
from parfocal.pytest_plugin import assert_same
from tests.unit.report.reports import divergence, report
"""


@pytest.fixture
def session(pytester, monkeypatch):
    """Runs pytest with this plugin alone, in a process of its own."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)

    def run(code: str, *arguments: str) -> pytest.RunResult:
        pytester.makepyfile(test_it=HEAD + code)
        return pytester.run(sys.executable, "-m", "pytest", "-p", "parfocal.pytest_plugin", "-q", *arguments)

    return run


def test_a_divergence_fails_with_the_report_as_message_and_is_kept(session, pytester):
    code = """
def test_bad():
    assert_same(report(divergence()))

def test_good():
    assert assert_same(report()).ok
    assert_same(report())
"""
    done = session(code, "--parfocal-report", "kept")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["E * AssertionError: DIFFERENT: Net (paddle 3.3.1) against Net (torch 2.13.0)"]
    )
    done.stdout.fnmatch_lines(["E *first divergence: forward, blocks.1.norm: output 0, 123x the noise"])
    done.stdout.fnmatch_lines(["E *the whole report: *kept/test_it.py-test_bad/report.html"])
    done.stdout.no_fnmatch_line("*def assert_same*")  # the test's own line is shown, not ours
    folders = sorted(path.name for path in (pytester.path / "kept").iterdir())
    assert folders == ["test_it.py-test_bad", "test_it.py-test_good", "test_it.py-test_good-2"]
    for name in folders:
        found = {path.name for path in (pytester.path / "kept" / name).iterdir()}
        assert found == {"report.json", "report.txt", "report.html"}


def test_nothing_is_kept_unless_asked(session, pytester):
    done = session("def test_bad(): assert_same(report(divergence()))")
    done.assert_outcomes(failed=1)
    assert not list(pytester.path.rglob("report.*"))
    done.stdout.no_fnmatch_line("*the whole report*")


def test_seeds(session):
    code = """
import random
seen = []

@pytest.mark.parfocal(seeds=3)
def test_draws(parfocal_seed):
    seen.append((parfocal_seed, random.random()))

@pytest.mark.parfocal(seeds=2)
def test_without_the_fixture():
    seen.append((None, random.random()))

def test_all():
    assert [seed for seed, _ in seen] == [0, 1, 2, None, None]
    assert [drawn for _, drawn in seen[:2]] == [drawn for _, drawn in seen[3:]]
    assert len({drawn for _, drawn in seen}) == 3

def test_plain(parfocal_seed):
    assert parfocal_seed == 0
"""
    done = session(code, "-vv", "--strict-markers")
    done.assert_outcomes(passed=7)
    done.stdout.fnmatch_lines(["*test_draws?seed2? PASSED*"])


@pytest.mark.parametrize("written", ["seeds=0", "seeds='3'", "seeds=True", "3", "seed=3"])
def test_a_wrong_mark_is_said(session, written):
    done = session(f"@pytest.mark.parfocal({written})\ndef test_it(): pass")
    assert "pluggy/" not in done.stdout.str()  # the words alone, without the way to them
    assert done.ret != 0
    done.stdout.fnmatch_lines([f"*test_it: @pytest.mark.parfocal({written}): write seeds=N*"])


def test_no_framework_is_imported_at_start(session):
    code = """
def test_start():
    import sys
    assert not {"torch", "paddle", "jinja2"} & set(sys.modules)
"""
    session(code.replace(HEAD, "")).assert_outcomes(passed=1)


def test_names_of_folders():
    assert folder_name("tests/test_a.py::test_b") == "tests-test_a.py-test_b"
    ways = ["t.py::a[x/y]", "t.py::a[x y]", "t.py::a[x]y", "../../etc", "t.py::a" + "b" * 300]
    names = [folder_name(each) for each in ways]
    assert len(set(names)) == len(ways)
    assert all("/" not in name and not name.startswith(".") and len(name) <= LONGEST + 9 for name in names)
