"""The reader of facts says what is wrong in a file, and where; both languages of every fact are whole."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from parfocal import data
from parfocal.data import DataError, Text, parse, tomllib
from tests.unit.locale.test_catalogue import mistakes_in

FOLDER = Path(data.__file__).parent
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.toml"))


WITHOUT_FACTS = """
import parfocal.data
parfocal.data.text_of = None
import parfocal, parfocal.cli.main, parfocal.cli.map, parfocal.judge.verdict, parfocal.report.report
import parfocal.workflow.align, parfocal.workflow.alignment
"""


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Fruit:
    id: str
    colours: tuple[Colour, ...]
    seeds: int
    about: Text | None = None
    sizes: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Basket:
    fruit: tuple[Fruit, ...] = ()
    notes: Mapping[str, Text] = field(default_factory=dict)


APPLE = '[[fruit]]\nid = "apple"\ncolours = ["red"]\nseeds = 5\n'


def test_a_file_becomes_dataclasses() -> None:
    both = 'english = "sweet"\nchinese = "甜"\n'
    found = parse(Basket, f"{APPLE}[fruit.about]\n{both}[notes.one]\n{both}", "basket.toml")
    sweet = Text("sweet", "甜")
    assert found == Basket((Fruit("apple", (Colour.RED,), 5, sweet),), {"one": sweet})
    assert (sweet.words("en"), sweet.words("zh")) == ("sweet", "甜")
    (apple,) = parse(Basket, APPLE + 'sizes = [[1, true], "any"]\n', "basket.toml").fruit
    assert apple.sizes == ((1, True), "any")
    assert parse(dict[str, Text], f"[one]\n{both}", "notes.toml") == {"one": sweet}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (APPLE + "size = 3\n", "fruit: apple: unknown key size"),
        (APPLE.replace("seeds = 5\n", ""), "fruit: apple: missing key seeds"),
        (APPLE.replace('id = "apple"\n', ""), "fruit: 1: missing key id"),
        (APPLE.replace("5", '"5"'), "fruit: apple: seeds: expected int, not '5'"),
        (APPLE.replace("5", "true"), "fruit: apple: seeds: expected int, not True"),
        (APPLE.replace('["red"]', '"red"'), "fruit: apple: colours: expected list, not 'red'"),
        (
            APPLE.replace('"red"', '"red", "grey"'),
            "fruit: apple: colours: 2: 'grey' is none of 'red', 'blue'",
        ),
        (APPLE + APPLE, "fruit: apple stands twice"),
        (APPLE.replace("apple", " "), "fruit:  : id: the text is empty"),
        ('[notes.one]\nenglish = "sweet"\nchinese = ""\n', "notes: one: chinese: the text is empty"),
        ('[notes.one]\nenglish = "sweet"\n', "notes: one: missing key chinese"),
        ("fruit = 3\n", "fruit: expected list, not 3"),
        ("fruit = \n", "Invalid value (at line 1, column 9)"),
        ("[notes.one]\n[notes.one]\n", "Cannot declare ('notes', 'one') twice (at line 2, column 11)"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(text: str, said: str) -> None:
    with pytest.raises(DataError) as raised:
        parse(Basket, text, "basket.toml")
    assert str(raised.value) == f"basket.toml: {said}"


def chinese_in(value: Any) -> Iterator[str]:
    """Every Chinese text of a table: a text, or a table of them."""
    if isinstance(value, list):
        for each in value:
            yield from chinese_in(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key == "chinese":
                yield from each.values() if isinstance(each, dict) else [each]
            else:
                yield from chinese_in(each)


@pytest.mark.parametrize("file", FILES)
def test_chinese_is_chinese_and_set_as_such(file: str) -> None:
    texts = list(chinese_in(tomllib.loads(data.text_of(file))))
    assert texts
    assert [text for text in texts if mistakes_in(text) or not re.search("[\u4e00-\u9fff]", text)] == []


def test_nothing_is_read_before_it_is_needed() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_FACTS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
