"""Every sentence in the code has one translation with the same values, set as Chinese is, and compiled."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.pofile import read_po
from tools import messages

import parfocal
from parfocal.locale import CHINESE, catalogue, compiled
from parfocal.phrases import phrase, translate
from parfocal.report.coverage import NOUNS

SOURCES = Path(parfocal.__file__).parent


def problems_of(source: str) -> Iterator[str]:
    """Calls of ``phrase`` and ``joined`` that cannot be looked up, or whose values do not fit."""
    for call in messages.phrase_calls(ast.parse(source)):
        first = call.args[0] if call.args else None
        is_text = isinstance(first, ast.Constant) and isinstance(first.value, str)
        given = {word.arg for word in call.keywords}
        if ast.unparse(call.func) == "joined":
            if not is_text:
                yield f"line {call.lineno}: the separator is not a string in the code"
        elif not is_text or len(call.args) > 1:
            yield f"line {call.lineno}: the template is not a string in the code"
        elif None not in given and fields_of(first.value) != given:
            yield f"line {call.lineno}: {first.value!r} is given other values"


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


TEXT = messages.CATALOGUE.read_text(encoding="utf-8")


def entries(text: str) -> dict[str, str]:
    return {each.id: each.string for each in read_po(StringIO(text)) if each.id}


@cache
def up_to_date(text: str) -> dict[str, str]:
    return entries(messages.updated(text, messages.said_in(messages.SOURCES)))


def missing_from(text: str) -> list[str]:
    return [template for template, chinese in up_to_date(text).items() if not chinese]


def unused_in(text: str) -> set[str]:
    return set(entries(text)) - set(up_to_date(text))


def unlike(table: dict[str, str]) -> list[str]:
    return [template for template, text in table.items() if fields_of(template) != fields_of(text)]


def test_the_code_calls_phrase_with_templates_and_their_values():
    found = {
        path.name: problems
        for path in SOURCES.rglob("*.py")
        if (problems := list(problems_of(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


def test_the_catalogue_is_complete():
    assert missing_from(TEXT) == [], "run make messages, and translate what is new"
    assert unused_in(TEXT) == set(), "run make messages"
    assert unlike(dict(catalogue(CHINESE))) == []


def test_the_catalogue_is_compiled():
    made = compiled(messages.CATALOGUE.with_suffix(".mo"))
    assert made == entries(TEXT), "not compiled since it was edited (run make messages), or marked fuzzy"


def test_a_translation_is_not_the_english_one():
    assert [each for each, text in catalogue(CHINESE).items() if each == text] == []


MISTAKES = {
    "a narrow mark beside a Chinese character": re.compile("[\u4e00-\u9fff][,;:!?(]|[,;:] ?[\u4e00-\u9fff]"),
    "a space beside a wide mark": re.compile(r"\s[，。；：）、]|[，。；：（、] (?!$)"),
    "no space between Chinese and Latin": re.compile("[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]"),
}


def mistakes_in(text: str) -> list[str]:
    told = re.sub(r"\{\{.*?\}\}", "", text)  # code with words in it
    return [name for name, pattern in MISTAKES.items() if pattern.search(told)]


def test_chinese_is_set_as_chinese():
    assert [text for text in catalogue(CHINESE).values() if mistakes_in(text)] == []


def test_wrong_setting_is_found():
    assert mistakes_in("参考模型: 移植模型") == ["a narrow mark beside a Chinese character"]
    assert mistakes_in("参考模型 ，移植模型") == ["a space beside a wide mark"]
    assert mistakes_in("为Kaiming 分布") == ["no space between Chinese and Latin"]
    assert mistakes_in("为 Kaiming 分布：{std}（标准差）") == []


def test_an_incomplete_catalogue_is_found():
    renamed = TEXT.replace('msgid "calls"\n', 'msgid "no such template"\n')
    assert missing_from(renamed) == ["calls"]
    assert unused_in(renamed) == {"no such template"}
    assert unlike({"{count} more": "还有"}) == ["{count} more"]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("phrase(text)", "the template is not a string in the code"),
        ('phrase(f"a {b}")', "the template is not a string in the code"),
        ('phrase("a {b}", c=1)', "'a {b}' is given other values"),
        ("joined(mark, parts)", "the separator is not a string in the code"),
    ],
)
def test_calls_that_cannot_be_looked_up_are_found(call, problem):
    source = f"from parfocal.phrases import joined, phrase; {call}"
    assert list(problems_of(source)) == [f"line 1: {problem}"]


def test_what_is_counted_has_a_noun():
    """``Compared("calls", ...)``: a noun that is not in the table is not translated."""
    told = {
        node.args[0].value
        for path in (SOURCES / "workflow").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and (getattr(node.func, "id", "") == "Compared" or getattr(node.func, "attr", "") == "add_count")
        and isinstance(node.args[0], ast.Constant)
    }
    assert {"calls", "outputs"} <= told
    assert told <= set(NOUNS)


@pytest.fixture
def afresh():
    catalogue.cache_clear()
    yield
    catalogue.cache_clear()


def test_without_the_compiled_catalogue_english_goes_on(monkeypatch, tmp_path, capsys, afresh):
    monkeypatch.setattr("parfocal.locale.FOLDER", tmp_path)
    assert "calls" not in catalogue(CHINESE)
    assert translate(phrase("calls"), CHINESE) == "calls"
    missing = tmp_path / "zh" / "LC_MESSAGES" / "parfocal.mo"
    assert capsys.readouterr().err == (
        f"parfocal: {missing} is missing, so most is said in English; install parfocal again to compile it\n"
    )


def test_the_header_is_no_sentence():
    assert "" not in catalogue(CHINESE)
