"""Finds in a user's source the very expression that made an op, called a layer or is returned.

A statement is found by its line; the expression in it by the columns that Python 3.11 and later
keep, or else by its name if only one in the statement has it. What is not certain is not found.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import FrameType
from typing import Protocol

Span = tuple[int, int, int, int]  # line, end line, column, end column, as the compiler keeps them

SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Common names of ops that have a sign of their own.
BINARY: dict[str, type[ast.operator]] = {
    "add": ast.Add,
    "sub": ast.Sub,
    "rsub": ast.Sub,
    "mul": ast.Mult,
    "div": ast.Div,
    "rdiv": ast.Div,
    "pow": ast.Pow,
    "rpow": ast.Pow,
    "matmul": ast.MatMult,
    "rmatmul": ast.MatMult,
    "remainder": ast.Mod,
    "floor_divide": ast.FloorDiv,
    "logical_and": ast.BitAnd,
    "logical_or": ast.BitOr,
    "logical_xor": ast.BitXor,
}
UNARY: dict[str, type[ast.unaryop]] = {"neg": ast.USub, "logical_not": ast.Invert}
COMPARING: dict[str, type[ast.cmpop]] = {
    "less_than": ast.Lt,
    "less_equal": ast.LtE,
    "greater_than": ast.Gt,
    "greater_equal": ast.GtE,
    "equal": ast.Eq,
    "not_equal": ast.NotEq,
}


class Made(Protocol):
    """An op as a log keeps it."""

    @property
    def name(self) -> str: ...
    @property
    def native(self) -> str: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...
    @property
    def span(self) -> Span | None: ...


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its bytes, because columns count bytes, and its tree."""

    file: str
    lines: tuple[bytes, ...]
    tree: ast.Module

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
class Spot:
    """An expression (or ``x += y``) in a statement of a source."""

    source: Source
    statement: ast.stmt
    node: ast.expr | ast.AugAssign
    native: str = ""


def users_frame(is_users: Callable[[str], bool]) -> FrameType | None:
    """The innermost frame of the user's code."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def span_of(frame: FrameType) -> Span | None:
    """Where the expression stands that a frame is computing; None before Python 3.11."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    first, last, start, end = next(islice(positions(), frame.f_lasti // 2, None))
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


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


def find_op(op: Made) -> Spot | None:
    """The expression that made an op."""
    source = read(op.file)
    statement = None if source is None or op.line is None else _statement(source, op.line, op.span)
    if source is None or statement is None:
        return None
    names = imported(source, statement)
    found = [node for node in ast.walk(statement) if _makes(node, op, names)]
    if op.span is not None:
        found = [node for node in found if _at(node, op.span)] or list(_unnamed(statement, op.span, names))
    if len(found) != 1:
        return None
    (node,) = found
    assert isinstance(node, (ast.expr, ast.AugAssign))
    return Spot(source, statement, node, op.native)


def find_layer(file: str | None, line: int | None, path: str) -> Spot | None:
    """The call of a layer by its own name: ``self.norm(x)``, ``self.layers[0](x)``."""
    source = read(file)
    statement = None if source is None or line is None else _statement(source, line, None)
    if source is None or statement is None:
        return None
    parts = path.split(".")
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _names(node.func, parts)]
    return Spot(source, statement, calls[0]) if len(calls) == 1 else None


def find_return(file: str | None, line: int) -> Spot | None:
    """What the function that begins at a line returns, if it does so at one place only."""
    source = read(file)
    if source is None:
        return None
    functions = [f for f in ast.walk(source.tree) if isinstance(f, FUNCTIONS) and _begins(f) == line]
    if len(functions) != 1:
        return None
    returns = list(_own_returns(functions[0]))
    if len(returns) != 1 or returns[0].value is None or isinstance(returns[0].value, (ast.Tuple, ast.Dict)):
        return None
    return Spot(source, returns[0], returns[0].value) if source.stands_alone(returns[0]) else None


def find_returned(file: str, line: int) -> Spot | None:
    """What the statement at a line returns."""
    source = read(file)
    statement = None if source is None else _statement(source, line, None)
    if source is None or not isinstance(statement, ast.Return) or statement.value is None:
        return None
    return Spot(source, statement, statement.value)


def function_at(file: str, line: int) -> tuple[str, int] | None:
    """File and first line of the innermost function around a line."""
    source = read(file)
    around = [
        node.lineno
        for node in (() if source is None else ast.walk(source.tree))
        if isinstance(node, FUNCTIONS) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return (file, max(around)) if around else None


@dataclass(frozen=True, slots=True)
class CallSpot:
    """A call in a source."""

    source: Source
    node: ast.Call


def find_call(file: str, span: Span | None) -> CallSpot | None:
    """The call that stands at the very columns."""
    source = read(file)
    if source is None or span is None:
        return None
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call) and bounds(node) == span]
    return CallSpot(source, calls[0]) if calls else None


def functions_of(source: Source) -> set[str]:
    """Names of the functions that a file has for its own."""
    imported_names = (
        alias for node in source.tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    return {
        *(node.name for node in source.tree.body if isinstance(node, FUNCTIONS)),
        *(alias.asname or alias.name for alias in imported_names),
    }


def bounds(node: ast.AST) -> Span:
    """First and last line, first and last column."""
    assert isinstance(node, (ast.expr, ast.stmt))
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    return node.lineno, node.end_lineno, node.col_offset, node.end_col_offset


def has_self(spot: Spot) -> bool:
    """Whether the code around is that of a method."""
    return any(f.args.args and f.args.args[0].arg == "self" for f in _around(spot))


def class_around(spot: Spot) -> str | None:
    """The innermost class whose method the code is."""
    classes = [
        c for c in ast.walk(spot.source.tree) if isinstance(c, ast.ClassDef) and _encloses(c, spot.statement)
    ]
    return max(classes, key=lambda c: c.lineno).name if classes else None


def first_line(spot: Spot) -> int:
    """Where the innermost function around begins."""
    return max((function.lineno for function in _around(spot)), default=1)


def stored_between(spot: Spot, line: int, end: int | None = None) -> set[str]:
    """Names that get another value from a line on, before the statement (or another line)."""
    lines = range(line, spot.statement.lineno if end is None else end)
    stores = (
        n for n in ast.walk(spot.source.tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    )
    return {node.id for node in stores if node.lineno in lines}


def statements_before(spot: Spot, count: int) -> tuple[ast.stmt, ...]:
    """The statements right before, in the same block; only whole ones that store a name or nothing."""
    for node in ast.walk(spot.source.tree):
        for block in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and spot.statement in block:
                index = block.index(spot.statement)
                found = block[max(0, index - count) : index]
                plain = all(isinstance(each, SIMPLE) and _stores_names(each) for each in found)
                return tuple(found) if plain and len(found) == count else ()
    return ()


def _stores_names(statement: ast.stmt) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    plain = isinstance(statement, ast.Assign) and all(isinstance(each, ast.Name) for each in targets)
    return plain or isinstance(statement, ast.Expr)


def names_in(text: str) -> set[str]:
    """The names that an expression reads."""
    return {node.id for node in ast.walk(ast.parse(f"({text})")) if isinstance(node, ast.Name)}


def assigned_name(spot: Spot) -> str | None:
    """The name that gets what an expression gives: of ``y = f(x)`` the ``y``."""
    match spot.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is spot.node:
            return name
    return None


def _around(spot: Spot) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        f for f in ast.walk(spot.source.tree) if isinstance(f, FUNCTIONS) and _encloses(f, spot.statement)
    ]


def imported(source: Source, statement: ast.stmt) -> dict[str, str]:
    """Names that imports give at a statement -> what they stand for, in full."""
    found: dict[str, str] = {}
    around = [f for f in ast.walk(source.tree) if isinstance(f, FUNCTIONS) and _encloses(f, statement)]
    for scope in (source.tree, *around):
        for node in _in_scope(scope.body):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    found[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def spelled(source: Source, statement: ast.stmt, dotted: str) -> str | None:
    """A function's full name in the words that the file's imports allow there, the shortest of them."""
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


def _statement(source: Source, line: int, span: Span | None) -> ast.stmt | None:
    first, last = (line, line) if span is None else span[:2]
    found = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, SIMPLE) and node.lineno <= first and last <= (node.end_lineno or 0)
    ]
    return found[0] if len(found) == 1 and source.stands_alone(found[0]) else None


def _makes(node: ast.AST, op: Made, names: dict[str, str]) -> bool:
    """Whether an expression is spelled like the op."""
    word = op.native.rpartition(".")[2]
    match node:
        case ast.BinOp() | ast.AugAssign():
            return type(node.op) is BINARY.get(op.name)
        case ast.UnaryOp():
            return type(node.op) is UNARY.get(op.name)
        case ast.Compare():
            return len(node.ops) == 1 and type(node.ops[0]) is COMPARING.get(op.name)
        case ast.Subscript():
            return op.name == "getitem" and isinstance(node.ctx, ast.Load)
        case ast.Attribute():
            return node.attr == word and word in ("T", "mT")
        case ast.Call():
            return last_word(node.func, names) in {word, word.rstrip("_"), op.name}
    return False


def last_word(function: ast.expr, names: dict[str, str]) -> str | None:
    """The last word of what is called, also when it was imported under another name."""
    whole = dotted_name(function, names)
    if whole is not None:
        return whole.rpartition(".")[2]
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else None


def _at(node: ast.AST, span: Span) -> bool:
    """Whether a node ends where the span ends; a chain of methods begins before its own name."""
    first, last, start, end = bounds(node)
    return (last, end) == (span[1], span[3]) and (first, start) <= (span[0], span[2])


def _unnamed(statement: ast.stmt, span: Span, names: dict[str, str]) -> Iterator[ast.Call]:
    """A call at the very columns whose function has a name of the user's own: ``self.act(x)``."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Call) and bounds(node) == span and dotted_name(node.func, names) is None:
            yield node


def _names(function: ast.expr, path: Sequence[str]) -> bool:
    """Whether an expression reads like a module's path: its name, or its list and a number."""
    match function:
        case ast.Attribute(attr=name):
            return name == path[-1]
        case ast.Subscript(value=ast.Attribute(attr=name), slice=ast.Constant(value=int(index))):
            return [name, str(index)] == list(path[-2:])
    return False


def _begins(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The line that ``co_firstlineno`` has: that of the first decorator, if there is one."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _own_returns(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Return]:
    return (node for node in _in_scope(function.body) if isinstance(node, ast.Return))


def _in_scope(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements at any depth, but not those of functions and classes inside."""
    for statement in body:
        yield statement
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            yield from _in_scope([n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.stmt)])


def _encloses(function: ast.stmt, statement: ast.stmt) -> bool:
    return function.lineno <= statement.lineno and (function.end_lineno or 0) >= (statement.end_lineno or 0)
