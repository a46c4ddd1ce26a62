"""The line to write instead of one in the port's source, for a mistake in one expression.

Every edit exchanges the text of a few nodes of one statement and leaves the user's spelling of
all others; the result is parsed again and must be exactly the tree that was meant. Where the
source or the right node is not known for certain there is no patch.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parfocal.explain.fixes.literals import agrees, constant, indexed, written
from parfocal.explain.fixes.sources import Source, Spot, bounds, dotted_name, imported, spelled

ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict)
LISTED = (ast.Name, ast.Attribute, ast.Subscript)
NOT_WORDS = frozenset({"logical_not", "bitwise_not"})


@dataclass(frozen=True, slots=True)
class Patch:
    """A statement as it is, and as it should be, on one line; ``also``: others to change with it."""

    file: str
    line: int
    old: str
    new: str
    also: tuple[Patch, ...] = ()

    @property
    def text(self) -> str:
        """Lines of code that say where they belong."""
        own = f"{self.new}  # {os.path.basename(self.file)}:{self.line}"
        return "\n".join((*(each.text for each in self.also), own))


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a function: its name there, its place among all, what it is and should be."""

    keyword: str | None
    position: int | None  # the tensor that a method belongs to counts as the first
    old: Any
    new: Any


def telling(spot: Spot, argument: Argument) -> Patch | None:
    """Another value for an argument, a number beside an operator, or an index."""
    if isinstance(spot.node, ast.Subscript):
        brackets, tensor = indexed(argument.new), _in_parentheses(spot.source.segment(spot.node.value))
        return None if brackets is None else changing(spot, {spot.node: f"{tensor}[{brackets}]"})
    call, node = spot.node, said_by(spot, argument)
    if not isinstance(call, ast.Call):
        return None if node is None else changing(spot, {node: written(argument.new)})
    if node is None:
        return _told_besides(spot, call, argument)
    several = isinstance(argument.old, (tuple, list)) and not isinstance(node, (ast.List, ast.Tuple))
    rest = call.args[call.args.index(node) :] if node in call.args else []
    return _renumbered(spot, rest, argument) if several and len(rest) > 1 else _revalued(spot, node, argument)


def said_by(spot: Spot, argument: Argument) -> ast.expr | None:
    """The expression that says what an argument is; None when none does, or it is not certain which."""
    call = spot.node
    if not isinstance(call, ast.Call):
        return _number_beside(spot, argument.old)
    for keyword in call.keywords:
        if keyword.arg is not None and keyword.arg == argument.keyword:
            return keyword.value
    shift = 0 if _receiver(spot, call) is None else 1
    index = -1 if argument.position is None else argument.position - shift
    if any(isinstance(each, ast.Starred) for each in call.args) or not 0 <= index < len(call.args):
        return None
    return call.args[index]


def _told_besides(spot: Spot, call: ast.Call, argument: Argument) -> Patch | None:
    """One keyword more, where nothing that is unpacked may say it already."""
    unpacked = any(keyword.arg is None for keyword in call.keywords)
    if argument.keyword is None or unpacked or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    return changing(spot, {call: _with_keyword(spot.source, call, argument.keyword, written(argument.new))})


def dropping(spot: Spot, slot: str = "0") -> Patch | None:
    """Without the op: one of its inputs as it is."""
    if isinstance(spot.node, ast.AugAssign):
        return _whole(spot, "pass") if slot == "0" else None
    kept = operand_of(spot, slot)
    return None if kept is None else changing(spot, {spot.node: spot.source.segment(kept)})


def calling(spot: Spot, function: str, arguments: str = "") -> Patch | None:
    """Another function instead, of the same tensor; ``function`` by its full name."""
    name, tensor = spelled(spot.source, spot.statement, function), operand_of(spot, "0")
    if name is None or tensor is None or isinstance(spot.node, ast.AugAssign):
        return None
    return changing(spot, {spot.node: f"{name}({_listed(spot.source.segment(tensor), arguments)})"})


def wrapping(spot: Spot, function: str, arguments: str = "", slot: str | None = None) -> Patch | None:
    """A function more: of what the expression gives, or of one of its inputs."""
    node, name = _part(spot, slot), spelled(spot.source, spot.statement, function)
    if node is None or name is None:
        return None
    return changing(spot, {node: f"{name}({_listed(spot.source.segment(node), arguments)})"})


def combining(spot: Spot, sign: str, operand: str, slot: str | None = None) -> Patch | None:
    """A sign and a number (or name) more: ``x`` becomes ``x * 0.5``."""
    node = _part(spot, slot)
    return (
        None
        if node is None
        else changing(spot, {node: f"{_in_parentheses(spot.source.segment(node))} {sign} {operand}"})
    )


def reordering(spot: Spot, slots: Sequence[str], order: Sequence[int]) -> Patch | None:
    """The same tensors in another order: the one at ``order[i]`` takes place ``i``."""
    if isinstance(spot.node, ast.AugAssign):
        return None
    nodes = [operand_of(spot, slot) for slot in slots]
    found = [node for node in nodes if node is not None]
    if len(found) != len(nodes):
        return _picking(spot, slots, order)
    texts = [spot.source.segment(node) for node in found]
    return changing(spot, {node: texts[index] for node, index in zip(found, order, strict=True)})


def _picking(spot: Spot, slots: Sequence[str], order: Sequence[int]) -> Patch | None:
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


def resigning(spot: Spot, sign: str) -> Patch | None:
    """Another sign between the same operands."""
    node = spot.node
    if not isinstance(node, ast.BinOp):
        return None
    left, right = (_in_parentheses(spot.source.segment(side)) for side in (node.left, node.right))
    return changing(spot, {node: f"{left} {sign} {right}"})


def appending(spot: Spot, method: str, slot: str | None = None) -> Patch | None:
    """A method more of what an expression gives, or of one of its inputs: ``.transpose([0, 2, 1])``."""
    node = _part(spot, slot)
    if node is None:
        return None
    return changing(spot, {node: f"{_in_parentheses(spot.source.segment(node))}.{method}"})


def calling_method(spot: Spot, method: str) -> Patch | None:
    """A method of the same tensor instead."""
    tensor = operand_of(spot, "0")
    if tensor is None or isinstance(spot.node, ast.AugAssign):
        return None
    return changing(spot, {spot.node: f"{_in_parentheses(spot.source.segment(tensor))}.{method}"})


def exchanging(spot: Spot, slot: str | None, text: str) -> Patch | None:
    """Another expression for one of the inputs, or for the whole."""
    if isinstance(spot.node, ast.AugAssign) and slot is None:
        return _whole(spot, f"{spot.source.segment(spot.node.target)} = {text}")
    node = _part(spot, slot)
    return None if node is None else changing(spot, {node: text})


def exchanging_among(spots: Sequence[Spot], order: Sequence[int]) -> Patch | None:
    """Expressions of one statement in another order: the one at ``order[i]`` takes place ``i``."""
    nodes = [spot.node for spot in spots if isinstance(spot.node, ast.expr)]
    if len({id(node) for node in nodes}) != len(order) or len({id(s.statement) for s in spots}) != 1:
        return None
    texts = [spots[0].source.segment(node) for node in nodes]
    return changing(spots[0], {node: texts[index] for node, index in zip(nodes, order, strict=True)})


def rewritten_node(spot: Spot, slot: str | None) -> ast.AST:
    """What ``exchanging`` exchanges."""
    return _part(spot, slot) or spot.node


def skipping(first: Spot, last: Spot, slot: str = "0") -> Patch | None:
    """Without a row of calls, one inside the other: what goes into the first for what the last gives."""
    kept = operand_of(first, slot)
    inside = any(node is first.node for node in ast.walk(last.node))
    if kept is None or not inside or first.statement is not last.statement:
        return None
    if isinstance(last.node, ast.AugAssign):
        return None
    return changing(last, {last.node: first.source.segment(kept)})


def without_statements(patch: Patch, source: Source, statements: Sequence[ast.stmt]) -> Patch:
    """The same, and some statements before it are not to be there."""
    gone = [Patch(source.file, each.lineno, source.segment(each), "pass") for each in statements]
    return replace(patch, also=tuple(gone))


def silencing(spot: Spot) -> Patch | None:
    """A statement of its own that is not to be there."""
    alone = isinstance(spot.statement, ast.Expr) and spot.statement.value is spot.node
    return _whole(spot, "pass") if alone else None


def inverting(spot: Spot, slot: str) -> Patch | None:
    """A mask that means the opposite."""
    node = operand_of(spot, slot)
    if node is None or isinstance(spot.node, ast.AugAssign):
        return None
    match node:
        case ast.UnaryOp(op=ast.Invert(), operand=inner):
            return changing(spot, {node: spot.source.segment(inner)})
        case ast.Call(func=ast.Attribute(attr=word), args=[inner], keywords=[]) if word in NOT_WORDS:
            return changing(spot, {node: spot.source.segment(inner)})
    return changing(spot, {node: f"~{_in_parentheses(spot.source.segment(node))}"})


def operand_of(spot: Spot, slot: str) -> ast.expr | None:
    """The expression of an input, by the slot under which a log keeps it."""
    first, *rest = slot.split(".")
    node = spot.node
    found: ast.expr | None
    match node:
        case ast.Call():
            found = _argument(spot, node, first)
        case ast.BinOp():
            sides = (node.right, node.left) if _scalar_is_left(spot, node) else (node.left, node.right)
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


def _argument(spot: Spot, call: ast.Call, name: str) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if not name.isdigit() or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    receiver = _receiver(spot, call)
    places = [*([] if receiver is None else [receiver]), *call.args]
    index = int(name)
    if index < len(places):
        return places[index]
    # the first tensor may have been given by a keyword, whose name differs from place to place
    return call.keywords[0].value if index == 0 and not places and call.keywords else None


def _receiver(spot: Spot, call: ast.Call) -> ast.expr | None:
    """The tensor before the dot of a method; None for a function, also one that the user's object keeps."""
    function, (owner, word) = call.func, spot.native.split(".")[-2:] if "." in spot.native else ("", "")
    if not isinstance(function, ast.Attribute) or owner != "Tensor" or function.attr != word:
        return None
    if isinstance(function.value, ast.Name) and function.value.id in ("self", "cls"):
        return None
    known = dotted_name(function, imported(spot.source, spot.statement))
    return function.value if known is None else None


def _scalar_is_left(spot: Spot, node: ast.BinOp) -> bool:
    """Whether the tensor, which a framework counts first, stands on the right."""
    if spot.native.rpartition(".")[2].startswith("__r"):
        return True
    return constant(node.left) is not None and constant(node.right) is None


def _number_beside(spot: Spot, old: Any) -> ast.expr | None:
    """The operand that is the number; if it is a constant it must be the very number."""
    node = spot.node
    match node:
        case ast.AugAssign():
            operand = node.value
        case ast.BinOp():
            operand = node.left if _scalar_is_left(spot, node) else node.right
            if constant(operand) is None and not spot.native.rpartition(".")[2].startswith("__"):
                return None  # torch has one name for both sides
        case ast.Compare():
            operand = node.comparators[0]
        case _:
            return None
    value = constant(operand)
    return operand if value is None or agrees(value, old) else None


def _revalued(spot: Spot, node: ast.expr, argument: Argument) -> Patch | None:
    if isinstance(node, (ast.List, ast.Tuple)) and isinstance(argument.new, (list, tuple)):
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


def _differing(source: Source, nodes: Sequence[ast.expr], argument: Argument) -> dict[ast.expr, str] | None:
    """New texts of those elements of a list that change; None when it is not that list."""
    old, new = argument.old, argument.new
    if not len(nodes) == len(old) == len(new):
        return None
    values = [constant(node) for node in nodes]
    if not all(value in (None, -1) or value == was for value, was in zip(values, old, strict=True)):
        return None
    words: dict[Any, str] = {}
    if sorted(old) == sorted(new) and -1 not in values:  # another order: the user's own words for each
        words = {was: source.segment(node) for node, was in zip(nodes, old, strict=True)}
    pairs = zip(nodes, old, new, strict=True)
    return {node: words.get(value, written(value)) for node, was, value in pairs if was != value}


def _renumbered(spot: Spot, nodes: Sequence[ast.expr], argument: Argument) -> Patch | None:
    """Numbers of a list that are written as so many arguments: ``permute(0, 2, 1)``."""
    changes = _differing(spot.source, nodes, argument)
    return None if changes is None else changing(spot, changes)


def _part(spot: Spot, slot: str | None) -> ast.expr | None:
    if isinstance(spot.node, ast.AugAssign):
        return spot.node.value if slot == "1" else None
    return spot.node if slot is None else operand_of(spot, slot)


def _listed(first: str, arguments: str) -> str:
    return f"{first}, {arguments}" if arguments else first


def keyword_text(source: Source, keyword: ast.keyword) -> str:
    value = source.segment(keyword.value)
    return f"**{value}" if keyword.arg is None else f"{keyword.arg}={value}"


def _with_keyword(source: Source, call: ast.Call, keyword: str, value: str) -> str:
    """The call with one keyword more, before its closing parenthesis."""
    parts = [source.segment(each) for each in call.args]
    parts += [keyword_text(source, each) for each in call.keywords]
    return f"{source.segment(call.func)}({', '.join((*parts, f'{keyword}={value}'))})"


def _in_parentheses(text: str) -> str:
    """The text of an expression, in parentheses if it is not one word or call."""
    return text if isinstance(ast.parse(f"({text})", mode="eval").body, ATOMS) else f"({text})"


def _whole(spot: Spot, new: str) -> Patch:
    return Patch(spot.source.file, spot.statement.lineno, spot.source.segment(spot.statement), new)


def changing(spot: Spot, changes: Mapping[ast.expr, str]) -> Patch | None:
    """The statement with the texts of some nodes exchanged; None when nothing changes by it."""
    meant = {node: ast.parse(f"({text})", mode="eval").body for node, text in changes.items()}
    expected = _rebuilt(spot.statement, meant)
    if ast.dump(expected) == ast.dump(spot.statement):
        return None
    grouped = {node: _in_parentheses(text) for node, text in changes.items()}
    for texts in (changes, grouped):
        for widened in (True, False):
            new = _spliced(spot, texts, widened=widened)
            if "\n" not in new and _is(new, expected):
                return _whole(spot, new)
    return _whole(spot, ast.unparse(ast.fix_missing_locations(expected)))


def _is(text: str, expected: ast.AST) -> bool:
    try:
        (statement,) = ast.parse(text).body
    except (SyntaxError, ValueError):
        return False
    return ast.dump(statement) == ast.dump(expected)


def _spliced(spot: Spot, changes: Mapping[ast.expr, str], *, widened: bool) -> str:
    """The statement's text with the texts of its nodes exchanged, from the last to the first.

    ``widened``: together with parentheses right around them, which may be those of a call.
    """
    lines = spot.source.lines
    first, last, start, end = bounds(spot.statement)
    text = b"".join((*lines[first - 1 : last - 1], lines[last - 1][:end]))

    def offset(line: int, column: int) -> int:
        return sum(map(len, lines[first - 1 : line - 1])) + column

    for node in sorted(changes, key=lambda each: bounds(each)[::2], reverse=True):
        from_line, to_line, from_column, to_column = bounds(node)
        before, after = text[: offset(from_line, from_column)], text[offset(to_line, to_column) :]
        while widened and before.endswith(b"(") and after.startswith(b")"):
            before, after = before[:-1], after[1:]
        text = before + changes[node].encode() + after
    return text[start:].decode()


def _rebuilt(node: Any, meant: Mapping[ast.expr, ast.expr]) -> Any:
    """A copy of a tree with some of its nodes exchanged."""
    if isinstance(node, ast.AST):
        if isinstance(node, ast.expr) and node in meant:
            return meant[node]
        return type(node)(**dict(_fields(node, meant)))
    return [_rebuilt(item, meant) for item in node] if isinstance(node, list) else node


def _fields(node: ast.AST, meant: Mapping[ast.expr, ast.expr]) -> Iterator[tuple[str, Any]]:
    for name, value in ast.iter_fields(node):
        yield name, _rebuilt(value, meant)
