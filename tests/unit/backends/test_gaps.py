"""The table of differences: complete entries, stable ids, and the source of its page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parfocal.backends.gaps import Gap, Status, Symptom, Wording, families, gaps, gaps_of
from parfocal.report.gaps_page import page

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src" / "parfocal"


def test_ids_are_unique_and_well_formed() -> None:
    ids = [gap.id for gap in gaps()]
    assert len(ids) == len(set(ids)) >= 109
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", each) for each in ids)


def test_every_entry_has_whole_sentences() -> None:
    for gap in gaps():
        words = gap.english
        for sentence in (words.torch, words.paddle, words.seen, words.fix):
            assert sentence.endswith("."), gap.id
            assert "  " not in sentence, gap.id
        assert words.title, gap.id
        assert not words.title.endswith("."), gap.id
        assert gap.names, gap.id
        assert set(gap.absent) <= set(gap.names), gap.id


def test_names_stand_on_their_own_side() -> None:
    for gap in gaps():
        assert all(name.split(".")[0] in ("torch", "torchvision") for name in gap.torch), gap.id
        assert all(name.split(".")[0] == "paddle" for name in gap.paddle), gap.id


def test_every_family_has_entries() -> None:
    assert all(families().values())
    assert {f"{family.value}.toml" for family in families()} == {
        path.name for path in (SOURCE / "data" / "gaps").iterdir()
    }


def test_the_differences_of_a_name() -> None:
    ids = [gap.id for gap in gaps_of("torch.nn.BatchNorm2d")]
    assert "batch-norm-momentum" in ids
    assert ids == [gap.id for gap in gaps_of("paddle.nn.BatchNorm2D")]
    assert gaps_of("torch.nn.ReLU") == []


def test_a_translation_stands_beside_the_english_text() -> None:
    english, chinese = Wording("t", "a", "b", "c", "d"), Wording("题", "甲", "乙", "丙", "丁")
    gap = Gap("a-b", Status.READ, (Symptom.DATA,), (), (), english, chinese)
    assert gap.words("zh") is chinese
    assert gap.words() is english


def test_the_page_is_made_from_the_table() -> None:
    text = page()
    assert (ROOT / "docs" / "gaps.md").read_text(encoding="utf-8") == text
    assert all(f"`{gap.id}`" in text for gap in gaps())


NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.=]*")


def code_in(words: Wording) -> set[str]:
    """Names of arguments, keys and functions: they are the same in every language."""
    texts = (words.title, words.torch, words.paddle, words.seen, words.fix)
    names = {found.rstrip(".") for text in texts for found in NAME.findall(text)}
    return {name for name in names if set("_.=") & set(name)}


@pytest.mark.parametrize("gap", gaps(), ids=lambda gap: gap.id)
def test_the_chinese_words_keep_names_and_numbers(gap: Gap) -> None:
    texts = (gap.chinese.title, gap.chinese.torch, gap.chinese.paddle, gap.chinese.seen, gap.chinese.fix)
    assert all(any("\u4e00" <= each <= "\u9fff" for each in text) for text in texts)
    assert code_in(gap.english) == code_in(gap.chinese)
