"""An error is printed in the language of the terminal, and its fields are English."""

from __future__ import annotations

import pytest

from parfocal.brief import told, words_of
from parfocal.errors import InputError
from parfocal.phrases import phrase


@pytest.fixture
def error(monkeypatch: pytest.MonkeyPatch) -> InputError:
    monkeypatch.setenv("PARFOCAL_LANG", "zh")
    return InputError(
        phrase("steps is {steps}; it must be 1 or more", steps=0), hint=phrase("give 1 or more")
    )


def test_in_chinese(error: InputError) -> None:
    assert str(error) == "steps 为 0；必须不小于 1\n  提示：请给出不小于 1 的数"
    assert (error.message, error.hint) == ("steps is 0; it must be 1 or more", "give 1 or more")


def test_in_english(error: InputError, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARFOCAL_LANG", "en")
    assert str(error) == "steps is 0; it must be 1 or more\n  hint: give 1 or more"
    assert str(InputError("a plain text")) == "a plain text"


def test_as_a_part_of_another_sentence_it_stays_english(error: InputError) -> None:
    assert words_of(error) == told(error) == "steps is 0; it must be 1 or more"
    assert words_of(KeyError("name")) == "'name'"
