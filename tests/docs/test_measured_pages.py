"""The Chinese pages of measurements are derived from the English ones: same tables, same figures."""

from __future__ import annotations

import re

import pytest
from benchmarks.matched_words import UntranslatedError
from benchmarks.translating import PAGES, chinese

from tests.docs.pages import ROOT

FIGURE = re.compile(r"\d+(?:[.,]\d+)*")


def texts(name: str) -> tuple[str, str]:
    english, translated = (ROOT / "docs" / f"{name}{suffix}" for suffix in (".md", ".zh.md"))
    return english.read_text(encoding="utf-8"), translated.read_text(encoding="utf-8")


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


@pytest.mark.parametrize("name", PAGES)
def test_the_chinese_page_is_that_of_the_english_one(name: str) -> None:
    english, translated = texts(name)
    assert chinese(english) == translated, "run `python -m benchmarks.translating`"


@pytest.mark.parametrize("name", PAGES)
def test_every_row_has_the_same_figures(name: str) -> None:
    english, translated = map(rows, texts(name))
    assert [sorted(FIGURE.findall(row)) for row in english] == [
        sorted(FIGURE.findall(row)) for row in translated
    ]
    assert english != translated


def test_a_sentence_without_chinese_words_is_noticed() -> None:
    english, _ = texts("recorded-runs")
    with pytest.raises(UntranslatedError, match="A new sentence"):
        chinese(f"{english}\nA new sentence.\n")
    with pytest.raises(UntranslatedError, match="new column"):
        chinese(english.replace("| located |", "| new column |"))
