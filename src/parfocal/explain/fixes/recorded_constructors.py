"""The line of the user's source that makes a layer, read from the file that calls it."""

from __future__ import annotations

import ast
from pathlib import Path

from parfocal.explain.fixes.imports import last_word
from parfocal.explain.fixes.sources import read
from parfocal.replay.trace import Node


def with_line(fix: str, node: Node) -> str:
    """A fix of a layer with the line that makes it, where that is known: ``...  # network.py:12``."""
    line = made_at(node)
    return f"{fix}  # {line}" if line else fix


def made_at(node: Node) -> str:
    """``network.py:12``; empty where no line, or more than one, assigns the layer's name such a layer.

    What is in a ``Sequential`` has the name of what holds it.
    """
    parts = node.path.split(".")
    while len(parts) > 1 and parts[-1].isdigit():
        parts.pop()
    name, within = parts[-1], node.path.split(".") != parts
    source = read(node.file) if node.file else None
    if source is None:
        return ""
    lines = {
        statement.lineno
        for statement in source.statements
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Attribute) and target.attr == name for target in statement.targets)
        and any(
            isinstance(call, ast.Call) and last_word(call.func, {}) == node.class_name.rpartition(".")[2]
            for call in (ast.walk(statement.value) if within else (statement.value,))
        )
    }
    return f"{Path(source.file).name}:{lines.pop()}" if len(lines) == 1 else ""
