"""Several lines that mend only together, as one fix; and the parts of a fix, each by itself."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from parfocal.explain.fixes.splicing import Patch, changing
from parfocal.judge.verdict import Fix, fix_text


@dataclass(frozen=True, slots=True)
class SeveralFixes:
    """Fixes in different places that are no patch together, one below the other."""

    parts: tuple[Fix, ...]

    @property
    def text(self) -> str:
        return "\n".join(map(fix_text, self.parts))


def parts_of(fix: Fix) -> tuple[Fix, ...]:
    """Lines for the source, lines that change the port from outside, and words, each by itself."""
    return fix.parts if isinstance(fix, SeveralFixes) else (fix,)


def joined(fixes: Sequence[Fix]) -> Patch | None:
    """All fixes as one; None where one is no line of source, or two change one expression differently."""
    by_statement: dict[tuple[str, int], list[Patch]] = {}
    for fix in fixes:
        if not isinstance(fix, Patch) or fix.also:
            return None
        by_statement.setdefault((fix.file, fix.line), []).append(fix)
    found = [_of_one_statement(lines) for lines in by_statement.values()]
    lines = [line for line in found if line is not None]
    if len(lines) != len(found):
        return None
    first, *others = lines
    also = tuple(others)
    return replace(first, also=also, others=tuple(replace(each, also=also) for each in first.others))


def _of_one_statement(lines: Sequence[Patch]) -> Patch | None:
    """A line that all of them offer, or else one line with all their changes."""
    offered = [(line, *line.others) for line in lines]
    common = [patch for patch in offered[0] if all(patch in others for others in offered[1:])]
    merged = _merged(lines)
    options = [*common, *([] if merged is None else [merged])]
    return replace(options[0], others=tuple(options[1:])) if options else None


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
