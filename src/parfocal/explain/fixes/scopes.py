"""The scope of a statement in a source: its function and class, and the names that it can use."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from parfocal.explain.fixes.sources import FUNCTIONS, SIMPLE, Source, SourceSpot, read

LOOPS = (ast.For, ast.AsyncFor, ast.While)


def function_at(file: str, line: int) -> tuple[str, int] | None:
    """File and first line of the innermost function around a line."""
    source = read(file)
    functions = () if source is None else source.functions
    around = [each.lineno for each in functions if each.lineno <= line <= (each.end_lineno or 0)]
    return (file, max(around)) if around else None


def has_self(spot: SourceSpot) -> bool:
    """Whether the code around is that of a method."""
    return any(f.args.args and f.args.args[0].arg == "self" for f in functions_around(spot))


def is_in_method(file: str, line: int) -> bool:
    """Whether the code at a line can say ``self``."""
    source = read(file)
    functions = () if source is None else source.functions
    around = (each for each in functions if each.lineno <= line <= (each.end_lineno or 0))
    return any(each.args.args and each.args.args[0].arg == "self" for each in around)


def class_around(spot: SourceSpot) -> str | None:
    """The innermost class whose method the code is."""
    classes = [c for c in spot.source.nodes if isinstance(c, ast.ClassDef) and encloses(c, spot.statement)]
    return max(classes, key=lambda c: c.lineno).name if classes else None


def first_line(spot: SourceSpot) -> int:
    """Where the innermost function around begins."""
    return max((function.lineno for function in functions_around(spot)), default=1)


def stored_between(spot: SourceSpot, line: int, end: int | None = None) -> set[str]:
    """Names that are assigned between a line and the statement (or another line)."""
    lines = range(line, spot.statement.lineno if end is None else end)
    return {name for name, stored in spot.source.stores if stored in lines}


def statements_before(spot: SourceSpot, count: int) -> tuple[ast.stmt, ...]:
    """The statements right before, in the same block; only whole ones that store a name or nothing."""
    block = spot.source.blocks.get(spot.statement, [])
    index = block.index(spot.statement) if block else 0
    found = block[max(0, index - count) : index]
    plain = all(isinstance(each, SIMPLE) and _stores_names(each) for each in found)
    return tuple(found) if plain and len(found) == count else ()


def _stores_names(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    plain = isinstance(statement, ast.Assign) and all(isinstance(each, ast.Name) for each in targets)
    return plain or isinstance(statement, ast.Expr)


@lru_cache(maxsize=1024)  # the same few expressions are looked at from every place
def names_in(text: str) -> frozenset[str]:
    """The names that an expression reads."""
    return frozenset(node.id for node in ast.walk(ast.parse(f"({text})")) if isinstance(node, ast.Name))


def assigned_name(spot: SourceSpot) -> str | None:
    """The name that an expression is assigned to: ``y`` in ``y = f(x)``."""
    match spot.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is spot.node:
            return name
    return None


def assigned_in_loop(spot: SourceSpot, name: str) -> ast.Assign | None:
    """The one statement that gives a name its value again and again, in the function around."""
    function = max(functions_around(spot), key=lambda each: each.lineno, default=None)
    loops = [] if function is None else [node for node in ast.walk(function) if isinstance(node, LOOPS)]
    found = {
        node: None
        for loop in loops
        for node in ast.walk(loop)
        if isinstance(node, ast.Assign)
        and [each.id for each in node.targets if isinstance(each, ast.Name)] == [name]
    }
    return next(iter(found)) if len(found) == 1 else None


def functions_of(source: Source) -> set[str]:
    """Names of the functions that a file has for its own."""
    imported_names = (
        alias for node in source.tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    return {
        *(node.name for node in source.tree.body if isinstance(node, FUNCTIONS)),
        *(alias.asname or alias.name for alias in imported_names),
    }


def functions_around(spot: SourceSpot) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [function for function in spot.source.functions if encloses(function, spot.statement)]


def in_scope(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at any depth, but not those of functions and classes inside."""
    for statement in body:
        yield statement
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            yield from in_scope([n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.stmt)])


def encloses(function: ast.stmt, statement: ast.stmt) -> bool:
    return function.lineno <= statement.lineno and (function.end_lineno or 0) >= (statement.end_lineno or 0)
