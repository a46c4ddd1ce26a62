"""No error is English only: what its message and its hint are made of are phrases, or code to copy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import parfocal
from parfocal import errors
from parfocal.phrases import phrase, translate
from parfocal.run.jsonvalues import FieldError
from parfocal.run.standins import MalformedError

SOURCES = Path(parfocal.__file__).parent
PARTS = ("FieldError", "MalformedError")  # become part of another error's message
MAKERS = ("wrong", "_misfit", "unsafe", "_not_numbers", "_unlike")  # functions that make an error from a text
PROSE = re.compile(r"[a-z]{2,} [a-z]{2,}")
CODE = re.compile(r"pip install |parfocal |(?:python|\{\}) -m |--|\w+[=(]|e\.g\. \S+$")  # hints to copy


def error_names() -> set[str]:
    named = {name for name, each in vars(errors).items() if isinstance(each, type)}
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and {ast.unparse(base) for base in node.bases} & named:
                named.add(node.name)
    return named | {*PARTS, *MAKERS}


def english_only(source: str, names: set[str]) -> Iterator[str]:
    """Sentences that an error is given as a plain string."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in names:
            continue
        for given in (*node.args, *(each.value for each in node.keywords)):
            for text in _plain_texts(given):
                if PROSE.search(text) and not CODE.match(text):
                    yield f"line {node.lineno}: {text}"


def _plain_texts(given: ast.expr) -> Iterator[str]:
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        yield given.value
    elif isinstance(given, ast.JoinedStr):
        yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in given.values)
    elif isinstance(given, ast.BinOp):
        yield from (*_plain_texts(given.left), *_plain_texts(given.right))
    elif isinstance(given, ast.IfExp):
        yield from (*_plain_texts(given.body), *_plain_texts(given.orelse))
    elif isinstance(given, ast.BoolOp):
        yield from (text for value in given.values for text in _plain_texts(value))


def test_no_error_is_english_only() -> None:
    names = error_names()
    found = {
        str(path.relative_to(SOURCES)): told
        for path in sorted(SOURCES.rglob("*.py"))
        if (told := list(english_only(path.read_text(encoding="utf-8"), names)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "source",
    [
        'raise InputError("the file is gone")',
        'raise InputError(f"{path} is not there", hint=phrase("look elsewhere"))',
        'return reader.wrong("a list of names" if many else phrase("a name"))',
        'raise errors.InputError(phrase("it is gone"), hint=known or "look for it elsewhere")',
    ],
)
def test_plain_english_is_found(source: str) -> None:
    assert list(english_only(source, error_names())) != []


def test_code_to_copy_is_left() -> None:
    source = "raise InputError(phrase('it is gone'), hint=\"pip install 'parfocal[torch]'\")"
    assert list(english_only(source, error_names())) == []


def test_what_an_error_was_made_of_is_translated_within_another() -> None:
    inner = MalformedError(phrase("a key has no value"))
    told = phrase(
        "{name}: damaged pickle, {error}, before byte {position}", name="a.pkl", error=inner, position=3
    )
    assert told == "a.pkl: damaged pickle, a key has no value, before byte 3"
    assert translate(told, "zh") == "a.pkl：pickle 已损坏，有键没有值，在第 3 字节之前"
    field = FieldError("shape", phrase("is missing"))
    assert translate(phrase("{path}: {error}", path="a.json", error=field), "zh") == "a.json：shape 缺失"
