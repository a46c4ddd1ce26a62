"""Another language for texts that were made elsewhere: the template that fits a text gives its values back.

A page that a benchmark wrote has figures in its sentences: a table of templates translates them, figures and
names included.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from string import Formatter

from parfocal.phrases import has_words

_FIGURE = r"[-+]?\d[\d,.]*(?:e[-+]?\d+)?"
_LISTS = {", ": "、", "; ": "；"}  # how lists are written, the narrower one first


class UntranslatedError(LookupError):
    """No template of the table fits a text."""


class MatchedWords:
    """A table of templates and their translations; the places for values have the same names in both.

    ``{count:d}`` and ``{size:g}`` take a figure only, other places any text. ``values``: what translates the
    values that a template takes out of a text, or each of a list of them; without it they stay as they are.
    """

    def __init__(self, table: Mapping[str, str], values: MatchedWords | None = None) -> None:
        self._table = table
        self._values = values
        self._patterns = {template: _pattern(template) for template in table if "{" in template}

    def translate(self, text: str) -> str:
        """The text in the table's language. What has no words of its own stays as it is."""
        found = self.find(text)
        if found is None and has_words(text.replace("{", "{{").replace("}", "}}")):
            raise UntranslatedError(text)
        return text if found is None else found

    def find(self, text: str) -> str | None:
        """The same, or None where no template fits. Of several that fit the longest is taken."""
        if text in self._table:
            return self._table[text]
        fitting = [
            (len(template), template, match)
            for template, pattern in self._patterns.items()
            if (match := pattern.fullmatch(text))
        ]
        if not fitting:
            return None
        _, template, match = max(fitting, key=lambda each: each[0])
        values = {name: self._value(value) for name, value in match.groupdict().items()}
        return self._table[template].format_map(values)

    def _value(self, value: str) -> str:
        if self._values is None:
            return value
        for separator, mark in _LISTS.items():
            parts = [self._values.find(part) for part in value.split(separator)]
            if all(part is not None for part in parts):
                return mark.join(filter(None, parts))
        return value


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts, seen = [], set()
    for literal, name, form, _ in Formatter().parse(template):
        parts.append(re.escape(literal))
        if name is not None:
            wanted = _FIGURE if form in ("d", "g") else ".+?"
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{wanted})")
            seen.add(name)
    return re.compile("".join(parts), re.DOTALL)
