"""What the names that a file imports stand for, and how a full name is written with them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from parfocal.explain.fixes.scopes import encloses, in_scope
from parfocal.explain.fixes.sources import Source


def imported(source: Source, statement: ast.stmt) -> dict[str, str]:
    """Names that imports give at a statement -> what they stand for, in full."""
    found: dict[str, str] = {}
    for scope, names in _imports(source):
        if scope is None or encloses(scope, statement):
            found |= names
    return found


@lru_cache(maxsize=32)
def _imports(source: Source) -> tuple[tuple[ast.stmt | None, dict[str, str]], ...]:
    """What the imports of the file (None) and of every function that has some stand for."""
    scopes = [(None, source.tree.body), *((function, function.body) for function in source.functions)]
    found = ((scope, _given_by(in_scope(body))) for scope, body in scopes)
    return tuple((scope, names) for scope, names in found if names)


def _given_by(statements: Iterable[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                found[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def spelled(source: Source, statement: ast.stmt, dotted: str) -> str | None:
    """The shortest spelling of a function's full name that the file's imports allow at a statement."""
    found = [
        name + dotted[len(whole) :]
        for name, whole in imported(source, statement).items()
        if dotted == whole or dotted.startswith(f"{whole}.")
    ]
    return min(found, key=lambda text: (text.count("."), len(text)), default=None)


def dotted_name(node: ast.AST, names: dict[str, str]) -> str | None:
    """``F.relu`` as ``torch.nn.functional.relu``; None for what no import gives."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return ".".join((names[node.id], *reversed(parts)))


def last_word(function: ast.expr, names: dict[str, str]) -> str | None:
    """The last word of what is called, also when it was imported under another name."""
    whole = dotted_name(function, names)
    if whole is not None:
        return whole.rpartition(".")[2]
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None
