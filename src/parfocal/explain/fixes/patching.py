"""The line to write instead of one in the port's source, for a mistake in one expression.

Where the source or the right node is not known for certain there is no patch.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from typing import Any

from parfocal.explain.fixes.imports import spelled
from parfocal.explain.fixes.literals import agrees, constant, indexed, written
from parfocal.explain.fixes.operands import FunctionArgument, operand_of, said_by
from parfocal.explain.fixes.scopes import assigned_in_loop, assigned_name
from parfocal.explain.fixes.sources import Source, SourceSpot
from parfocal.explain.fixes.splicing import Patch, changing, in_parentheses, keyword_text, whole

LISTED = (ast.Name, ast.Attribute, ast.Subscript)
NOT_WORDS = frozenset({"logical_not", "bitwise_not"})


def telling(spot: SourceSpot, argument: FunctionArgument) -> Patch | None:
    """Another value for an argument, a number beside an operator, or an index."""
    if isinstance(spot.node, ast.Subscript):
        brackets, tensor = indexed(argument.new), in_parentheses(spot.source.segment(spot.node.value))
        return None if brackets is None else changing(spot, {spot.node: f"{tensor}[{brackets}]"})
    call, node = spot.node, said_by(spot, argument)
    if not isinstance(call, ast.Call):
        return None if node is None else changing(spot, {node: written(argument.new)})
    if node is None:
        return _told_besides(spot, call, argument)
    several = isinstance(argument.old, (tuple, list)) and not isinstance(node, (ast.List, ast.Tuple))
    rest = call.args[call.args.index(node) :] if node in call.args else []
    return _renumbered(spot, rest, argument) if several and len(rest) > 1 else _revalued(spot, node, argument)


def _told_besides(spot: SourceSpot, call: ast.Call, argument: FunctionArgument) -> Patch | None:
    """One more keyword argument, unless an unpacked ``**kwargs`` may contain it already."""
    unpacked = any(keyword.arg is None for keyword in call.keywords)
    if argument.keyword is None or unpacked or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    return changing(spot, {call: _with_keyword(spot.source, call, argument.keyword, written(argument.new))})


def dropping(spot: SourceSpot, slot: str = "0") -> Patch | None:
    """Without the op: one of its inputs as it is."""
    if isinstance(spot.node, ast.AugAssign):
        return whole(spot, "pass") if slot == "0" else None
    kept = operand_of(spot, slot)
    return None if kept is None else changing(spot, {spot.node: spot.source.segment(kept)})


def calling(spot: SourceSpot, function: str, arguments: str = "") -> Patch | None:
    """Another function instead, of the same tensor; ``function`` by its full name."""
    name, tensor = spelled(spot.source, spot.statement, function), operand_of(spot, "0")
    if name is None or tensor is None or isinstance(spot.node, ast.AugAssign):
        return None
    return changing(spot, {spot.node: f"{name}({_listed(spot.source.segment(tensor), arguments)})"})


def wrapping(spot: SourceSpot, function: str, arguments: str = "", slot: str | None = None) -> Patch | None:
    """A function more: of what the expression gives, or of one of its inputs."""
    node, name = _part(spot, slot), spelled(spot.source, spot.statement, function)
    if node is None or name is None:
        return None
    return changing(spot, {node: f"{name}({_listed(spot.source.segment(node), arguments)})"})


def combining(spot: SourceSpot, sign: str, operand: str, slot: str | None = None) -> Patch | None:
    """A sign and a number (or name) more: ``x`` becomes ``x * 0.5``."""
    node = _part(spot, slot)
    return (
        None
        if node is None
        else changing(spot, {node: f"{in_parentheses(spot.source.segment(node))} {sign} {operand}"})
    )


def accumulating(spot: SourceSpot, slot: str | None, sign: str) -> Patch | None:
    """An assignment in a loop made to accumulate: ``total = part`` becomes ``total = total + part``."""
    node = _part(spot, slot)
    statement = assigned_in_loop(spot, node.id) if isinstance(node, ast.Name) else None
    if statement is None or not isinstance(node, ast.Name) or not spot.source.stands_alone(statement):
        return None
    inner = SourceSpot(spot.source, statement, statement.value)
    text = in_parentheses(spot.source.segment(statement.value))
    return changing(inner, {statement.value: f"{node.id} {sign} {text}"})


def reordering(spot: SourceSpot, slots: Sequence[str], order: Sequence[int]) -> Patch | None:
    """The same tensors in another order: the one at ``order[i]`` takes place ``i``."""
    if isinstance(spot.node, ast.AugAssign):
        return None
    nodes = [operand_of(spot, slot) for slot in slots]
    found = [node for node in nodes if node is not None]
    if len(found) != len(nodes):
        return _picking(spot, slots, order)
    texts = [spot.source.segment(node) for node in found]
    return changing(spot, {node: texts[index] for node, index in zip(found, order, strict=True)})


def _picking(spot: SourceSpot, slots: Sequence[str], order: Sequence[int]) -> Patch | None:
    """The items of a list that has a name, in another order."""
    owners = {slot.rpartition(".")[0] for slot in slots}
    listed = operand_of(spot, owners.pop()) if len(owners) == 1 else None
    numbers = [slot.rpartition(".")[2] for slot in slots]
    if not isinstance(listed, LISTED) or numbers != [str(index) for index in range(len(slots))]:
        return None
    name, turned = spot.source.segment(listed), list(order) == list(range(len(order)))[::-1]
    if turned and name.endswith("[::-1]"):
        return changing(spot, {listed: name.removesuffix("[::-1]")})
    items = ", ".join(f"{name}[{index}]" for index in order)
    return changing(spot, {listed: f"{name}[::-1]" if turned else f"[{items}]"})


def resigning(spot: SourceSpot, sign: str) -> Patch | None:
    """Another sign between the same operands."""
    node = spot.node
    if not isinstance(node, ast.BinOp):
        return None
    left, right = (in_parentheses(spot.source.segment(side)) for side in (node.left, node.right))
    return changing(spot, {node: f"{left} {sign} {right}"})


def appending(spot: SourceSpot, method: str, slot: str | None = None) -> Patch | None:
    """A method more of what an expression gives, or of one of its inputs: ``.transpose([0, 2, 1])``."""
    node = _part(spot, slot)
    if node is None:
        return None
    return changing(spot, {node: f"{in_parentheses(spot.source.segment(node))}.{method}"})


def turning(spot: SourceSpot, slots: Sequence[str], method: str) -> Patch | None:
    """A method more of some arguments of a call, and of what it gives."""
    call, source = spot.node, spot.source
    if not isinstance(call, ast.Call):
        return None
    turned = {id(operand_of(spot, slot)) for slot in slots}
    said = {id(each): in_parentheses(source.segment(each)) for each in _values(call) if id(each) in turned}
    if len(said) != len(slots):
        return None
    parts = [f"{said[id(a)]}.{method}" if id(a) in said else source.segment(a) for a in call.args]
    parts += [
        f"{each.arg}={said[id(each.value)]}.{method}"
        if id(each.value) in said
        else keyword_text(source, each)
        for each in call.keywords
    ]
    return changing(spot, {call: f"{source.segment(call.func)}({', '.join(parts)}).{method}"})


def _values(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def calling_method(spot: SourceSpot, method: str) -> Patch | None:
    """A method of the same tensor instead."""
    tensor = operand_of(spot, "0")
    if tensor is None or isinstance(spot.node, ast.AugAssign):
        return None
    return changing(spot, {spot.node: f"{in_parentheses(spot.source.segment(tensor))}.{method}"})


def exchanging(spot: SourceSpot, slot: str | None, text: str) -> Patch | None:
    """Another expression for one of the inputs, or for the whole."""
    if isinstance(spot.node, ast.AugAssign) and slot is None:
        return whole(spot, f"{spot.source.segment(spot.node.target)} = {text}")
    node = _part(spot, slot)
    return None if node is None else changing(spot, {node: text})


def storing(spot: SourceSpot, use: SourceSpot, slot: str, index: Any) -> Patch | None:
    """``z = f(x)`` becomes ``y[:, 0] = f(x)``, where another expression uses ``y``."""
    target, brackets = operand_of(use, slot), indexed(index)
    if not isinstance(target, ast.Name) or brackets is None or assigned_name(spot) is None:
        return None
    if isinstance(spot.node, ast.AugAssign) or use.source is not spot.source:
        return None
    return whole(spot, f"{target.id}[{brackets}] = {spot.source.segment(spot.node)}")


def exchanging_among(spots: Sequence[SourceSpot], order: Sequence[int]) -> Patch | None:
    """Expressions of one statement in another order: the one at ``order[i]`` takes place ``i``."""
    nodes = [spot.node for spot in spots if isinstance(spot.node, ast.expr)]
    if len({id(node) for node in nodes}) != len(order) or len({id(s.statement) for s in spots}) != 1:
        return None
    texts = [spots[0].source.segment(node) for node in nodes]
    return changing(spots[0], {node: texts[index] for node, index in zip(nodes, order, strict=True)})


def exchanging_targets(spot: SourceSpot, one: int, other: int) -> Patch | None:
    """Two targets of an unpacking assignment, exchanged: ``b, a = f(x)``."""
    match spot.statement:
        case ast.Assign(targets=[ast.Tuple(elts=names)], value=value) if value is spot.node:
            if max(one, other) < len(names) and not any(isinstance(each, ast.Starred) for each in names):
                texts = [spot.source.segment(names[index]) for index in (other, one)]
                return changing(spot, dict(zip((names[one], names[other]), texts, strict=True)))
    return None


def rewritten_node(spot: SourceSpot, slot: str | None) -> ast.AST:
    """What ``exchanging`` exchanges."""
    return _part(spot, slot) or spot.node


def skipping(first: SourceSpot, last: SourceSpot, slot: str = "0") -> Patch | None:
    """Without some nested calls: the input of the innermost in place of the result of the outermost."""
    kept = operand_of(first, slot)
    inside = any(node is first.node for node in ast.walk(last.node))
    if kept is None or not inside or first.statement is not last.statement:
        return None
    if isinstance(last.node, ast.AugAssign):
        return None
    return changing(last, {last.node: first.source.segment(kept)})


def silencing(spot: SourceSpot) -> Patch | None:
    """Without a statement."""
    alone = isinstance(spot.statement, ast.Expr) and spot.statement.value is spot.node
    return whole(spot, "pass") if alone else None


def inverting(spot: SourceSpot, slot: str) -> Patch | None:
    """A mask, inverted."""
    node = operand_of(spot, slot)
    if node is None or isinstance(spot.node, ast.AugAssign):
        return None
    if isinstance(spot.node, ast.UnaryOp) and isinstance(spot.node.op, ast.Invert):
        return changing(spot, {spot.node: spot.source.segment(node)})
    match node:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return changing(spot, {node: spot.source.segment(inner)})
        case ast.Call(func=ast.Attribute(attr=word), args=[inner], keywords=[]) if word in NOT_WORDS:
            return changing(spot, {node: spot.source.segment(inner)})
    return changing(spot, {node: f"~{in_parentheses(spot.source.segment(node))}"})


def _revalued(spot: SourceSpot, node: ast.expr, argument: FunctionArgument) -> Patch | None:
    if isinstance(node, (ast.List, ast.Tuple)):
        changes = _differing(spot.source, node.elts, argument)
        if changes is not None:
            return changing(spot, changes)
    value = constant(node)
    if value is not None and not agrees(value, argument.old):
        return None
    text = written(argument.new)
    if isinstance(node, ast.Tuple) and text.startswith("["):
        text = f"({text[1:-1]}{',' if len(argument.new) == 1 else ''})"
    return changing(spot, {node: text})


def _differing(
    source: Source, nodes: Sequence[ast.expr], argument: FunctionArgument
) -> dict[ast.expr, str] | None:
    """New texts of those elements of a list that change; None when it is not that list."""
    old, new = argument.old, argument.new
    if not isinstance(new, (list, tuple)) or not len(nodes) == len(old) == len(new):
        return None
    values = [constant(node) for node in nodes]
    if not all(value in (None, -1) or value == was for value, was in zip(values, old, strict=True)):
        return None
    words: dict[Any, str] = {}
    if Counter(old) == Counter(new) and -1 not in values:  # another order: the user's own words for each
        words = {was: source.segment(node) for node, was in zip(nodes, old, strict=True)}
    pairs = zip(nodes, old, new, strict=True)
    return {node: words.get(value, written(value)) for node, was, value in pairs if was != value}


def _renumbered(spot: SourceSpot, nodes: Sequence[ast.expr], argument: FunctionArgument) -> Patch | None:
    """Numbers of a list that are written as so many arguments: ``permute(0, 2, 1)``."""
    changes = _differing(spot.source, nodes, argument)
    return None if changes is None else changing(spot, changes)


def _part(spot: SourceSpot, slot: str | None) -> ast.expr | None:
    if isinstance(spot.node, ast.AugAssign):
        return spot.node.value if slot == "1" else None
    return spot.node if slot is None else operand_of(spot, slot)


def _listed(first: str, arguments: str) -> str:
    return f"{first}, {arguments}" if arguments else first


def _with_keyword(source: Source, call: ast.Call, keyword: str, value: str) -> str:
    """The call with one keyword more, before its closing parenthesis."""
    parts = [source.segment(each) for each in call.args]
    parts += [keyword_text(source, each) for each in call.keywords]
    return f"{source.segment(call.func)}({', '.join((*parts, f'{keyword}={value}'))})"
