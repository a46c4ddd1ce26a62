"""Which node of an expression is which input, or which argument, of the op that it makes."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from parfocal.explain.fixes.imports import dotted_name, imported
from parfocal.explain.fixes.literals import agrees, constant
from parfocal.explain.fixes.sources import SourceSpot


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """One argument of a function: its keyword, its position, its value and the value it should have."""

    keyword: str | None
    position: int | None  # the tensor that a method belongs to counts as the first
    old: Any
    new: Any


def operand_of(spot: SourceSpot, slot: str) -> ast.expr | None:
    """The expression of an input, by the slot under which a log keeps it."""
    first, *rest = slot.split(".")
    node = spot.node
    found: ast.expr | None
    match node:
        case ast.Call():
            found = _argument(spot, node, first)
        case ast.BinOp():
            sides = (node.right, node.left) if scalar_is_left(spot, node) else (node.left, node.right)
            found = sides[int(first)] if first in ("0", "1") else None
        case ast.Compare():
            found = {"0": node.left, "1": node.comparators[0]}.get(first)
        case ast.UnaryOp():
            found = node.operand if first == "0" else None
        case ast.AugAssign():
            found = {"0": node.target, "1": node.value}.get(first)
        case ast.Attribute() | ast.Subscript():
            found = node.value if first == "0" else None
        case _:
            found = None
    for part in rest:
        if not isinstance(found, (ast.List, ast.Tuple)) or any(
            isinstance(e, ast.Starred) for e in found.elts
        ):
            return None
        found = found.elts[int(part)] if part.isdigit() and int(part) < len(found.elts) else None
    return found


def _argument(spot: SourceSpot, call: ast.Call, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if not name.isdigit() or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    receiver = receiver_of(spot, call)
    places = [*([] if receiver is None else [receiver]), *call.args]
    index = int(name)
    if index < len(places):
        return places[index]
    # the first tensor may have been given by a keyword, whose name differs from place to place
    return call.keywords[0].value if index == 0 and not places and call.keywords else None


def said_by(spot: SourceSpot, argument: FunctionArgument) -> ast.expr | None:
    """The expression that says what an argument is; None when none does, or it is not certain which."""
    call = spot.node
    if not isinstance(call, ast.Call):
        return _number_beside(spot, argument.old)
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg == argument.keyword:
            return keyword.value
    shift = 0 if receiver_of(spot, call) is None else 1
    index = -1 if argument.position is None else argument.position - shift
    if any(isinstance(each, ast.Starred) for each in call.args) or not 0 <= index < len(call.args):
        return None
    return call.args[index]


def receiver_of(spot: SourceSpot, call: ast.Call) -> ast.expr | None:
    """The tensor before the dot of a method; None for a function, also one that the user's object keeps."""
    function, (owner, word) = call.func, spot.native.split(".")[-2:] if "." in spot.native else ("", "")
    if not isinstance(function, ast.Attribute) or owner != "Tensor" or function.attr != word:
        return None
    if isinstance(function.value, ast.Name) and function.value.id in ("self", "cls"):
        return None
    known = dotted_name(function, imported(spot.source, spot.statement))
    return function.value if known is None else None


def scalar_is_left(spot: SourceSpot, node: ast.BinOp) -> bool:
    """Whether the tensor, which a framework counts first, stands on the right."""
    if spot.native.rpartition(".")[2].startswith("__r"):
        return True
    return constant(node.left) is not None and constant(node.right) is None


def _number_beside(spot: SourceSpot, old: Any) -> ast.expr | None:
    """The operand that is the number; if it is a constant it must be the very number."""
    node = spot.node
    match node:
        case ast.AugAssign():
            operand = node.value
        case ast.BinOp():
            operand = node.left if scalar_is_left(spot, node) else node.right
            if constant(operand) is None and not spot.native.rpartition(".")[2].startswith("__"):
                return None  # torch has one name for both sides
        case ast.Compare():
            operand = node.comparators[0]
        case _:
            return None
    value = constant(operand)
    return operand if value is None or agrees(value, old) else None
