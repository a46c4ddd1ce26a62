"""A line that several modules run: a fix for one of them must leave those right that are.

The patched code is tried on the other modules' calls. Where it would spoil one, the new line is told
for those modules alone that an attribute of theirs tells apart.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from parfocal.explain.case import Case
from parfocal.explain.causes import place
from parfocal.explain.fixes.fixing import Line
from parfocal.explain.fixes.literals import written
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.fixes.trying import patched

MOST = 6  # other modules that are asked
FLAG = "training"  # an attribute of every module that says nothing about which it is


def in_shared_code(case: Case, fix: str) -> str:
    """The fix as it is, for some modules alone, or in words that say so."""
    if not isinstance(fix, Line) or case.direction != "forward":
        return fix
    others = list(_others(case, fix.patch))
    if not others:
        return fix
    with patched(case.precise.port.modules.values(), fix.patch):
        wrong = [other for other in others if not _is_right(other)]
    spoilt = [other for other in wrong if _is_right(other)]
    if not spoilt:
        return fix
    kept = [other for other in others if other not in wrong]
    needing = [case.module, *(other.module for other in kept if not _is_right(other))]
    line = _for_some(fix.patch, needing, [other.module for other in spoilt])
    if line is not None:
        return line
    paths = ", ".join(place(other.node) for other in spoilt)
    return f"for {place(case.node)} alone, because the line is right for {paths}: {fix}"


def _is_right(case: Case) -> bool:
    return case.score(case.run(inside=False)) <= case.limit


def _others(case: Case, patch: Patch) -> Iterator[Case]:
    """Calls of other modules that run the patched function, or of others of the same class."""
    nodes, modules = case.precise.port.trace.nodes, case.precise.port.modules
    with patched(modules.values(), patch) as functions:
        changed = {id(function) for function in functions}
    seen = {case.node.path}
    for node in nodes:
        if node.path in seen or not _runs(modules[node.path], case.module, changed):
            continue
        seen.add(node.path)
        counterpart = case.counterpart_of(node.order)
        if counterpart is not None and len(seen) <= MOST + 1:
            other = replace(case, call=node.order, counterpart=counterpart, looked_up={}, _baseline=None)
            yield other.at_outputs()


def _runs(module: Any, guilty: Any, functions: set[int]) -> bool:
    members = (id(member) for kind in type(module).__mro__ for member in vars(kind).values())
    return type(module) is type(guilty) or any(member in functions for member in members)


def _for_some(patch: Patch, needing: Sequence[Any], others: Sequence[Any]) -> Line | None:
    """The new value where an attribute is what it is in the modules that need it, else the old one."""
    old, new = (ast.parse(text).body[0] for text in (patch.old, patch.new))
    values = [each.value for each in (old, new) if isinstance(each, (ast.Assign, ast.Return))]
    if len(values) != 2 or None in values or patch.also or type(old) is not type(new):
        return None
    if isinstance(old, ast.Assign) and isinstance(new, ast.Assign):
        if [ast.dump(each) for each in old.targets] != [ast.dump(each) for each in new.targets]:
            return None
        begin = f"{' = '.join(ast.unparse(each) for each in old.targets)} ="
    else:
        begin = "return"
    before, after = (ast.unparse(value) for value in values if value is not None)
    for name, value in vars(needing[0]).items():
        plain = isinstance(value, (bool, int, float, str)) and not name.startswith("_") and name != FLAG
        alike = all(vars(each).get(name) == value for each in needing)
        if plain and alike and all(vars(each).get(name, value) != value for each in others):
            text = f"{begin} {after} if self.{name} == {written(value)} else {before}"
            return Line.of(replace(patch, new=text))
    return None
