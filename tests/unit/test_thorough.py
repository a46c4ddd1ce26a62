"""What ``make test`` leaves out is there, and is left out by its mark."""

from __future__ import annotations

from pathlib import Path

from tests.thorough import TESTS, THOROUGH, is_thorough


def test_every_file_that_is_left_out_exists() -> None:
    assert [name for name in THOROUGH if not (TESTS / name).is_file()] == []
    assert all(is_thorough(TESTS / name) for name in THOROUGH)


def test_other_files_are_run() -> None:
    assert not is_thorough(Path(__file__))
    assert not is_thorough(Path("/elsewhere/browser/test_site.py"))
