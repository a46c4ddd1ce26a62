"""Texts that are no phrases are translated by the template that fits them."""

from __future__ import annotations

import pytest
from benchmarks.matched_words import MatchedWords, UntranslatedError

SIDES = MatchedWords({"port": "移植", "reference": "参考"})
WORDS = MatchedWords(
    {
        "nothing": "无",
        "{count:d} of {whole:d}": "{whole} 中的 {count}",
        "{name} is {value}": "{name} 为 {value}",
        "{name} is {value} by mistake": "{name} 误为 {value}",
        "the sides are {sides}": "两侧为{sides}",
    },
    SIDES,
)


def test_values_go_where_the_translation_has_them() -> None:
    assert WORDS.translate("nothing") == "无"
    assert WORDS.translate("3 of 1,024") == "1,024 中的 3"
    assert WORDS.translate("epsilon is 1e-5") == "epsilon 为 1e-5"


def test_the_longest_template_that_fits_is_taken() -> None:
    assert WORDS.translate("stride is 2 by mistake") == "stride 误为 2"


def test_a_place_for_a_figure_takes_no_words() -> None:
    assert WORDS.find("weights of two blocks") is None


def test_values_and_lists_of_them_are_translated() -> None:
    assert WORDS.translate("the sides are reference, port") == "两侧为参考、移植"
    assert WORDS.translate("the sides are reference; port") == "两侧为参考；移植"
    assert WORDS.translate("the sides are reference, other") == "两侧为reference, other"


def test_what_is_not_in_the_table_is_noticed() -> None:
    with pytest.raises(UntranslatedError, match="quite another"):
        WORDS.translate("quite another")
    assert WORDS.translate("1.25 / 3") == "1.25 / 3"
