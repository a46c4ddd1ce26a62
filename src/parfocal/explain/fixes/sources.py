"""A user's source file: its text, its tree, and where an expression stands in it."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from functools import cached_property, lru_cache

Span = tuple[int, int, int, int]  # line, end line, column, end column, as the compiler keeps them
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, eq=False)
class Source:
    """One file: its bytes, because columns count bytes, and its tree."""

    file: str
    lines: tuple[bytes, ...]
    tree: ast.Module

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree, the outer ones first."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef | ast.AsyncFunctionDef, ...]:
        """Every function of the file, also those inside others."""
        return tuple(node for node in self.nodes if isinstance(node, FUNCTIONS))

    @cached_property
    def statements(self) -> tuple[ast.stmt, ...]:
        """Every statement that has no others inside, of those that can be written anew."""
        return tuple(node for node in self.nodes if isinstance(node, SIMPLE))

    @cached_property
    def blocks(self) -> dict[ast.stmt, list[ast.stmt]]:
        """Every statement with all those of the block it stands in."""
        found = (getattr(node, name, None) for node in self.nodes for name in ("body", "orelse", "finalbody"))
        return {statement: block for block in found if isinstance(block, list) for statement in block}

    @cached_property
    def calls_at(self) -> dict[Span, ast.Call]:
        """Every call by where it stands."""
        calls = (node for node in self.nodes if isinstance(node, ast.Call))
        return {bounds(node): node for node in calls}

    @cached_property
    def stores(self) -> tuple[tuple[str, int], ...]:
        """Every name that gets a value, with the line where it does."""
        names = (node for node in self.nodes if isinstance(node, ast.Name))
        return tuple((node.id, node.lineno) for node in names if isinstance(node.ctx, ast.Store))

    @cached_property
    def calls(self) -> tuple[tuple[ast.stmt, ast.Call], ...]:
        """Every call of the file, with the statement it stands in."""
        return tuple(
            (each, node) for each in self.statements for node in ast.walk(each) if isinstance(node, ast.Call)
        )

    def segment(self, node: ast.AST) -> str:
        """The text of a node as the user wrote it."""
        first, last, start, end = bounds(node)
        if first == last:
            return self.lines[first - 1][start:end].decode()
        middle = self.lines[first : last - 1]
        return b"".join((self.lines[first - 1][start:], *middle, self.lines[last - 1][:end])).decode()

    def stands_alone(self, statement: ast.stmt) -> bool:
        """Whether nothing but comments shares the statement's lines."""
        first, last, start, end = bounds(statement)
        before, after = self.lines[first - 1][:start], self.lines[last - 1][end:].strip()
        return not before.strip() and (not after or after.startswith(b"#"))


@dataclass(frozen=True, slots=True)
class SourceSpot:
    """An expression (or ``x += y``) in a statement of a source."""

    source: Source
    statement: ast.stmt
    node: ast.expr | ast.AugAssign
    native: str = ""


@dataclass(frozen=True, slots=True)
class CallSpot:
    """A call in a source."""

    source: Source
    node: ast.Call


def read(file: str | None) -> Source | None:
    """The source of a file as it is now; None when there is none, as for code typed at a prompt."""
    if file is None:
        return None
    linecache.checkcache(file)
    lines = tuple(linecache.getlines(file))
    return _parsed(file, lines) if lines else None


@lru_cache(maxsize=32)
def _parsed(file: str, lines: tuple[str, ...]) -> Source | None:
    try:
        tree = ast.parse("".join(lines))
    except SyntaxError:
        return None
    return Source(file, tuple(line.encode() for line in lines), tree)


def bounds(node: ast.AST) -> Span:
    """First and last line, first and last column."""
    assert isinstance(node, (ast.expr, ast.stmt))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset
