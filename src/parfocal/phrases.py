"""Sentences that can be read in another language: a string that knows how it was made.

``phrase("{name} is {value}", name=..., value=...)`` is the English sentence, and keeps the template and the
values beside it. ``translate`` looks the template up in the catalogue of ``parfocal.locale`` and puts the
values, translated likewise, into what it finds there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from string import Formatter
from typing import Any, SupportsIndex

from parfocal.locale import ENGLISH, LANGUAGES, catalogue

VARIABLE = "PARFOCAL_LANG"
_LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set decides
_PART = "part"  # the values of phrases that were put in a row: part1, part2, ...
# Punctuation as it is set between words of Chinese. Lists have a comma of their own.
_FULL_WIDTH = {", ": "，", "; ": "；", ": ": "：", " (": "（", ")": "）"}
_LISTS = {**_FULL_WIDTH, ", ": "、"}
_WIDE = re.compile("[\u2e80-\u9fff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef]")
_IDEOGRAPH = re.compile("[\u4e00-\u9fff]")
_SIGNED = re.compile("[-+][0-9]")


class Phrase(str):
    """An English sentence, with the template and the values it was made from."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, str]

    def __new__(cls, template: str, values: Mapping[str, str]) -> Phrase:
        made = super().__new__(cls, template.format_map(values))
        made.template = template
        made.values = values
        return made

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        return Phrase, (self.template, dict(self.values))

    def __add__(self, other: str) -> str:
        return joined("", (self, other))

    def __radd__(self, other: str) -> str:
        return joined("", (other, self))


def phrase(template: str, /, **values: object) -> str:
    """The sentence that a template and its values make. Numbers are put in as ``str`` writes them."""
    return Phrase(template, {name: _as_text(each) for name, each in values.items()})


def _as_text(value: object) -> str:
    """The text of a value. That of an exception made from a phrase stays one, and is translated as well."""
    if isinstance(value, BaseException) and len(value.args) == 1 and isinstance(value.args[0], Phrase):
        return value.args[0]
    return value if isinstance(value, str) else str(value)


def joined(separator: str, parts: Iterable[str]) -> str:
    """Phrases in a row: what ``separator.join(parts)`` gives, and can still be translated."""
    present = list(parts)
    if len(present) == 1 or not separator:
        present = [part for part in present if part] or present[:1]
    if len(present) < 2:
        return present[0] if present else ""
    names = [f"{_PART}{number}" for number in range(1, len(present) + 1)]
    return Phrase(separator.join(f"{{{name}}}" for name in names), dict(zip(names, present, strict=True)))


def remade(text: str, exchange: Callable[[str], str]) -> str:
    """The same sentence with other values: ``exchange`` gives what is to stand for each of its parts."""
    new = exchange(text)
    if new is not text or not isinstance(text, Phrase):
        return new
    return Phrase(text.template, {name: remade(value, exchange) for name, value in text.values.items()})


def is_made_with(sentence: str, part: str) -> bool:
    """Whether a part is one of the values that a sentence was made with, at any depth, or all of it."""
    values = sentence.values.values() if isinstance(sentence, Phrase) else ()
    return sentence == part or any(is_made_with(value, part) for value in values)


def current_language() -> str:
    """``zh`` or ``en``: what PARFOCAL_LANG says, or else the locale of the terminal."""
    wanted = next((os.environ[name] for name in (VARIABLE, *_LOCALE) if os.environ.get(name)), ENGLISH)
    return next((each for each in LANGUAGES if wanted.lower().startswith(each)), ENGLISH)


def translate(text: str, language: str) -> str:
    """The text in a language, as far as its catalogue goes; what is no phrase stays as it is."""
    if not isinstance(text, Phrase):
        return text
    if language == ENGLISH:
        return str.__str__(text)
    template = _translated(text.template, language)
    if template is None:
        return str.__str__(text)
    made = ""
    for literal, name, _, _ in Formatter().parse(template):
        made = _beside(made, literal)
        if name is not None:
            made = _beside(made, translate(text.values[name], language))
    return made


def said(text: str) -> str:
    """A phrase in the language of the terminal."""
    return translate(text, current_language())


def _beside(left: str, right: str) -> str:
    """Two parts of a sentence: a space between Chinese and Latin characters, none between Chinese ones."""
    if not left or not right:
        return left + right
    if left[-1] == " " and left[-2:] != "  " and _WIDE.match(left[-2:-1]) and _WIDE.match(right):
        return left[:-1] + right
    if right[0] == " " and right[:2] != "  " and _WIDE.match(left[-1]) and _WIDE.match(right[1:2]):
        return left + right[1:]
    sides = left[-1], right[1] if _SIGNED.match(right) else right[0]
    if any(_IDEOGRAPH.match(each) for each in sides) and any(
        each.isascii() and each.isalnum() for each in sides
    ):
        return f"{left} {right}"
    return left + right


def _translated(template: str, language: str) -> str | None:
    """A template in a language. One without a word of its own has only its punctuation changed."""
    known = catalogue(language)
    if template in known:
        return known[template]
    parts = list(Formatter().parse(template))
    listed = all(name is None or name.startswith(_PART) for _, name, _, _ in parts)
    marks = _LISTS if listed else _FULL_WIDTH
    made = []
    for literal, name, _, _ in parts:
        found = known.get(literal) if listed else None
        if found is None and has_words(literal):
            return None
        made.append(_escaped(_set(literal, marks) if found is None else found))
        made.append("" if name is None else f"{{{name}}}")
    return "".join(made)


def _set(literal: str, marks: Mapping[str, str]) -> str:
    for mark, wide in marks.items():
        literal = literal.replace(mark, wide)
    return literal


def _escaped(literal: str) -> str:
    return literal.replace("{", "{{").replace("}", "}}")


def has_words(template: str) -> bool:
    """Whether a template says something besides its values, so that it needs a translation."""
    return any(character.isalpha() for literal, *_ in Formatter().parse(template) for character in literal)


def phrase_table(value: object) -> dict[str, Any]:
    """Every phrase within plain data, by its English sentence, as plain data itself."""
    if isinstance(value, Phrase):
        return {str.__str__(value): _as_plain(value)}
    parts: Iterable[object] = ()
    if isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, (list, tuple)):
        parts = value
    return {sentence: plain for part in parts for sentence, plain in phrase_table(part).items()}


def phrases_of(table: Mapping[str, Any]) -> dict[str, Phrase]:
    """The phrases that ``phrase_table`` wrote down, by their English sentences; ValueError for others."""
    found = {}
    for sentence, plain in table.items():
        made = _from_plain(plain)
        if not isinstance(made, Phrase) or made != sentence:
            raise ValueError(f"{sentence!r} is not what its template and its values make")
        found[sentence] = made
    return found


def _as_plain(value: str) -> Any:
    if not isinstance(value, Phrase):
        return value
    return {
        "template": value.template,
        "values": {name: _as_plain(part) for name, part in value.values.items()},
    }


def _from_plain(plain: Any) -> str:
    if isinstance(plain, str):
        return plain
    template = plain.get("template") if isinstance(plain, Mapping) else None
    values = plain.get("values") if isinstance(plain, Mapping) else None
    if not isinstance(template, str) or not isinstance(values, Mapping):
        raise ValueError(f"{plain!r} has no template and values")
    for _, name, form, conversion in Formatter().parse(template):
        if name is not None and (name not in values or not name.isidentifier() or form or conversion):
            raise ValueError(f"the values of {template!r} are {sorted(values)}")
    return Phrase(template, {name: _from_plain(part) for name, part in values.items()})
