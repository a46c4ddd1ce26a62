"""What the documents of the older tools and the guide say, and how parfocal stands to it.

``statements.toml`` holds one row for each statement, under the section that makes it. It is checked as it
is read: a row with an unknown status, a test that is not there, or no reason is refused with its place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any

from parfocal.workflow.guide.settings import tomllib

TABLE = Path(__file__).with_name("statements.toml")
TESTS = Path(__file__).parents[2]
CHINESE = re.compile("[\u4e00-\u9fff]")


class Status(Enum):
    """How parfocal stands to a statement."""

    AS_WRITTEN = "as written"
    OTHERWISE = "otherwise"
    NOT = "not"


@dataclass(frozen=True)
class Text:
    """The same in both languages."""

    english: str
    chinese: str


@dataclass(frozen=True)
class Statement:
    """One thing that a document says."""

    document: str
    section: Text
    said: Text
    status: Status
    why: Text | None  # where it is not as written
    tests: tuple[str, ...]  # "compat/padiff/test_dumps.py::test_report_json_is_padiffs": below tests/


class TableError(ValueError):
    """A row that cannot be taken as it is."""


@cache
def statements() -> tuple[Statement, ...]:
    """All rows, in the order of the documents."""
    return read(TABLE.read_text(encoding="utf-8"))


def read(text: str) -> tuple[Statement, ...]:
    """The rows of a table."""
    found = tuple(_rows(tomllib.loads(text)))
    seen: set[tuple[str, str, str]] = set()
    for row in found:
        key = (row.document, row.section.english, row.said.english)
        if key in seen:
            raise TableError(f"{key[0]}, {key[1]}: {key[2]!r} is there twice")
        seen.add(key)
    return found


def _rows(table: Mapping[str, Any]) -> Iterator[Statement]:
    for section in table["section"]:
        place = f"{section.get('document')}, {section.get('english')}"
        _known(section, {"document", "english", "chinese", "statement"}, place)
        title = _text(section, place)
        for entry in section["statement"]:
            yield _statement(section["document"], title, entry, f"{place}: {entry.get('english')!r}")


def _statement(document: str, section: Text, entry: Mapping[str, Any], place: str) -> Statement:
    _known(entry, {"english", "chinese", "status", "why", "tests"}, place)
    values = [each.value for each in Status]
    if entry.get("status") not in values:
        raise TableError(f"{place}: status is {entry.get('status')!r}; known are: {', '.join(values)}")
    status = Status(entry["status"])
    if (status is Status.AS_WRITTEN) == ("why" in entry):
        needs = "takes no why" if "why" in entry else "needs a why"
        raise TableError(f"{place}: what is {status.value!r} {needs}")
    tests = tuple(entry.get("tests", ()))
    for test in tests:
        if not is_test(test):
            raise TableError(f"{place}: there is no test {test!r} below tests/")
    why = _text(entry["why"], f"{place}, why") if "why" in entry else None
    return Statement(document, section, _text(entry, place), status, why, tests)


def _text(entry: Mapping[str, Any], place: str) -> Text:
    for language in ("english", "chinese"):
        words = entry.get(language, "")
        if not words.strip() or "|" in words or "\n" in words:
            raise TableError(f"{place}: {language} is {words!r}, where one line without | is needed")
    if "statement" not in entry and not CHINESE.search(entry["chinese"]):
        raise TableError(f"{place}: {entry['chinese']!r} is not Chinese")
    return Text(entry["english"], entry["chinese"])


def _known(entry: Mapping[str, Any], names: set[str], place: str) -> None:
    if unknown := sorted(set(entry) - names):
        raise TableError(f"{place}: unknown {', '.join(unknown)}")


def is_test(test: str) -> bool:
    """Whether a node id, without parameters, is that of a test function."""
    path, _, name = test.partition("::")
    return name in _functions(path)


@cache
def _functions(path: str) -> frozenset[str]:
    file = TESTS / path
    if not (file.is_file() and file.name.startswith("test_")):
        return frozenset()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    )
