"""Writes a value of the reference as an expression of the port, in the names that its code has there.

A value is a name, a weight or an expression that the code has already, or else the reference's op on
values that are written in the same way.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.causes import spelled_from
from parfocal.explain.fixes import fixing
from parfocal.explain.fixes.expressions import ExpressionOp, expressed, moved, permuted
from parfocal.explain.fixes.finding import find_call
from parfocal.explain.fixes.imports import spelled
from parfocal.explain.fixes.patching import rewritten_node
from parfocal.explain.fixes.scopes import (
    assigned_name,
    first_line,
    functions_of,
    has_self,
    names_in,
    stored_between,
)
from parfocal.explain.fixes.sources import CallSpot, SourceSpot, bounds
from parfocal.explain.ops.arguments import told
from parfocal.explain.ops.log import Key, Op, key_of
from parfocal.explain.ops.op_comparison import OpComparison
from parfocal.explain.ops.values import ROUNDING, ComparableValue, close, match
from parfocal.explain.ops.watching import watched
from parfocal.judge import limits

DEEPEST = limits.searches.EXPRESSION_DEPTH.value
LONGEST = limits.searches.EXPRESSION_LENGTH.value


@dataclass(frozen=True, slots=True)
class EditPlace:
    """An expression, or an input of it, to replace; the ops before ``moment`` are known there."""

    spot: SourceSpot
    slot: str | None
    moment: int
    around: Mapping[str, Any] | None = None  # the tensors there by their names, if they were seen
    without: tuple[ast.stmt, ...] = ()  # statements right before that are to go

    @property
    def begin(self) -> ast.stmt:
        """The statement that everything is known before."""
        return self.without[0] if self.without else self.spot.statement

    @property
    def free(self) -> set[int]:
        """Identities of the nodes that will not be there any more."""
        gone = (rewritten_node(self.spot, self.slot), *self.without)
        return {id(node) for each in gone for node in ast.walk(each)}


@dataclass(frozen=True, slots=True)
class KnownText:
    """Text that stands for a value; ``op``: the module's call that it is, if it is one."""

    text: str
    array: Array
    op: Op | None = None


class Writer:
    """Writes values at one place."""

    def __init__(self, comparison: OpComparison, place: EditPlace) -> None:
        self.comparison = comparison
        self.place = place
        self.known = list(_known(comparison, place))
        self.framework = comparison.case.backend.name
        back = comparison.case.reference_backend.to_array
        plain = (each for each in comparison.reference.returns if each.alone and not each.given)
        self.returned = {key_of(back(each.tensor)): each for each in plain}
        # Values are used again and again, in a loop most of all: each is written once, or tried in vain
        # once at every depth.
        self._written: dict[tuple[Key, int | None], str] = {}
        self._in_vain: dict[tuple[Key, int | None], int] = {}

    def write(self, key: Key, made: Op | None, depth: int = 0) -> str | None:
        """The text of a value that ``made`` gives in the reference."""
        value = key, None if made is None else made.index
        if value not in self._written and depth < self._in_vain.get(value, depth + 1):
            text = self._write(key, made, depth)
            if text is None or len(text) > LONGEST:
                self._in_vain[value] = depth
            else:
                self._written[value] = text
        return self._written.get(value)

    def _write(self, key: Key, made: Op | None, depth: int) -> str | None:
        array = self.comparison.reference.values[key]
        for known in self.known:
            if _is(known.array, array) and self._is_called_alike(known, made):
                return known.text
        text = None
        if made is not None and depth < DEEPEST:
            text = self._function_called(key, depth) or self.computed(key, made, depth)
        return text or self._moved(array)

    def _is_called_alike(self, known: KnownText, made: Op | None) -> bool:
        """A call is led to the reference's values: it stands for them only if it is given the same."""
        if known.op is None:
            return True
        if made is None or not made.is_module or len(made.inputs) != len(known.op.inputs):
            return False
        pairs = zip(known.op.inputs.values(), made.inputs.values(), strict=True)
        return all(self.comparison.matches.are_one(mine, theirs) for mine, theirs in pairs)

    def computed(self, key: Key, made: Op, depth: int = 0) -> str | None:
        """The op itself as code, also where its value has a name."""
        log = self.comparison.reference
        texts = []
        for slot, each in made.inputs.items():
            written = self.write(each, log.maker(made, slot), depth + 1)
            if written is None:
                return None
            texts.append(written)
        text = self._module_called(made, texts) if made.is_module else None
        if text is None:
            arguments = told(made, self.comparison.case.reference_backend.is_tensor)
            values = [log.values[each] for each in made.inputs.values()]
            step = ExpressionOp(made.name, texts, values, arguments, log.values[key])
            text = expressed(step, self.framework, self.spell)
        if text is None or len(made.outputs) == 1:
            return text
        slot = next((slot for slot, each in made.outputs.items() if each == key), "")
        return f"{text}[{slot}]" if slot.isdigit() else None

    def _function_called(self, key: Key, depth: int) -> str | None:
        """A call of the user's own function that the port has under the same name."""
        found = self.returned.get(key)
        call = None if found is None else find_call(*found.caller)
        if found is None or call is None:
            return None
        function = call.source.segment(call.node.func)
        if not self._has(function) or call.node.keywords:
            return None
        texts = [self._argument(call, node, found.outside, depth) for node in call.node.args]
        given = [text for text in texts if text is not None]
        return f"{function}({', '.join(given)})" if len(given) == len(texts) else None

    def _argument(self, call: CallSpot, node: ast.expr, outside: Mapping[str, Any], depth: int) -> str | None:
        """What the reference hands to a function of its own: a tensor with a name, or a number."""
        if isinstance(node, ast.Constant):
            return call.source.segment(node)
        if not isinstance(node, ast.Name) or node.id not in outside:
            return None
        key = key_of(self.comparison.case.reference_backend.to_array(outside[node.id]))
        log = self.comparison.reference
        return self.write(key, log.producers.get(key), depth + 1) if key in log.values else None

    def _has(self, function: str) -> bool:
        """Whether the port's code can call a function by this name where it is to be written."""
        owner, _, name = function.rpartition(".")
        if owner == "self":
            return has_self(self.place.spot) and hasattr(type(self.comparison.case.module), name)
        return not owner and name in functions_of(self.place.spot.source)

    def spell(self, dotted: str) -> str | None:
        return spelled(self.place.spot.source, self.place.spot.statement, dotted)

    def _module_called(self, made: Op, texts: list[str]) -> str | None:
        """A call of the port's layer that is the reference's, by keywords where the reference has them."""
        order, path = _counterpart(self.comparison, made)
        own = self.comparison.case.node.path
        if order is not None and self._is_called_elsewhere(order):
            return None  # a second call is another model
        inside = path is not None and (path.startswith(f"{own}.") if own else bool(path))
        if path is None or not inside or not has_self(self.place.spot):
            return None
        name = spelled_from(path, own)
        given = [
            text if slot.isdigit() else f"{slot}={text}"
            for slot, text in zip(made.inputs, texts, strict=True)
        ]
        return f"{name}({', '.join(given)})"

    def _is_called_elsewhere(self, order: int) -> bool:
        """Whether the port makes a call already that will stay when the place is rewritten."""
        op = next((op for op in self.comparison.port.ops if op.call == order), None)
        spot = None if op is None else fixing.spot_of(op)
        return op is not None and (spot is None or id(spot.node) not in self.place.free)

    def _moved(self, array: Array) -> str | None:
        """A value that has a name in another shape."""
        for known in self.known:
            if known.op is None and known.array.size == array.size and array.size > 1:
                text = moved(known.text, known.array, array, self.framework)
                if text is not None and _is(known.array.reshape(array.shape), array):
                    return text
        for known in self.known:
            if known.op is not None or sorted(known.array.shape) != sorted(array.shape) or array.ndim > 5:
                continue
            for axes in permutations(range(array.ndim)):
                if _is(known.array.transpose(axes), array):
                    return permuted(known.text, axes, self.framework)
        return None


def writing_comparison(case: Case) -> OpComparison | None:
    """Both sides' code of a call, to write in; no value of it is under suspicion."""
    if "writing comparison" not in case.looked_up:
        case.looked_up["writing comparison"] = _writing_comparison(case)
    found: OpComparison | None = case.looked_up["writing comparison"]
    return found


def _writing_comparison(case: Case) -> OpComparison | None:
    port, reference = watched(case, own=True), watched(case, own=False)
    if port is None or reference is None or not port.values:
        return None
    matches = match(port.values, reference.values)
    return OpComparison(case, port, reference, matches, next(iter(port.values)), None, None, None, [], [])


def _is(mine: Array, wanted: Array) -> bool:
    if mine.shape != wanted.shape or (mine.dtype.kind in "fV") != (wanted.dtype.kind in "fV"):
        return False
    a, b = ComparableValue(mine), ComparableValue(wanted)
    return close(a.wide.reshape(-1), b.wide.reshape(-1), ROUNDING * max(a.epsilon, b.epsilon))


def _known(comparison: OpComparison, place: EditPlace) -> Iterator[KnownText]:
    """What the code can write there: what stood there, names, weights, what it computed before."""
    backend, spot = comparison.case.backend, place.spot
    steps = _steps(comparison, place)
    expressions = list(_expressions(comparison, steps))
    here = (*place.without, spot.statement)
    for known, statement in expressions:
        if statement in here and _stays(known.text, place, statement.lineno):
            yield known
    for name, tensor in _locals(place, steps).items():
        yield KnownText(name, backend.to_array(tensor, copy=False))
    yield from _assigned(comparison, place, steps)
    if has_self(spot):
        for entry in backend.state(comparison.case.module):
            array = backend.to_array(entry.value, copy=False)
            yield KnownText(spelled_from(entry.path, ""), array)
    for known, statement in expressions:  # of earlier statements, if their names stand for the same still
        stays = not names_in(known.text) & stored_between(spot, statement.lineno, place.begin.lineno)
        if known.op is None and statement not in here and stays:
            yield known
    yield from _helped(comparison, place)


def _steps(comparison: OpComparison, place: EditPlace) -> list[Op]:
    """What the function around did until the statement."""
    spot = place.spot
    lines = range(first_line(spot), (spot.statement.end_lineno or 0) + 1)
    ops = comparison.port.ops[: place.moment + 1]
    return [op for op in ops if op.file == spot.source.file and op.line in lines]


def _locals(place: EditPlace, steps: list[Op]) -> Mapping[str, Any]:
    """Names that keep their value from the last step on."""
    if place.around is not None and not place.without:
        return place.around
    lines = range((place.without[-1].end_lineno or 0) + 1) if place.without else None
    until = [op for op in steps if lines is None or op.line in lines]
    if not until:
        return {}
    stored = stored_between(place.spot, until[-1].line or 0, place.begin.lineno)
    around = until[-1].around.items()
    return {name: tensor for name, tensor in around if name.partition("[")[0] not in stored}


def _assigned(comparison: OpComparison, place: EditPlace, steps: list[Op]) -> Iterator[KnownText]:
    """Names that earlier statements give to what a step makes, if they still stand for it."""
    seen: set[str] = set()  # in a loop a name stands for what it got last
    for op in reversed(steps):
        made = fixing.spot_of(op)
        name = None if made is None or len(op.outputs) != 1 else assigned_name(made)
        if made is None or name is None or made.statement in (place.spot.statement, *place.without):
            continue
        if name in seen:
            continue
        seen.add(name)
        begin = (made.statement.end_lineno or 0) + 1
        if name not in stored_between(place.spot, begin, place.begin.lineno):
            yield KnownText(name, comparison.port.values[next(iter(op.outputs.values()))])


def _expressions(comparison: OpComparison, steps: list[Op]) -> Iterator[tuple[KnownText, ast.stmt]]:
    """Ops and calls that stand in the source, with the statements they are in.

    What is computed from a call that is given something else than the reference's is not what it seems.
    """
    found = [(op, fixing.spot_of(op)) for op in steps if len(op.outputs) == 1]
    spots = [(op, spot) for op, spot in found if spot is not None and isinstance(spot.node, ast.expr)]
    calls = [spot.node for op, spot in spots if op.is_module]
    for op, spot in spots:
        if not any(call is not spot.node and _is_inside(call, spot.node) for call in calls):
            array = comparison.port.values[next(iter(op.outputs.values()))]
            yield (
                KnownText(spot.source.segment(spot.node), array, op if op.is_module else None),
                spot.statement,
            )


def _is_inside(inner: ast.AST, outer: ast.AST) -> bool:
    """Of two nodes of one tree."""
    one, other = bounds(inner), bounds(outer)
    begins = (other[0], other[2]) <= (one[0], one[2])
    return begins and (one[1], one[3]) <= (other[1], other[3])


def _helped(comparison: OpComparison, place: EditPlace) -> Iterator[KnownText]:
    """Calls of the user's own functions in what is rewritten: elsewhere they would be made twice."""
    source, backend, free = place.spot.source, comparison.case.backend, place.free
    for each in comparison.port.returns:
        call = find_call(*each.caller) if each.caller[0] == source.file else None
        if call is None or not each.alone or each.moment > place.moment + 1 or id(call.node) not in free:
            continue
        text = source.segment(call.node)
        if _stays(text, place, call.node.lineno):
            yield KnownText(text, backend.to_array(each.tensor))


def _stays(text: str, place: EditPlace, line: int) -> bool:
    """Whether what is read at a line is still the same without the statements that go."""
    return not names_in(text) & stored_between(place.spot, place.begin.lineno, line)


def _counterpart(comparison: OpComparison, made: Op) -> tuple[int | None, str | None]:
    """The port's call that is paired with the reference's, and its layer; or else one of the same name."""
    case = comparison.case
    assert made.call is not None
    nodes, modules = case.precise.port.trace.nodes, case.precise.port.modules
    given = {id(value) for value in case.precise.reference.trace.nodes[made.call].outputs.values()}
    for order, binding in case.precise.port.script.ties.items():
        if given & {id(value) for value in binding.outputs.values()}:
            return order, nodes[order].path
    root = "" if case.reference_node is None else case.reference_node.path
    path = made.path or ""
    relative = path[len(root) + 1 :] if root else path
    whole = f"{case.node.path}.{relative}" if case.node.path else relative
    return None, whole if whole in modules else None
