"""Values as source text, and source text of literals as values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from parfocal.brief import brief
from parfocal.judge import limits

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
CLOSE = limits.causes.SAME_LITERAL.value


@dataclass(frozen=True, slots=True)
class CodeLiteral:
    """A value that is given as an expression."""

    code: str


def written(value: Any) -> str:
    """A value as a person would write it: the shortest number that is as good."""
    if isinstance(value, CodeLiteral):
        return value.code
    if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value == value:
        short = (f"{value:.{digits}g}" for digits in range(1, 17))
        text = next((text for text in short if abs(float(text) - value) <= CLOSE * abs(value)), repr(value))
        return repr(float(text))
    if isinstance(value, float):
        return f'float("{value}")'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(written, value))}]"
    if hasattr(value, "shape"):  # numbers that no one would write down
        return f"<{brief(value)}>"
    return f'"{value}"' if isinstance(value, str) and '"' not in value else repr(value)


def indexed(index: Any) -> str | None:
    """An index as it is written between brackets; None for one that is a tensor."""
    parts = index if isinstance(index, tuple) else (index,)
    texts = [_indexed(part) for part in parts]
    return None if None in texts or not texts else ", ".join(str(text) for text in texts)


def _indexed(part: Any) -> str | None:
    if isinstance(part, slice):
        bounds = ["" if bound is None else repr(bound) for bound in (part.start, part.stop, part.step)]
        return ":".join(bounds if part.step is not None else bounds[:2])
    if part is Ellipsis:
        return "..."
    if isinstance(part, CodeLiteral):
        return part.code
    return repr(part) if part is None or isinstance(part, (int, list)) else None


def constant(node: ast.expr) -> Any:
    """The value of an expression of literals alone; None of any other."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        pass
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        left, right = constant(node.left), constant(node.right)
        if all(type(side) in (int, float) for side in (left, right)):
            with suppress(ArithmeticError):
                return ARITHMETIC[type(node.op)](left, right)
    return None


def agrees(value: Any, old: Any) -> bool:
    if isinstance(value, (tuple, list)) and isinstance(old, (tuple, list)):
        return len(value) == len(old) and all(map(agrees, value, old))
    numbers = all(isinstance(each, (int, float)) for each in (value, old))
    return abs(value - old) <= CLOSE * abs(old) if numbers else bool(value == old)
