"""Steps that raise: noted once, with name, place and error; raised where bugs must not hide."""

from __future__ import annotations

import pytest

from parfocal.attempts import STRICT, Attempts, Failure
from parfocal.errors import UnsupportedError


def _raise(error: Exception) -> int:
    raise error


def test_what_succeeds_leaves_no_trace() -> None:
    attempts = Attempts()
    assert attempts.attempt("sum", "a", lambda: 3, 0) == 3
    assert attempts.failures == []


def test_what_raises_is_noted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT)
    attempts = Attempts()
    for _ in range(2):
        assert attempts.attempt("sum", "a.b", lambda: _raise(ValueError("no\nsuch thing")), 7) == 7
    assert attempts.failures == [Failure("sum", "a.b", "ValueError", "no")]
    assert str(attempts.failures[0]) == "sum of a.b: ValueError: no"
    assert str(Failure("sum", "", "KeyError", "'x'")) == "sum of the model: KeyError: 'x'"


def test_these_tests_are_strict() -> None:
    attempts = Attempts()
    with pytest.raises(ValueError, match="no"):
        attempts.attempt("sum", "a", lambda: _raise(ValueError("no")), 7)
    assert attempts.failures == []


def test_what_is_known_to_be_impossible_is_a_note_in_either_case() -> None:
    attempts = Attempts()
    error = UnsupportedError("input 1 of embed has no recorded counterpart", hint="none")
    assert attempts.attempt("frozen", "embed", lambda: _raise(error), 7) == 7
    (failure,) = attempts.failures
    assert failure.reason == "input 1 of embed has no recorded counterpart"


def test_an_interruption_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(STRICT)

    def interrupted() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Attempts().attempt("sum", "a", interrupted, 7)
