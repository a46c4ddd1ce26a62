"""A statement of the port's source with the texts of a few of its nodes exchanged.

All other text stays as the user spelled it; the result is parsed again and must be exactly the tree
that was meant.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from parfocal.explain.fixes.sources import Source, SourceSpot, bounds

Change = tuple[SourceSpot, Mapping[ast.expr, str]]  # the texts that some nodes are to have
ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict)


@dataclass(frozen=True, slots=True)
class Patch:
    """A statement as it is, and as it should be, on one line; ``also``: others to change with it.

    ``others``: lines to write instead, in case it is not right.
    """

    file: str
    line: int
    old: str
    new: str
    also: tuple[Patch, ...] = ()
    change: Change | None = field(default=None, compare=False, repr=False)  # that it came from
    others: tuple[Patch, ...] = field(default=(), compare=False, repr=False)

    @property
    def place(self) -> str:
        return f"{os.path.basename(self.file)}:{self.line}"

    @property
    def text(self) -> str:
        """Lines of code with the places where they belong, the decisive one first."""
        own = f"{self.new}  # {self.place}"
        return "\n".join((own, *(each.text for each in self.also)))


def changing(spot: SourceSpot, changes: Mapping[ast.expr, str]) -> Patch | None:
    """The statement with the texts of some nodes exchanged; None when nothing changes by it."""
    meant = {node: _meant(node, text) for node, text in changes.items()}
    expected = _rebuilt(spot.statement, meant)
    if ast.dump(expected) == ast.dump(spot.statement):
        return None
    grouped = {node: in_parentheses(text) for node, text in changes.items()}
    for texts in (changes, grouped):
        for widened in (True, False):
            new = _spliced(spot, texts, widened=widened)
            if "\n" not in new and _is(new, expected):
                return replace(whole(spot, new), change=(spot, changes))
    text = ast.unparse(ast.fix_missing_locations(expected))
    return replace(whole(spot, text), change=(spot, changes))


def _meant(node: ast.expr, text: str) -> ast.expr:
    """The tree of a text that replaces a node, as a value to read or as a target to assign to."""
    body = ast.parse(f"({text})", mode="eval").body
    context = getattr(node, "ctx", None)
    if context is not None and isinstance(body, (ast.Name, ast.Attribute, ast.Subscript)):
        body.ctx = context
    return body


def whole(spot: SourceSpot, new: str) -> Patch:
    return Patch(spot.source.file, spot.statement.lineno, spot.source.segment(spot.statement), new)


def without_statements(patch: Patch, source: Source, statements: Sequence[ast.stmt]) -> Patch:
    """The same patch, which also removes some statements before it."""
    gone = [Patch(source.file, each.lineno, source.segment(each), "pass") for each in statements]
    return replace(patch, also=tuple(gone))


def keyword_text(source: Source, keyword: ast.keyword) -> str:
    value = source.segment(keyword.value)
    return f"**{value}" if keyword.arg is None else f"{keyword.arg}={value}"


def in_parentheses(text: str) -> str:
    """The text of an expression, in parentheses if it is not one word or call."""
    return text if isinstance(ast.parse(f"({text})", mode="eval").body, ATOMS) else f"({text})"


def _is(text: str, expected: ast.AST) -> bool:
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return ast.dump(statement) == ast.dump(expected)


def _spliced(spot: SourceSpot, changes: Mapping[ast.expr, str], *, widened: bool) -> str:
    """The statement's text with the texts of its nodes exchanged, from the last to the first.

    ``widened``: together with parentheses right around them, which may be those of a call.
    """
    lines = spot.source.lines
    first, last, start, end = bounds(spot.statement)
    text = b"".join((*lines[first - 1 : last - 1], lines[last - 1][:end]))

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[first - 1 : line - 1])) + column

    for node in sorted(changes, key=lambda each: bounds(each)[::2], reverse=True):
        from_line, to_line, from_column, to_column = bounds(node)
        before, after = text[: offset(from_line, from_column)], text[offset(to_line, to_column) :]
        while widened and before.endswith(b"(") and after.startswith(b")"):
            before, after = before[:-1], after[1:]
        text = before + changes[node].encode() + after
    return text[start:].decode()


def _rebuilt(node: Any, meant: Mapping[ast.expr, ast.expr]) -> Any:
    """A copy of a tree with some of its nodes exchanged."""
    if isinstance(node, ast.AST):
        if isinstance(node, ast.expr) and node in meant:
            return meant[node]
        return type(node)(**dict(_fields(node, meant)))
    return [_rebuilt(item, meant) for item in node] if isinstance(node, list) else node


def _fields(node: ast.AST, meant: Mapping[ast.expr, ast.expr]) -> Iterator[tuple[str, Any]]:
    for name, value in ast.iter_fields(node):
        yield name, _rebuilt(value, meant)
