"""What to write for a proven change of an op: the new line of the user's code, or else words.

Proofs are about ops and values. This module finds where an op stands in the source and how the port's
framework writes the change. Every function returns ``words`` where it finds no patch.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from parfocal.backends import registry
from parfocal.explain.causes import PortChange, PortCode
from parfocal.explain.fixes import patching
from parfocal.explain.fixes.attributes import Way, set_to, value_at, way_to
from parfocal.explain.fixes.finding import find_layer, find_op, find_return
from parfocal.explain.fixes.frames import UserFrame
from parfocal.explain.fixes.literals import CodeLiteral, agrees, written
from parfocal.explain.fixes.operands import FunctionArgument, said_by
from parfocal.explain.fixes.origins import Around, lines
from parfocal.explain.fixes.scopes import class_around, has_self
from parfocal.explain.fixes.sources import SourceSpot, Span
from parfocal.explain.fixes.spelling import SIGNS, arguments_of, function_of
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.ops.arguments import POSITIONS, PassedArgument
from parfocal.explain.ops.log import Op
from parfocal.judge.verdict import Fix


@dataclass(frozen=True, slots=True)
class ModuleSetting(PortCode):
    """An attribute of a module to set on the port, and the source line that would say the same."""

    way: Way = field(compare=False)
    value: Any = field(compare=False)
    line: Patch | None = field(compare=False)


def told(
    op: Op,
    argument: PassedArgument,
    value: Any,
    words: Fix,
    owner: tuple[str, Any] | None = None,
    around: Around = tuple,
) -> Fix:
    """Another value for one of the op's arguments; ``owner``: the module whose code it is, and its path.

    What the code takes from the module itself, ``self.eps``, is set there: other modules share the code.
    """
    spot = spot_of(op)
    if spot is None:
        return words
    new = argument.back(value)
    if argument.name == "training" and has_self(spot):
        new = CodeLiteral("self.training")
    keyword, position = _place(op, argument)
    change = FunctionArgument(keyword, position, argument.back(argument.value), new)
    patches = lines(spot, change, op.frames, around)
    line = replace(patches[0], others=tuple(patches[1:])) if patches else None
    setting = None if owner is None else _set_in(owner, spot, change, op.frames, line)
    return setting or line or words


def _set_in(
    owner: tuple[str, Any],
    spot: SourceSpot,
    change: FunctionArgument,
    frames: Sequence[UserFrame],
    line: Patch | None,
) -> ModuleSetting | None:
    """The attribute of the module that an argument is read from, if it has exactly the argument's value."""
    path, module = owner
    node = spot.node
    sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [said_by(spot, change)]
    if class_around(spot) not in {kind.__name__ for kind in type(module).__mro__}:
        return None
    for side in sides:
        way = way_to(side, frames[0].names if frames else {})
        value = value_at(module, way) if way else None
        if isinstance(value, (int, float, str)) and agrees(value, change.old):
            with set_to(module, way, value) as possible:
                if possible:
                    text = f"{path}{''.join(step.text for step in way)} = {written(change.new)}"
                    return ModuleSetting(text, PortChange.ATTRIBUTE, way, change.new, line)
    return None


def dropped(last: Op, first: Op, slot: str, words: Fix) -> Fix:
    """Without some consecutive ops: the input of the first, at this slot, replaces the result of the last."""
    begin, end = spot_of(first), spot_of(last)
    if begin is None or end is None:
        return words
    if first is last:
        return patching.dropping(begin, slot) or words
    return patching.skipping(begin, end, slot) or words


def not_dropping(op: Op, words: Fix) -> Fix:
    """Dropout only in training mode."""
    training = PassedArgument("training", True, "training", lambda value: value)
    return told(op, training, False, words)


def called(
    op: Op,
    framework: str,
    name: str,
    arguments: Mapping[str, Any],
    words: Fix,
    owner: tuple[str, Any] | None = None,
) -> Fix:
    """Another function of the same tensor, or another sign; names are the common ones.

    A function that the module has for its own, ``self.act``, is set there.
    """
    spot, function = spot_of(op), function_of(name, framework)
    if spot is None:
        return words
    if name in SIGNS:
        return patching.resigning(spot, SIGNS[name]) or words
    said = arguments_of(name, framework, arguments)
    if function is None or said is None or len(op.inputs) != 1:
        return words
    patch = patching.calling(spot, function, said)
    way = way_to(spot.node.func, {}) if isinstance(spot.node, ast.Call) else ()
    if owner is None or said or not way or not _is_function(value_at(owner[1], way)):
        return patch or words
    text = f"{owner[0]}{''.join(step.text for step in way)} = {function}"
    return ModuleSetting(text, PortChange.ATTRIBUTE, way, _named(function), patch)


def _is_function(value: Any) -> bool:
    """Whether a module holds it as a plain function, which can be replaced by another."""
    return inspect.isroutine(value) and not inspect.ismethod(value)


def _named(dotted: str) -> Any:
    """The object of a dotted name, in a package that is imported already."""
    package, *rest = dotted.split(".")
    return reduce(getattr, rest, sys.modules[package])


def ordered(op: Op, slots: Sequence[str], order: Sequence[int], words: Fix) -> Fix:
    """The op's tensors in another order."""
    spot = spot_of(op)
    return (None if spot is None else patching.reordering(spot, slots, order)) or words


def inverted(op: Op, slot: str, words: Fix) -> Fix:
    """The mask at one of its inputs, inverted."""
    spot = spot_of(op)
    return (None if spot is None else patching.inverting(spot, slot)) or words


def scaled(op: Op, factor: float, words: Fix) -> Fix:
    """What the op gives, times a number."""
    spot = spot_of(op)
    return (None if spot is None else patching.combining(spot, "*", written(factor))) or words


def added(
    place: tuple[SourceSpot, str | None] | None,
    framework: str,
    name: str,
    arguments: Mapping[str, Any],
    other: str | None,
    words: Fix,
) -> Fix:
    """One op more at a place; ``other``: what the second tensor is called there, if the op takes two."""
    if place is None:
        return words
    spot, slot = place
    scalar = arguments.get("scalar")
    if name in SIGNS and isinstance(scalar, (int, float)) and not isinstance(scalar, bool):
        return patching.combining(spot, SIGNS[name], written(scalar), slot) or words
    if name in SIGNS and other is not None:
        return patching.combining(spot, SIGNS[name], other, slot) or words
    function, said = function_of(name, framework), arguments_of(name, framework, arguments)
    if function is None or said is None:
        return words
    return patching.wrapping(spot, function, said, slot) or words


def stored(op: Op, use: SourceSpot, slot: str, index: Any, words: Fix) -> Fix:
    """What an op gives is written at an index of the tensor that is used elsewhere."""
    spot = spot_of(op)
    return (None if spot is None else patching.storing(spot, use, slot, index)) or words


def transposed(op: Op, slot: str, axes: Sequence[int], framework: str, words: Fix) -> Fix:
    """Axes in another order in what goes into an op."""
    spot = spot_of(op)
    return (None if spot is None else patching.appending(spot, _permuting(axes, framework), slot)) or words


def turned(op: Op, slots: Sequence[str], axes: Sequence[int], framework: str, words: Fix) -> Fix:
    """Axes in another order in some of what goes into an op, and in what it gives."""
    spot = spot_of(op)
    return (None if spot is None else patching.turning(spot, slots, _permuting(axes, framework))) or words


def rearranged(op: Op, axes: Sequence[int], framework: str, words: Fix) -> Fix:
    """An op that orders axes, with another order."""
    spot = spot_of(op)
    return (None if spot is None else patching.calling_method(spot, _permuting(axes, framework))) or words


def _permuting(axes: Sequence[int], framework: str) -> str:
    return registry.dialect(framework).permuting(axes)


def exchanged_among(ops: Sequence[Op], order: Sequence[int], words: Fix) -> Fix:
    """Ops that stand in one statement take each other's places."""
    spots = [spot for spot in map(spot_of, ops) if spot is not None]
    if len(spots) != len(order):
        return words
    return patching.exchanging_among(spots, order) or words


def exchanged_parts(op: Op, slots: Sequence[str], words: Fix) -> Fix:
    """Two parts of what an op gives, each under the other's name."""
    spot = spot_of(op)
    if spot is None or len(slots) != 2 or not all(slot.isdigit() for slot in slots):
        return words
    return patching.exchanging_targets(spot, *map(int, slots)) or words


def exchanged(op: Op, slot: str, name: str, words: Fix) -> Fix:
    """Another tensor, by its name, at one of the op's inputs."""
    spot = spot_of(op)
    return (None if spot is None else patching.exchanging(spot, slot, name)) or words


@dataclass(frozen=True, slots=True)
class TensorMethod:
    """A method of a tensor, of which no more than its name and its line are known."""

    name: str
    file: str | None
    line: int | None
    span: Span | None = None

    @property
    def native(self) -> str:
        return f"Tensor.{self.name}"


def without(name: str, file: str | None, line: int | None, words: Fix) -> Fix:
    """The statement at a line without a method call; without the statement, if that is all it does."""
    spot = find_op(TensorMethod(name, file, line))
    if spot is None:
        return words
    return patching.silencing(spot) or patching.dropping(spot) or words


def spot_of(op: Op) -> SourceSpot | None:
    """Where an op stands, or the call of a module."""
    if "spot" not in op.looked_up:
        op.looked_up["spot"] = find_op(op) if op.path is None else find_layer(op.file, op.line, op.path)
    found: SourceSpot | None = op.looked_up["spot"]
    return found


def at_the_end(module: Any) -> SourceSpot | None:
    """What a module's ``forward`` returns."""
    forward: Callable[..., Any] | None = getattr(type(module), "forward", None)
    code = getattr(None if forward is None else inspect.unwrap(forward), "__code__", None)
    return None if code is None else find_return(code.co_filename, code.co_firstlineno)


def _place(op: Op, argument: PassedArgument) -> tuple[str | None, int | None]:
    """Keyword and position of an argument, as far as the function tells."""
    native = argument.native
    try:
        names = [] if op.function is None else list(inspect.signature(op.function).parameters)
    except (TypeError, ValueError):  # written in C
        names = []
    if not names or "args" in names:  # the first is the tensor
        names = ["", *POSITIONS.get(op.name, ())]
        known = names.index(argument.name) if argument.name in names else None
        return (None, native) if isinstance(native, int) else (native, known)
    if isinstance(native, int):
        return (names[native] if native < len(names) else None), native
    return native, names.index(native) if native in names else None
