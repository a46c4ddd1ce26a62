"""Steps that raise: noted once, with name, place and error; raised where bugs must not hide."""

from __future__ import annotations

import pytest

from parfocal.attempts import STRICT, Attempts, Failure
from parfocal.errors import UnsupportedError


def test_what_succeeds_leaves_no_trace() -> None:
    attempts, found = Attempts(), 0
    with attempts.attempt("sum", "a"):
        found = 3
    assert found == 3
    assert attempts.failures == []


def test_what_raises_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT)
    attempts = Attempts()
    for _ in range(2):
        with attempts.attempt("sum", "a.b"):
            raise ValueError("no\nsuch thing")
    assert attempts.failures == [Failure("sum", "a.b", "ValueError", "no")]
    assert str(attempts.failures[0]) == "sum of a.b: ValueError: no"
    assert str(Failure("sum", "", "KeyError", "'x'")) == "sum of the model: KeyError: 'x'"


def test_these_tests_are_strict() -> None:
    attempts = Attempts()
    with pytest.raises(ValueError, match="no"), attempts.attempt("sum", "a"):
        raise ValueError("no")
    assert attempts.failures == []


def test_what_is_known_to_be_impossible_is_a_note_in_either_case() -> None:
    attempts = Attempts()
    with attempts.attempt("frozen", "embed"):
        raise UnsupportedError("input 1 of embed has no recorded counterpart", hint="none")
    (failure,) = attempts.failures
    assert failure.reason == "input 1 of embed has no recorded counterpart"


def test_an_interruption_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT)
    with pytest.raises(KeyboardInterrupt), Attempts().attempt("sum", "a"):
        raise KeyboardInterrupt
