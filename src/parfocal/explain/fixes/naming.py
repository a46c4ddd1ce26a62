"""Writes a value that changes from run to run of a line: by the names that the code has for it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from parfocal.explain.fixes.literals import agrees, written
from parfocal.explain.fixes.splicing import Patch, in_parentheses
from parfocal.judge import limits

MOST = limits.searches.NAMED_VALUES.value
MOST_LINES = limits.searches.NAMED_LINES.value
# Of a number with a name, and how it is written.
FORMS = (
    (lambda n: n + 1, "{} + 1"),
    (lambda n: n - 1, "{} - 1"),
    (lambda n: 1 / n, "1 / {}"),
    (lambda n: n**-0.5, "{} ** -0.5"),
    (lambda n: n**0.5, "{} ** 0.5"),
    (lambda n: 1 / (n + 1), "1 / ({} + 1)"),
    (lambda n: -n, "-{}"),
    (lambda n: 2 * n, "2 * {}"),
    (lambda n: n / 2, "{} / 2"),
    (lambda n: 2**n, "2 ** {}"),
    (lambda n: 2**-n, "2 ** -{}"),
)


def named(value: Any, names: Mapping[str, Any]) -> list[str]:
    """Expressions of names with a given value, the simplest first; a boolean is no number here."""
    return [] if isinstance(value, bool) else list(islice(_written(value, names), MOST))


def by_names(patch: Patch, names: Mapping[str, Any]) -> Iterator[Patch]:
    """The same line, with a name in place of the number that the patch brings in."""
    before = [node.value for node in _numbers(patch.old)]
    found = _numbers(patch.new)
    for value in dict.fromkeys(node.value for node in found if node.value not in before):
        for word in islice(named(value, names), MOST_LINES):
            text = patch.new.encode()  # columns count bytes
            for node in reversed(found):
                if node.value == value and node.end_col_offset is not None:
                    begin, end = text[: node.col_offset], text[node.end_col_offset :]
                    text = begin + in_parentheses(word).encode() + end
            yield replace(patch, new=text.decode(), change=None)


def _numbers(text: str) -> list[ast.Constant]:
    """In the order in which they stand."""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    numbers = (node for node in nodes if type(node.value) in (int, float))
    return sorted(numbers, key=lambda node: (node.lineno, node.col_offset))


def _written(value: Any, names: Mapping[str, Any]) -> Iterator[str]:
    for name, known in names.items():
        if not isinstance(known, dict) and agrees(known, value):
            yield name
    for name, known in names.items():
        if isinstance(known, dict):
            yield from (f"{name}[{written(key)}]" for key, item in known.items() if agrees(item, value))
        elif isinstance(known, (list, tuple)):
            indices = ((word, index) for word, index in names.items() if isinstance(index, int))
            yield from (
                f"{name}[{word}]"
                for word, index in indices
                if 0 <= index < len(known) and agrees(known[index], value)
            )
    if not isinstance(value, (int, float)):
        return
    for form, text in FORMS:
        for name, known in names.items():
            if isinstance(known, (int, float)) and 0 <= known <= 1e6 and _gives(form, known, value):
                yield text.format(name)


def _gives(form: Any, known: float, value: float) -> bool:
    try:
        given = form(known)
    except ArithmeticError:
        return False
    return agrees(given, value) and (type(given) is type(value) or isinstance(value, float))
