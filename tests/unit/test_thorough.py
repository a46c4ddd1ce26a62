"""What ``make test`` leaves out is there, and is left out by its mark."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.thorough import OF_THE_SOURCE, TESTS, THOROUGH, is_thorough


def _functions(path: Path) -> set[str]:
    return {each.name for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef)}


def test_all_that_is_left_out_exists() -> None:
    for name in THOROUGH:
        file, _, function = name.partition("::")
        assert (TESTS / file).exists(), name
        assert not function or function in _functions(TESTS / file), name
        assert is_thorough(TESTS / file, function)


def test_what_is_in_a_folder_is_left_out() -> None:
    assert is_thorough(TESTS / "browser" / "test_site.py", "test_anything")


def test_other_tests_are_run() -> None:
    assert not is_thorough(Path(__file__), "test_other_tests_are_run")
    assert not is_thorough(TESTS / "cli" / "test_doctor.py", "test_help")
    assert not is_thorough(Path("/elsewhere/browser/test_site.py"))


def test_what_is_left_to_lint_is_run_by_it() -> None:
    makefile = (TESTS.parent / "Makefile").read_text()
    (run,) = (line for line in makefile.splitlines() if "pytest -q $(OF_THE_SOURCE)" in line)
    assert run
    (listed,) = (line for line in makefile.splitlines() if line.startswith("OF_THE_SOURCE"))
    assert set(listed.partition("=")[2].split()) == {f"tests/{name}" for name in OF_THE_SOURCE}
