"""Phrases: strings as before, which can be translated; and the tables are complete."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import dataclass, replace

import pytest

from parfocal.phrases import (
    Phrase,
    current_language,
    is_made_with,
    joined,
    phrase,
    phrase_table,
    phrases_of,
    remade,
    translate,
)


def test_a_phrase_is_its_english_sentence():
    made = phrase("{count} of {total} {noun}", count=3, total=4, noun=phrase("calls"))
    assert made == "3 of 4 calls"
    assert hash(made) == hash("3 of 4 calls")
    assert f"{made}!" == "3 of 4 calls!"
    assert {made: 1}["3 of 4 calls"] == 1
    assert (made.template, made.values) == (
        "{count} of {total} {noun}",
        {"count": "3", "total": "4", "noun": "calls"},
    )


def test_values_are_translated_with_their_sentence():
    made = phrase("{count} of {total} {noun}", count=3, total=4, noun=phrase("calls"))
    assert translate(made, "zh") == "4 个调用中的 3 个"
    assert translate(made, "en") == "3 of 4 calls"
    assert type(translate(made, "en")) is str


def test_what_is_not_known_stays_english():
    assert translate(phrase("a sentence in no table"), "zh") == "a sentence in no table"
    assert translate("calls", "zh") == "calls"  # a string of the user's, whatever it says


def test_a_missing_value_is_an_error():
    with pytest.raises(KeyError):
        phrase("{count} more lines")


@dataclass(frozen=True)
class Holder:
    text: str
    number: int = 0


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda value: pickle.loads(pickle.dumps(value)),  # noqa: S301
        lambda value: replace(value, number=2),
    ],
)
def test_copies_can_still_be_translated(duplicate):
    made = duplicate(Holder(phrase("{count} {noun}", count=2, noun=phrase("tensors"))))
    assert made.text == "2 tensors"
    assert translate(made.text, "zh") == "2 个张量"


def test_phrases_in_a_row():
    parts = [phrase("calls"), phrase("tensors"), "weight"]
    assert joined(", ", parts) == "calls, tensors, weight"
    assert translate(joined(", ", parts), "zh") == "调用、张量、weight"
    assert translate(joined("; ", parts), "zh") == "调用；张量；weight"
    assert translate(joined(" and ", parts[:2]), "zh") == "调用和张量"
    assert joined(", ", []) == ""
    assert joined(", ", ["a"]) == "a"
    assert joined(", ", ["a", ""]) == ", ".join(["a", ""])


def test_phrases_can_be_added_to():
    made = phrase("calls") + ": " + phrase("tensors")
    assert made == "calls: tensors"
    assert translate(made, "zh") == "调用: 张量"
    assert translate("x " + phrase("calls"), "zh") == "x 调用"


def test_punctuation_between_values_is_set_for_the_language():
    made = phrase("{what} ({why}), {where}: {size}", what=phrase("calls"), why="a", where="b", size="c")
    assert made == "calls (a), b: c"
    assert translate(made, "zh") == "调用（a），b：c"


def test_no_space_between_chinese_words():
    made = phrase("next: look at {where}, mend it, then {again}", where="a.py:3", again=phrase("align again"))
    assert translate(made, "zh") == "下一步：查看 a.py:3 并修改，然后重新对齐"
    unknown = phrase("the place named above")
    assert "查看上面指出的位置并修改" in translate(
        phrase("next: look at {where}, mend it, then {again}", where=unknown, again=""), "zh"
    )


def test_a_space_between_chinese_and_latin_words():
    made = phrase("{verb} the bias of {spelled_path}", verb=phrase("add"), spelled_path="port.fc")
    assert translate(made, "zh") == "加上 port.fc 的偏置"
    assert (
        translate(phrase("{directions} in {mode} mode", directions="x", mode="eval"), "zh") == "eval 模式下 x"
    )


def test_what_users_write_is_not_changed():
    assert translate(phrase("gradient of {path}", path="层1. 头"), "zh") == "层1. 头的梯度"


def test_the_table_of_phrases_survives_json():
    inner = phrase("calls")
    data = {"a": [phrase("{count} {noun}", count=2, noun=inner)], "b": {"c": inner}, "d": "calls of mine"}
    table = phrase_table(data)
    assert table == {
        "2 calls": {
            "template": "{count} {noun}",
            "values": {"count": "2", "noun": {"template": "calls", "values": {}}},
        },
        "calls": {"template": "calls", "values": {}},
    }
    back = phrases_of(json.loads(json.dumps(table)))
    assert {sentence: translate(each, "zh") for sentence, each in back.items()} == {
        "2 calls": "2 个调用",
        "calls": "调用",
    }
    assert all(isinstance(each, Phrase) and each == sentence for sentence, each in back.items())


@pytest.mark.parametrize(
    "plain",
    [
        {"template": "{a}", "values": {"b": "x"}},
        {"template": "{a.__class__}", "values": {"a": "x"}},
        {"template": "{a:>9}", "values": {"a": "x"}},
        {"template": "{a", "values": {"a": "x"}},
        {"template": "another sentence", "values": {}},
        {"template": 3, "values": {}},
        {"template": "x"},
        "x",
        None,
    ],
)
def test_a_table_that_was_changed_is_refused(plain):
    with pytest.raises(ValueError):
        phrases_of({"x": plain})


@pytest.mark.parametrize(
    ("variables", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "en_US.UTF-8"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "PARFOCAL_LANG": "en"}, "en"),
        ({"LC_ALL": "C", "PARFOCAL_LANG": "zh"}, "zh"),
        ({"PARFOCAL_LANG": "ZH_cn"}, "zh"),
        ({"PARFOCAL_LANG": "", "LANG": "zh"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_the_language_of_the_terminal(monkeypatch, variables, language):
    for name in ("PARFOCAL_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert current_language() == language


def test_a_sentence_is_made_again_with_another_value():
    inner = phrase(" in {line}", line="a.py:1")
    said = phrase("{name} is missing{place}: a.py:1", name="relu", place=inner)
    again = remade(said, lambda part: "a.py:2" if part == "a.py:1" else part)
    assert again == "relu is missing in a.py:2: a.py:1"  # what the template says stays
    assert isinstance(again, Phrase)
    assert remade(said, lambda part: part) == said
    assert remade("a.py:1", lambda part: part.upper()) == "A.PY:1"


def test_what_a_sentence_was_made_with():
    left = phrase("nothing is left for {name}", name="it")
    said = phrase("no counterpart: {why}", why=left)
    assert is_made_with(said, left)
    assert is_made_with(said, "it")
    assert is_made_with(left, left)
    assert not is_made_with(said, "no counterpart")
    assert not is_made_with("no counterpart: nothing is left for it", left)


def test_a_signed_number_is_set_apart_from_chinese_words_too():
    for given, told in (("-8", " -8"), ("8", " 8"), ("-", "-"), ("整数", "整数")):
        made = phrase("let {step} of the port draw {range}", step="x", range=given)
        assert translate(made, "zh") == f"让移植模型的 x 抽取{told}"
