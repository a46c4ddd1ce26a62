"""Where in the user's source a layer was made, and what that line should be.

A fix of a layer's setting is tried on the running model: ``port.norm = LayerNorm(8, epsilon=1e-05)``.
The line to change for good is the constructor call in the files of the user's modules that may have made the
layer: of its class, with no argument that contradicts the layer's settings. It is named only if it is the
only one, or the only one that assigns the layer's name, and if every layer it made needs the same change.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parfocal.backends.building import LayerBuilder
from parfocal.explain.case import Case
from parfocal.explain.causes import PortLine
from parfocal.explain.fixes.imports import dotted_name, imported, last_word
from parfocal.explain.fixes.literals import written
from parfocal.explain.fixes.scopes import class_around
from parfocal.explain.fixes.sources import Source, SourceSpot, read
from parfocal.explain.fixes.splicing import Patch, changing, keyword_text
from parfocal.judge.verdict import Fix

Arguments = Mapping[str, Any]
_UNKNOWN = object()  # an argument that is no literal


@dataclass(frozen=True, slots=True)
class _Made:
    """A constructor call in the user's source, and the arguments written there."""

    spot: SourceSpot
    call: ast.Call
    said: Mapping[str, ast.expr]

    def could_make(self, arguments: Arguments, defaults: Arguments) -> bool:
        """Whether no written argument, and no default, contradicts a layer's settings."""
        for name, value in arguments.items():
            said = _value(self.said[name]) if name in self.said else defaults.get(name, _UNKNOWN)
            if said is not _UNKNOWN and not _alike(said, value):
                return False
        return True


def in_the_constructor(case: Case, fix: Fix) -> Fix:
    """The line of the user's source that made the layer, as it should be; else the fix as it is."""
    return _constructor(case, fix) or fix


def _constructor(case: Case, fix: Fix) -> Patch | None:
    builder, kind = case.backend, type(case.module)
    call = _call(fix.made) if isinstance(fix, PortLine) else None
    if call is None or not isinstance(builder, LayerBuilder) or not builder.can_build(case.module):
        return None
    spelled = _call(builder.spell(case.node.kind, case.node.settings))
    if spelled is None or ast.dump(spelled.func) != ast.dump(call.func):
        return None  # a layer of another class
    defaults, names = _signature(kind)
    old, new = ({**defaults, **_arguments(each, names)} for each in (spelled, call))
    changed = {name: value for name, value in new.items() if not _alike(old.get(name, _UNKNOWN), value)}
    calls = list(_calls(case, ast.unparse(spelled.func), names))
    possible = [each for each in calls if each.could_make(old, defaults)]
    made = [each for each in possible if _keeps(each.spot, case, case.node.path)] or possible
    if len(made) != 1 or not changed or not _suits_all(case, made[0], calls, defaults, names):
        return None
    return _changed(made[0], changed)


def _keeps(spot: SourceSpot, case: Case, path: str) -> bool:
    """Whether the statement assigns the attribute under which the user's module holds a layer."""
    parts = path.split(".")
    for length in reversed(range(len(parts))):
        module = case.precise.port.modules[".".join(parts[:length])]
        if not case.backend.is_framework_layer(module):
            kept = any(
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and node.attr == parts[length]
                for node in ast.walk(spot.statement)
            )
            return kept and class_around(spot) in {kind.__name__ for kind in type(module).__mro__}
    return False


def _call(made: str) -> ast.Call | None:
    """The code that makes a layer as a call; None where it is no single call."""
    expression = ast.parse(made, mode="eval").body if made else None
    return expression if isinstance(expression, ast.Call) else None


def _signature(kind: type[Any]) -> tuple[dict[str, Any], list[str]]:
    """Defaults, and the names of all arguments in order."""
    parameters = [
        each for each in inspect.signature(kind.__init__).parameters.values() if each.name != "self"
    ]
    defaults = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
    return defaults, [each.name for each in parameters]


def _arguments(call: ast.Call, names: list[str]) -> dict[str, Any]:
    return {name: _value(node) for name, node in _said(call, names).items()}


def _said(call: ast.Call, names: list[str]) -> dict[str, ast.expr]:
    said = dict(zip(names, call.args, strict=False))
    return said | {each.arg: each.value for each in call.keywords if each.arg is not None}


def _value(node: ast.expr) -> Any:
    """The value of a literal."""
    try:
        return ast.literal_eval(node)
    except ValueError:
        return _UNKNOWN


def _alike(one: Any, other: Any) -> bool:
    """Equal, or one number on one side and a sequence of that number on the other."""
    if isinstance(one, (list, tuple)) != isinstance(other, (list, tuple)):
        row, single = (one, other) if isinstance(one, (list, tuple)) else (other, one)
        return bool(row) and all(item == single for item in row)
    return bool(one == other) if not isinstance(one, (list, tuple)) else list(one) == list(other)


def _calls(case: Case, dotted: str, names: list[str]) -> Iterator[_Made]:
    """Constructor calls of a class in the files of the port's own modules."""
    for source in _sources(case):
        words = _words_for(dotted.rpartition(".")[2], source)
        for statement, node in source.calls:
            if last_word(node.func, {}) not in words or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            if dotted_name(node.func, imported(source, statement)) == dotted:
                yield _Made(SourceSpot(source, statement, node), node, _said(node, names))


def _words_for(name: str, source: Source) -> set[str]:
    """The name of a class, and what imports of the file call it."""
    imports = (node for node in source.nodes if isinstance(node, ast.ImportFrom))
    aliases = (alias for node in imports for alias in node.names if alias.name == name)
    return {name, *(alias.asname for alias in aliases if alias.asname is not None)}


def _sources(case: Case) -> Iterable[Source]:
    """The files that define the classes of the port's own modules, each once."""
    found: dict[str, Source] = {}
    modules = {type(module): module for module in case.precise.port.modules.values()}
    for kind, module in modules.items():
        if case.backend.is_framework_layer(module):
            continue
        for name in ("__init__", "forward"):
            code: Any = getattr(getattr(kind, name), "__code__", None)
            source = None if code is None else read(code.co_filename)
            if source is not None:
                found.setdefault(source.file, source)
    return found.values()


def _suits_all(case: Case, made: _Made, calls: list[_Made], defaults: Arguments, names: list[str]) -> bool:
    """Whether every layer that the call may have made should be changed like this one.

    A layer that is kept under a name which another call assigns was made by that one.
    """
    others = [each for each in calls if each is not made]
    builder, kind, other = case.backend, type(case.module), case.reference_node
    assert isinstance(builder, LayerBuilder)
    if other is None:
        return False
    wanted = {name: value for name, value in other.settings.items() if case.node.settings.get(name) != value}
    for node in case.precise.port.trace.nodes:
        if type(case.precise.port.modules[node.path]) is not kind:
            continue
        spelled = _call(builder.spell(node.kind, node.settings))
        if spelled is None or not made.could_make({**defaults, **_arguments(spelled, names)}, defaults):
            continue
        if not _keeps(made.spot, case, node.path) and any(
            _keeps(each.spot, case, node.path) for each in others
        ):
            continue
        twin = case.counterpart_of(node.order)
        settings = {} if twin is None else case.precise.reference.trace.nodes[twin].settings
        if any(settings.get(name, _UNKNOWN) != value for name, value in wanted.items()):
            return False
    return True


def _changed(made: _Made, changed: Arguments) -> Patch | None:
    """The call with other values; None where a value comes from elsewhere."""
    source = made.spot.source
    if any(_value(made.said[name]) is _UNKNOWN for name in changed if name in made.said):
        return None
    by_node = {made.said[name]: written(value) for name, value in changed.items() if name in made.said}
    parts = [by_node.get(each, source.segment(each)) for each in made.call.args]
    parts += [
        f"{each.arg}={by_node[each.value]}" if each.value in by_node else keyword_text(source, each)
        for each in made.call.keywords
    ]
    parts += [f"{name}={written(value)}" for name, value in changed.items() if name not in made.said]
    return changing(made.spot, {made.call: f"{source.segment(made.call.func)}({', '.join(parts)})"})
