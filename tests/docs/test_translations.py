"""Every page of the documentation is there in both languages, with the same parts and the same figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, TRANSLATED, blocks, original_of, originals, pages, translations

_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^(#+) ", re.MULTILINE)
_FIGURE = re.compile(r"\d+[.,]\d+|\d+(?:x| MB| ms)\b")  # measured ones; one of counting may be a word
CHINESE = re.compile("[\u4e00-\u9fff]")


def prose(page: Path) -> str:
    return _BLOCK.sub("", page.read_text(encoding="utf-8"))


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|")]


def test_every_page_has_a_chinese_one() -> None:
    there = {page.name for page in pages()}
    lacking = [page.name for page in originals() if page.parent.name == "docs"]
    lacking = [name for name in lacking if name.removesuffix(".md") + TRANSLATED not in there]
    assert lacking == []


def parts(page: Path) -> tuple[list[str], list[int], list[list[str]]]:
    """Levels of headings, columns of every row, and the figures in every row."""
    text = prose(page)
    found = rows(text)
    return (
        _HEADING.findall(text),
        [row.count("|") for row in found],
        [sorted(_FIGURE.findall(row)) for row in found],
    )


@pytest.mark.parametrize("page", translations(), ids=lambda page: page.name)
def test_a_translation_has_the_same_parts(page: Path) -> None:
    original = original_of(page)
    for own, other in zip(parts(page), parts(original), strict=True):
        assert own == other
    assert [each.language for each in blocks(page.read_text("utf-8"))] == [
        each.language for each in blocks(original.read_text("utf-8"))
    ]


@pytest.mark.parametrize("page", translations(), ids=lambda page: page.name)
def test_a_translation_is_chinese(page: Path) -> None:
    assert len(CHINESE.findall(prose(page))) > 30


def test_a_page_with_other_parts_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.zh.md"
    page.write_text("# One\n\n| a | 1.3x |\n", encoding="utf-8")
    short = tmp_path / "page.md"
    short.write_text("# One\n\n| a | 1.4x |\n", encoding="utf-8")
    assert parts(page)[:2] == parts(short)[:2]
    assert parts(page) != parts(short)


def test_the_readme_is_among_them() -> None:
    assert ROOT / "README.zh.md" in translations()
