"""Chinese text in tables is broken between characters, and nothing of it is cut off."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from parfocal.cli.wide_text import wide_text_wrapped
from parfocal.columns import breaks, width_of

SENTENCE = "随机输入：x=float32[4,3,224,224]、ids=int64[2,16]:0..1000，每次运行都相同。"


def shown(text: str, width: int, language: str) -> str:
    console = Console(file=io.StringIO(), width=width + 6, color_system=None)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(width=4)
    table.add_column()  # too long a word is cut off, as in the tables of --help
    table.add_row("-i", text)
    with wide_text_wrapped(language):
        console.print(table)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [12, 24, 40])
def test_nothing_is_cut_off(width: int) -> None:
    told = shown(SENTENCE, width, "zh")
    assert "…" not in told
    assert "".join("".join(line[4:].split()) for line in told.splitlines()) == SENTENCE
    assert all(width_of(line.rstrip()) <= width + 6 for line in told.splitlines())


def test_rich_alone_cuts_it_off() -> None:
    assert "…" in shown(SENTENCE, 24, "en")


def test_a_sentence_begins_on_the_line_of_the_word_before_it() -> None:
    assert shown("BatchNorm 的滑动统计量不同", 20, "zh").splitlines()[0].split() == [
        "-i",
        "BatchNorm",
        "的滑动统计",
    ]


def test_text_of_one_width_is_left_to_rich() -> None:
    text = "two words and a_very_long_one_that_does_not_fit"
    assert shown(text, 16, "zh") == shown(text, 16, "en")


def test_rich_is_as_before_afterwards() -> None:
    before = Text.wrap
    with wide_text_wrapped("zh"):
        assert Text.wrap is not before
    assert Text.wrap is before


@pytest.mark.parametrize("width", [2, 5, 9, 30])
def test_parts_fit_and_are_the_whole(width: int) -> None:
    places = [0, *breaks(SENTENCE, width), len(SENTENCE)]
    parts = [SENTENCE[start:end] for start, end in pairwise(places)]
    assert "".join(parts) == SENTENCE
    assert all(parts)
    assert all(width_of(part.rstrip()) <= width for part in parts)
