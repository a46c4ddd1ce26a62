"""Finds the expression in a user's source that made an op, called a layer or is returned.

A statement is found by its line; the expression in it by the columns that Python 3.11 and later
keep, or else by its name if only one in the statement has it. What is not certain is not found.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from parfocal.explain.fixes.imports import dotted_name, imported, last_word
from parfocal.explain.fixes.scopes import in_scope
from parfocal.explain.fixes.sources import CallSpot, Source, SourceSpot, Span, bounds, read

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


class LoggedOp(Protocol):
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


def find_op(op: LoggedOp) -> SourceSpot | None:
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
    return SourceSpot(source, statement, node, op.native)


def find_layer(file: str | None, line: int | None, path: str) -> SourceSpot | None:
    """The call of a layer by its own name: ``self.norm(x)``, ``self.layers[0](x)``."""
    source = read(file)
    statement = None if source is None or line is None else _statement(source, line, None)
    if source is None or statement is None:
        return None
    parts = path.split(".")
    calls = [node for node in ast.walk(statement) if isinstance(node, ast.Call) and _names(node.func, parts)]
    return SourceSpot(source, statement, calls[0]) if len(calls) == 1 else None


def find_return(file: str | None, line: int) -> SourceSpot | None:
    """What the function that begins at a line returns, if it does so at one place only."""
    source = read(file)
    if source is None:
        return None
    functions = [each for each in source.functions if _begins(each) == line]
    if len(functions) != 1:
        return None
    returns = list(_own_returns(functions[0]))
    if len(returns) != 1 or returns[0].value is None or isinstance(returns[0].value, (ast.Tuple, ast.Dict)):
        return None
    return SourceSpot(source, returns[0], returns[0].value) if source.stands_alone(returns[0]) else None


def find_returned(file: str, line: int) -> SourceSpot | None:
    """What the statement at a line returns."""
    source = read(file)
    statement = None if source is None else _statement(source, line, None)
    if source is None or not isinstance(statement, ast.Return) or statement.value is None:
        return None
    return SourceSpot(source, statement, statement.value)


def find_call(file: str, span: Span | None) -> CallSpot | None:
    """The call that stands at the very columns."""
    source = read(file)
    if source is None or span is None:
        return None
    call = source.calls_at.get(span)
    return None if call is None else CallSpot(source, call)


def find_calling(file: str, span: Span | None) -> SourceSpot | None:
    """The call at the very columns, in a statement that can be written anew."""
    found = find_call(file, span)
    statement = None if found is None or span is None else _statement(found.source, span[0], span)
    return None if found is None or statement is None else SourceSpot(found.source, statement, found.node)


def _statement(source: Source, line: int, span: Span | None) -> ast.stmt | None:
    first, last = (line, line) if span is None else span[:2]
    found = [node for node in source.statements if node.lineno <= first and last <= (node.end_lineno or 0)]
    return found[0] if len(found) == 1 and source.stands_alone(found[0]) else None


def _makes(node: ast.AST, op: LoggedOp, names: dict[str, str]) -> bool:
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
    return (node for node in in_scope(function.body) if isinstance(node, ast.Return))


def registered_at(kind: type[Any], name: str) -> tuple[str | None, int | None]:
    """File and line of ``self.register_buffer("name", ...)`` in a class or one it is made from."""
    for each in kind.__mro__:
        try:
            file = inspect.getsourcefile(each)
            lines, first = inspect.getsourcelines(each)
        except (OSError, TypeError):
            continue  # typed at a prompt, or built in
        source = read(file)
        for _, call in () if source is None else source.calls:
            inside = first <= call.lineno < first + len(lines)
            if inside and _registers(call, name):
                return file, call.lineno
    return None, None


def _registers(call: ast.Call, name: str) -> bool:
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "register_buffer"):
        return False
    said = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "name")]
    return any(isinstance(each, ast.Constant) and each.value == name for each in said)
