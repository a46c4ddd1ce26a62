"""How wide text is on a terminal, where a Chinese character takes two columns, and lines broken by that."""

from __future__ import annotations

import re
from textwrap import wrap
from unicodedata import combining, east_asian_width

_CLOSING = "，。；：、）》」？！"  # no line begins with one of these
_OPENING = "（《「"  # no line ends with one of these
# what stays on one line: a word with the marks that belong to it, or one wide character
_PIECE = re.compile(
    rf"\s+|[{_OPENING}]*(?:[^\s\u2e80-\uffef]+|[\u2e80-\uffef])[{_CLOSING}]*|[{_OPENING}{_CLOSING}]+"
)


def width_of(text: str) -> int:
    """The columns that a text takes."""
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def padded(text: str, width: int) -> str:
    """With spaces behind it, up to so many columns."""
    return text + " " * (width - width_of(text))


def wrapped(line: str, width: int, indent: int) -> list[str]:
    """A line in as many as it needs; those after the first begin with ``indent`` spaces."""
    if width_of(line) == len(line):
        return wrap(line, width, subsequent_indent=" " * indent, break_on_hyphens=False) or [""]
    lines: list[str] = []
    current = ""
    for piece in _PIECE.findall(line):
        if width_of(current) + width_of(piece.rstrip()) <= width:
            current += piece
            continue
        if current.strip():
            lines.append(current.rstrip())
        current = " " * indent + piece.lstrip()
        while width_of(current) > width:  # one word that is longer than a line
            kept = _fitting(current, width)
            lines.append(current[:kept])
            current = " " * indent + current[kept:]
    return [*lines, current.rstrip()] if current.strip() or not lines else lines


def breaks(line: str, width: int) -> list[int]:
    """Where a line is broken so that no part takes more columns: between words or wide characters."""
    found: list[int] = []
    start = taken = 0  # of the part that is being filled
    for piece in _PIECE.finditer(line):
        size = width_of(piece[0].rstrip())
        if taken + size > width and piece.start() > start:
            found.append(piece.start())
            start, taken = piece.start(), 0
        while width_of(line[start : piece.end()].rstrip()) > width:  # one word that is longer than a part
            start += _fitting(line[start:], width) or 1
            found.append(start)
        taken = width_of(line[start : piece.end()])
    return found


def _fitting(text: str, width: int) -> int:
    """How many characters of a text fit."""
    taken = 0
    for count, character in enumerate(text):
        taken += width_of(character)
        if taken > width:
            return count
    return len(text)
