"""A line that several calls run: a fix for one of them must not break calls that are already correct.

The patched code is tried on the other calls. If it breaks one, another line that mends and breaks none is
taken; or else the new line is written with a condition on an attribute that only the wrong modules have.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parfocal.explain.case import Case
from parfocal.explain.case_facts import Check
from parfocal.explain.causes import place
from parfocal.explain.fixes.literals import written
from parfocal.explain.fixes.scopes import is_in_method
from parfocal.explain.fixes.splicing import Patch
from parfocal.explain.fixes.trying import patched
from parfocal.judge import limits
from parfocal.judge.verdict import Fix
from parfocal.phrases import joined, phrase
from parfocal.replay.repeat import RepeatResult

MOST = limits.searches.SHARING_MODULES.value
PLAIN = (bool, int, float, str)  # what an attribute can be asked for in a line of code
FLAG = "training"  # an attribute of every module that says nothing about which it is


def in_shared_code(case: Case, fix: Fix) -> Fix:
    """The fix as it is, another line that is right for more, the line for some modules alone, or words."""
    if not isinstance(fix, Patch) or case.direction != "forward":
        return fix
    others = list(_others(case, fix))
    if not others:
        return fix
    with patched(case.precise.port.modules.values(), fix):
        wrong = [other for other in others if not _is_right(other)]
    if not wrong:
        return fix
    spoilt = [other for other in wrong if _is_right(other)]
    mended = 0 if spoilt else 1 + len(others) - len(wrong)
    better = _better(case, fix.others, others, spoilt, mended)
    if better is not None:
        return better
    if not spoilt:
        return fix
    kept = [other for other in others if other not in wrong]
    needing = [case.module, *(other.module for other in kept if not _is_right(other))]
    line = _for_some(fix, needing, [other.module for other in spoilt])
    if line is not None:
        return line
    paths = joined(", ", dict.fromkeys(place(other.node) for other in spoilt))
    return phrase(
        "write {new} in {place} for {case_place} alone: it is right for {paths}",
        new=fix.new,
        place=fix.place,
        case_place=place(case.node),
        paths=paths,
    )


def _better(
    case: Case, patches: Sequence[Patch], others: Sequence[Case], spoilt: Sequence[Case], mended: int
) -> Patch | None:
    """The alternative line that mends more calls and breaks none."""
    whole, around = case.at_outputs(), _calling(case, others)
    best = None
    for patch in patches:
        with patched(case.precise.port.modules.values(), patch) as functions:
            if not functions:
                continue
            if _is_right(whole):
                right = 1 + sum(map(_is_right, others)) if all(map(_is_right, spoilt)) else 0
            else:  # the line may be one of the code that makes the calls
                right = 0 if around is None else around.right(around.case.run())
        if right > mended:
            best, mended = patch, right
    return best


@dataclass(frozen=True, slots=True)
class _Calling:
    """The code that makes a call and others like it: ``checks``, by call, are what they give."""

    case: Case
    checks: Sequence[Sequence[Check]]

    def right(self, repeated: RepeatResult | None) -> int:
        """How many of the calls are right; 0 if the first, which the fix is for, is not."""
        right = [self._is_right(repeated, checks) for checks in self.checks]
        return sum(right) if right[0] else 0

    def _is_right(self, repeated: RepeatResult | None, checks: Sequence[Check]) -> bool:
        return bool(checks) and replace(self.case, checks=tuple(checks)).score(repeated) <= self.case.limit


def _calling(case: Case, others: Sequence[Case]) -> _Calling | None:
    parent, other = case.node.parent, case.reference_node
    if parent is None or other is None or other.parent is None:
        return None
    calls = [case.at_outputs(), *(each for each in others if each.node.parent == parent)]
    checks = [each.checks for each in calls]
    together = tuple(check for each in checks for check in each)
    outer = replace(
        case, call=parent, counterpart=other.parent, checks=together, looked_up={}, _baseline=None
    )
    return _Calling(outer, checks)


def _is_right(case: Case) -> bool:
    return case.tried(inside=False) <= case.limit


def _others(case: Case, patch: Patch) -> Iterator[Case]:
    """Other calls of modules that run the patched function, or of others of the same class."""
    nodes, modules = case.precise.port.trace.nodes, case.precise.port.modules
    with patched(modules.values(), patch) as functions:
        changed = {id(function) for function in functions}
    seen: set[str] = set()
    count = 0
    for node in nodes:
        own = node.path == case.node.path  # a module that is called several times
        if node.order == case.call or node.path in seen or count == MOST:
            continue
        counterpart = case.counterpart_of(node.order)
        if counterpart is None or not _runs(modules[node.path], case.module, changed):
            continue
        seen |= set() if own else {node.path}
        count += 1
        other = replace(case, call=node.order, counterpart=counterpart, looked_up={}, _baseline=None)
        yield other.at_outputs()


def _runs(module: Any, guilty: Any, functions: set[int]) -> bool:
    members = (id(member) for kind in type(module).__mro__ for member in vars(kind).values())
    return type(module) is type(guilty) or any(member in functions for member in members)


def _has(module: Any, name: str, value: Any, *, missing: bool = False) -> bool:
    """Whether a module's attribute has a plain value; ``missing`` where it has no such attribute."""
    if name not in vars(module):
        return missing
    other = vars(module)[name]
    return isinstance(other, PLAIN) and bool(other == value)


def _for_some(patch: Patch, needing: Sequence[Any], others: Sequence[Any]) -> Patch | None:
    """The new value where an attribute is what it is in the modules that need it, else the old one."""
    old, new = (ast.parse(text).body[0] for text in (patch.old, patch.new))
    values = [each.value for each in (old, new) if isinstance(each, (ast.Assign, ast.Return))]
    if len(values) != 2 or None in values or patch.also or type(old) is not type(new):
        return None
    if not is_in_method(patch.file, patch.line):
        return None  # what a helper is asked by has no name there
    if isinstance(old, ast.Assign) and isinstance(new, ast.Assign):
        if [ast.dump(each) for each in old.targets] != [ast.dump(each) for each in new.targets]:
            return None
        begin = f"{' = '.join(ast.unparse(each) for each in old.targets)} ="
    else:
        begin = "return"
    before, after = (ast.unparse(value) for value in values if value is not None)
    for name, value in vars(needing[0]).items():
        if not isinstance(value, PLAIN) or name.startswith("_") or name == FLAG:
            continue  # a tensor, say, has no plain yes or no to whether it is another's
        alike = all(_has(each, name, value) for each in needing)
        if alike and not any(_has(each, name, value, missing=True) for each in others):
            text = f"{begin} {after} if self.{name} == {written(value)} else {before}"
            return replace(patch, new=text)
    return None
