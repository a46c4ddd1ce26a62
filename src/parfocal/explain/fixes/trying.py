"""The port's code with a patch in it, for as long as a trial takes.

The patched source is compiled and its functions' code takes the place of the running one, in every
class of the port's modules and in the files' own functions; nothing of it stays.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FunctionType
from typing import Any

from parfocal.explain.fixes.scopes import encloses
from parfocal.explain.fixes.sources import Source, bounds, read
from parfocal.explain.fixes.splicing import Patch


@contextmanager
def patched(modules: Iterable[Any], patch: Patch) -> Iterator[list[FunctionType]]:
    """Runs the functions that contain the patch as patched, for a while; yields them (none: not possible)."""
    source = read(patch.file)
    compiled = None if source is None else _compiled(patch, source)
    functions = [] if compiled is None else list(_functions(modules, patch.file))
    exchanged: list[tuple[FunctionType, CodeType]] = []
    try:
        for function in functions:
            old = function.__code__
            new = None if compiled is None else compiled.get((old.co_name, old.co_firstlineno))
            if new is not None and new.co_freevars == old.co_freevars:
                exchanged.append((function, old))
                function.__code__ = new
        yield [function for function, _ in exchanged]
    finally:
        for function, old in exchanged:
            function.__code__ = old


@lru_cache(maxsize=32)  # a patch is tried on one call after another
def _compiled(patch: Patch, source: Source) -> dict[tuple[str, int], CodeType] | None:
    """The code of the outermost function around the patch, by its name and first line."""
    changes = [(_statement(source, each), each.new) for each in (patch, *patch.also)]
    statements = {statement: new for statement, new in changes if statement is not None}
    begin = _outermost(source, next(iter(statements))) if len(statements) == len(changes) else None
    if begin is None:
        return None
    try:
        whole = compile(_text(source, statements), patch.file, "exec", dont_inherit=True)
    except SyntaxError:
        return None
    found = [code for code in _codes(whole) if code.co_firstlineno == begin[1] and code.co_name == begin[0]]
    return {begin: found[0]} if len(found) == 1 else None


def _statement(source: Source, patch: Patch) -> ast.stmt | None:
    found = [
        node for node in source.statements if node.lineno == patch.line and source.segment(node) == patch.old
    ]
    return found[0] if len(found) == 1 else None


def _text(source: Source, changes: Mapping[ast.stmt, str]) -> str:
    """As many lines as before, so that functions begin where they did; empty ones outside of the patched.

    Of a file only what is changed need be compiled, as its ``from __future__`` says.
    """
    kept = [
        node
        for node in source.tree.body
        if (isinstance(node, ast.ImportFrom) and node.module == "__future__")
        or any(encloses(node, statement) for statement in changes)
    ]
    ranges = [range(_begin(node) - 1, bounds(node)[1]) for node in kept]
    lines = [
        line.decode() if any(number in each for each in ranges) else "\n"
        for number, line in enumerate(source.lines)
    ]
    for statement, new in changes.items():
        first, last, start, end = bounds(statement)
        rest = source.lines[last - 1][end:].decode()
        padding = "\n" * (last - first)
        lines[first - 1 : last] = [f"{' ' * start}{new}{rest}{padding}", *[""] * (last - first)]
    return "".join(lines)


def _outermost(source: Source, statement: ast.stmt) -> tuple[str, int] | None:
    """Name and first line, as code has it, of the outermost function around a statement."""
    for node in source.functions:  # the outermost comes first
        if encloses(node, statement):
            return node.name, _begin(node)
    return None


def _begin(node: ast.stmt) -> int:
    """The first line, that of a decorator if there is one."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _functions(modules: Iterable[Any], file: str) -> Iterator[FunctionType]:
    """Every function of a file that the modules' classes have, or that is a global of the file."""
    classes = {kind for module in modules for kind in type(module).__mro__ if file in _files_of(kind)}
    members = (_function(member) for kind in classes for member in vars(kind).values())
    own = [each for each in members if each is not None and each.__code__.co_filename == file]
    files = [vars(sys.modules[name]) for name in _modules_of(file, len(sys.modules)) if name in sys.modules]
    beside = [each for names in (*(each.__globals__ for each in own), *files) for each in names.values()]
    found = {id(each): each for each in (*own, *beside) if isinstance(each, FunctionType)}
    yield from (each for each in found.values() if each.__code__.co_filename == file)


@lru_cache(maxsize=64)  # there are thousands
def _modules_of(file: str, count: int) -> tuple[str, ...]:
    """Names of the modules that a file is imported as, while ``count`` are imported in all."""
    known = list(sys.modules.items())
    return tuple(name for name, module in known if vars(module).get("__file__") == file)


@lru_cache(maxsize=512)  # most are the framework's, with hundreds of functions each
def _files_of(kind: type[Any]) -> frozenset[str]:
    """Where the functions of a class stand."""
    functions = (_function(member) for member in vars(kind).values())
    return frozenset(each.__code__.co_filename for each in functions if each is not None)


def _function(member: Any) -> FunctionType | None:
    """What a class has under a name, as a plain function, if it is one."""
    if isinstance(member, property):
        member = member.fget
    if isinstance(member, (staticmethod, classmethod)):
        member = member.__func__
    if hasattr(member, "__wrapped__"):  # few are: to unwrap them all takes long
        member = inspect.unwrap(member)
    return member if isinstance(member, FunctionType) else None
