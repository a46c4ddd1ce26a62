"""Every template in the code has one translation with the same values, and every translation is used."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from string import Formatter

import pytest

import parfocal
from parfocal.locale import CHINESE, LANGUAGES, catalogue
from parfocal.locale.zh import TABLES
from parfocal.locale.zh.gaps import GAPS
from parfocal.locale.zh.limits import LIMITS
from parfocal.phrases import has_words
from parfocal.report.coverage import NOUNS
from parfocal.workflow.guide.starting import PROSE

SOURCES = Path(parfocal.__file__).parent


def calls_in(source: str, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(_tree(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


@lru_cache(maxsize=1)
def _tree(source: str) -> ast.Module:
    return ast.parse(source)


def imports(source: str, name: str) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "parfocal.phrases"
        and name in {each.name for each in node.names}
        for node in ast.walk(_tree(source))
    )


def problems_of(source: str) -> Iterator[str]:
    """Calls of ``phrase`` and ``joined`` that cannot be looked up, or whose values do not fit."""
    for call in calls_in(source, "phrase"):
        first = call.args[0] if call.args else None
        if not isinstance(first, ast.Constant) or not isinstance(first.value, str) or len(call.args) > 1:
            yield f"line {call.lineno}: the template is not a string in the code"
        elif all(word.arg for word in call.keywords) and fields_of(first.value) != {
            word.arg for word in call.keywords
        }:
            yield f"line {call.lineno}: {first.value!r} is given other values"
    for call in calls_in(source, "joined") if imports(source, "joined") else ():
        if not isinstance(call.args[0], ast.Constant):
            yield f"line {call.lineno}: the separator is not a string in the code"


def templates_of(source: str) -> Iterator[str]:
    """Every template that needs a translation."""
    for name in ("phrase", "joined"):
        for call in calls_in(source, name) if imports(source, name) else ():
            first = call.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


@cache
def all_templates() -> dict[str, str]:
    """With what ``init`` writes into a project, which is marked in the files it comes from."""
    found = {
        template: str(path.relative_to(SOURCES))
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "phrases.py"
        for template in templates_of(path.read_text(encoding="utf-8"))
    }
    for path in sorted(SOURCES.rglob("*.txt")):
        prose = PROSE.findall(path.read_text(encoding="utf-8"))
        found |= dict.fromkeys(prose, str(path.relative_to(SOURCES)))
    return found


def missing_from(table: dict[str, str]) -> list[str]:
    return [
        f"{path}: {template!r}"
        for template, path in all_templates().items()
        if has_words(template) and template not in table
    ]


def unused_in(table: dict[str, str]) -> list[str]:
    return [template for template in table if template not in all_templates()]


def unlike(table: dict[str, str]) -> list[str]:
    return [template for template, text in table.items() if fields_of(template) != fields_of(text)]


def test_the_code_calls_phrase_with_templates_and_their_values():
    found = {
        path.name: problems
        for path in SOURCES.rglob("*.py")
        if path.name != "phrases.py" and (problems := list(problems_of(path.read_text(encoding="utf-8"))))
    }
    assert found == {}


@pytest.mark.parametrize("language", [each for each in LANGUAGES if each != "en"])
def test_the_tables_are_complete(language):
    table = dict(catalogue(language))
    assert missing_from(table) == []
    assert unused_in(table) == []
    assert unlike(table) == []


def test_no_template_is_in_two_tables():
    counts = Counter(template for table in TABLES.values() for template in table)
    assert [template for template, count in counts.items() if count > 1] == []


def test_a_translation_is_not_the_english_one():
    assert [each for each, text in catalogue(CHINESE).items() if each == text] == []


MISTAKES = {
    "a narrow mark beside a Chinese character": re.compile("[\u4e00-\u9fff][,;:!?(]|[,;:] ?[\u4e00-\u9fff]"),
    "a space beside a wide mark": re.compile(r"\s[，。；：）、]|[，。；：（、]\s(?!$)"),
    "no space between Chinese and Latin": re.compile("[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]"),
}


def mistakes_in(text: str) -> list[str]:
    told = re.sub(r"\{\{.*?\}\}", "", text)  # code with words in it
    return [name for name, pattern in MISTAKES.items() if pattern.search(told)]


def test_chinese_is_set_as_chinese():
    texts = [
        *catalogue(CHINESE).values(),
        *LIMITS.values(),
        *(each for words in GAPS.values() for each in words),
    ]
    assert [text for text in texts if mistakes_in(text)] == []


def test_wrong_setting_is_found():
    assert mistakes_in("参考模型: 移植模型") == ["a narrow mark beside a Chinese character"]
    assert mistakes_in("参考模型 ，移植模型") == ["a space beside a wide mark"]
    assert mistakes_in("为Kaiming 分布") == ["no space between Chinese and Latin"]
    assert mistakes_in("为 Kaiming 分布：{std}（标准差）") == []


def test_incomplete_tables_are_found():
    table = dict(catalogue(CHINESE))
    text = table.pop("calls")
    assert any("'calls'" in each for each in missing_from(table))
    assert unused_in({"no such template": text}) == ["no such template"]
    assert unlike({"{count} more": "还有"}) == ["{count} more"]


def test_calls_that_cannot_be_looked_up_are_found():
    assert list(problems_of("phrase(text)")) == ["line 1: the template is not a string in the code"]
    assert list(problems_of('phrase(f"a {b}")')) == ["line 1: the template is not a string in the code"]
    assert list(problems_of('phrase("a {b}", c=1)')) == ["line 1: 'a {b}' is given other values"]
    joins = "from parfocal.phrases import joined; joined(mark, parts)"
    assert list(problems_of(joins)) == ["line 1: the separator is not a string in the code"]


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
