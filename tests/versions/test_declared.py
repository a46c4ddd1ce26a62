"""What is declared of versions holds together, and a wrong declaration is noticed."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from packaging.specifiers import SpecifierSet

from parfocal.backends import registry, versions
from parfocal.phrases import said
from tests.versions import page
from tests.versions.declared import KNOWN, Lack, installed, table
from tests.versions.page import CHINESE, ENGLISH
from tests.versions.pairs import PAIRS, ROOT, interpreter_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_entry_names_a_test_that_there_is() -> None:
    for lack in table():
        assert lack.package in KNOWN
        assert lack.tests, lack.what
        for test in lack.tests:
            path, _, name = test.partition("::")
            text = (ROOT / "tests" / path).read_text(encoding="utf-8")
            function = re.escape(name.partition("[")[0]).replace(r"\*", r"\w*")
            assert re.search(rf"def {function}\(" if function.strip("\\w*") else "def test_", text), test


def test_an_entry_holds_for_its_versions_only() -> None:
    lack = Lack("paddle", "<3.0", "", "", "", ("unit/test_a.py::*[one]",))
    assert lack.holds_for({"paddle": "2.6.2"})
    assert not lack.holds_for({"paddle": "3.0.0"})
    assert not lack.holds_for({"torch": "2.6.2"})
    assert lack.concerns("tests/unit/test_a.py::test_b[one]")
    assert not lack.concerns("tests/unit/test_a.py::test_b[two]")


CHECKED = """
import pytest
from tests.versions import declared
declared.table = lambda: (declared.Lack("paddle", ">=0", "nothing", "", "no such thing", ("*",)),)
declared._pattern = lambda test: __import__("re").compile(".*")
from tests.versions.declared import expect_failures, failed_as_declared

def pytest_collection_modifyitems(items):
    expect_failures(items)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return failed_as_declared(item, (yield))
"""


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ("raise ValueError('no such thing')", "1 xfailed"),
        ("raise ValueError('something else')", "1 failed"),
        ("pass", "1 failed"),
    ],
)
def test_what_fails_otherwise_or_works_after_all_fails_the_run(tmp_path, body: str, outcome: str) -> None:
    (tmp_path / "conftest.py").write_text(CHECKED)
    (tmp_path / "test_it.py").write_text(f"def test_it():\n    {body}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert outcome in ran.stdout, ran.stdout


def test_the_tested_range_is_that_of_the_pairs_and_of_the_package() -> None:
    for name in ("paddle", "torch"):
        run = sorted((getattr(pair, name) for pair in PAIRS), key=versions._numbers)
        assert versions.TESTED[name] == (run[0], run[-1])
    pythons = sorted((pair.python for pair in PAIRS if pair.python), key=versions._numbers)
    assert versions.TESTED["python"] == (pythons[0], pythons[-1])
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["paddle"]]
    least = dict(
        requirement.split(">=")[:2] for requirement in wanted if requirement.startswith(("numpy", "paddle"))
    )
    assert versions.TESTED["paddle"][0] == least["paddlepaddle"]
    assert versions.TESTED["numpy"][0] in SpecifierSet(f">={least['numpy']}")
    assert versions._numbers(least["numpy"]) == versions._numbers(versions.TESTED["numpy"][0])[:2]


def test_the_page_is_of_what_is_declared_and_noted() -> None:
    for words, name in ((ENGLISH, "versions.md"), (CHINESE, "versions.zh.md")):
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page.page(page.rows(), words)


def test_an_interpreter_is_of_its_version_or_is_none() -> None:
    here = "{}.{}".format(*sys.version_info)
    found = interpreter_of(here)
    asked = "import sys; print('{}.{}'.format(*sys.version_info))"
    if found is not None:
        assert subprocess.run([found, "-c", asked], capture_output=True, text=True).stdout.strip() == here
    assert interpreter_of("2.99") is None


def test_what_is_noted_is_of_known_suites() -> None:
    assert all(row.results.keys() <= page.SUITES.keys() for row in page.rows())


@pytest.mark.parametrize(
    ("name", "version", "told"),
    [
        (
            "paddle",
            "2.5.2",
            "paddle 2.5.2 is not tested with parfocal: 2.6.2 to 3.3.1 are; go on at your own risk",
        ),
        (
            "paddle",
            "3.4.0",
            "paddle 3.4.0 is not tested with parfocal: 2.6.2 to 3.3.1 are; go on at your own risk",
        ),
        ("paddle", "3.3.1", ""),
        ("paddle", "2.6.2", ""),
        (
            "torch",
            "2.0.1",
            "torch 2.0.1 is not tested with parfocal: 2.1.2 to 2.15.0 are; go on at your own risk",
        ),
        ("torch", "2.1.2+cu121", ""),
        ("torch", "2.13.0+cpu", ""),
        ("toybox", "0.1", ""),
        ("python", "3.10.2", ""),
        ("python", "3.13.9", ""),
        (
            "python",
            "3.14.0",
            "python 3.14.0 is not tested with parfocal: 3.10 to 3.13 are; go on at your own risk",
        ),
    ],
)
def test_a_version_outside_is_said_in_one_line(name: str, version: str, told: str) -> None:
    assert versions.untested(name, version) == told


def test_it_is_said_in_chinese(monkeypatch) -> None:
    monkeypatch.setenv("PARFOCAL_LANG", "zh")
    assert "未经 parfocal 测试" in said(versions.untested("paddle", "2.5.2"))


def test_what_frameworks_stand_on_is_said_once_with_the_first_of_them(monkeypatch, capsys) -> None:
    monkeypatch.setitem(versions.TESTED, "python", ("3.1", "3.2"))
    monkeypatch.setattr(registry, "_loaded", {})
    registry.get("paddle")
    registry.get("torch")
    assert capsys.readouterr().err.count("is not tested with parfocal: 3.1 to 3.2 are") == 1


def test_it_is_said_at_first_use_and_once(monkeypatch, capsys) -> None:
    monkeypatch.setitem(versions.TESTED, "paddle", ("0.1", "0.2"))
    monkeypatch.delitem(registry._loaded, "paddle", raising=False)
    registry.get("paddle")
    registry.get("paddle")
    err = capsys.readouterr().err
    assert err.count("is not tested with parfocal: 0.1 to 0.2 are") == 1
    assert err.startswith(f"parfocal: paddle {installed()['paddle']}")
