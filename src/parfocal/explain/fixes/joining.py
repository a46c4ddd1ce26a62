"""Several lines that mend only together, as one fix; and the parts of a fix, each by itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from parfocal.explain.fixes.fixing import FixLine
from parfocal.explain.fixes.splicing import Patch, changing


class SeveralFixes(str):
    """Fixes in different places that are no patch together, one below the other."""

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    @classmethod
    def of(cls, parts: Sequence[str]) -> SeveralFixes:
        fix = cls("\n".join(parts))
        fix.parts = tuple(parts)
        return fix


def parts_of(fix: str) -> Iterator[str]:
    """Lines for the source, lines that change the port from outside, and words, each by itself."""
    if isinstance(fix, SeveralFixes):
        yield from (inner for part in fix.parts for inner in parts_of(part))
    elif isinstance(fix, FixLine) and fix.besides is not None:
        yield from (FixLine.of(fix.patch, fix.others), fix.besides)
    else:
        yield fix


def joined(fixes: Sequence[str]) -> FixLine | None:
    """All fixes as one; None where one is no line of source, or two change one expression differently."""
    by_statement: dict[tuple[str, int], list[FixLine]] = {}
    for fix in fixes:
        if not isinstance(fix, FixLine) or fix.patch.also:
            return None
        by_statement.setdefault((fix.patch.file, fix.patch.line), []).append(fix)
    found = [_of_one_statement(lines) for lines in by_statement.values()]
    lines = [line for line in found if line is not None]
    if len(lines) != len(found):
        return None
    first, *others = lines
    also = tuple(other.patch for other in others)
    return FixLine.of(replace(first.patch, also=also), [replace(each, also=also) for each in first.others])


def _of_one_statement(lines: Sequence[FixLine]) -> FixLine | None:
    """A line that all of them offer, or else one line with all their changes."""
    offered = [(line.patch, *line.others) for line in lines]
    common = [patch for patch in offered[0] if all(patch in others for others in offered[1:])]
    merged = _merged([line.patch for line in lines])
    options = [*common, *([] if merged is None else [merged])]
    return FixLine.of(options[0], options[1:]) if options else None


def _merged(patches: Sequence[Patch]) -> Patch | None:
    changes: dict[ast.expr, str] = {}
    for patch in patches:
        if patch.change is None:
            return None
        spot, exchanged = patch.change
        for node, text in exchanged.items():
            if changes.setdefault(node, text) != text:
                return None
    nested = any(
        inner in changes and inner is not node
        for node in changes
        for inner in ast.walk(node)
        if isinstance(inner, ast.expr)
    )
    return None if nested else changing(spot, changes)
