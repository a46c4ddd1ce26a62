"""A call of the port's source with other arguments than it has."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from parfocal.explain.fixes.sources import SourceSpot
from parfocal.explain.fixes.splicing import Patch, changing, keyword_text


def leaving_out(spot: SourceSpot, names: Collection[str]) -> Patch | None:
    """A call without some arguments, by position or keyword; ``None`` is written for one in the middle."""
    call = spot.node
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    args = ["None" if str(i) in names else spot.source.segment(each) for i, each in enumerate(call.args)]
    while args and str(len(args) - 1) in names:
        args.pop()
    keywords = [keyword_text(spot.source, each) for each in call.keywords if each.arg not in names]
    return changing(spot, {call: f"{spot.source.segment(call.func)}({', '.join((*args, *keywords))})"})


def passing(spot: SourceSpot, texts: Mapping[str, str]) -> Patch | None:
    """A call with more arguments, by position or keyword."""
    call = spot.node
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    places = {int(slot): text for slot, text in texts.items() if slot.isdigit()}
    args = [places.pop(i, spot.source.segment(each)) for i, each in enumerate(call.args)]
    if sorted(places) != list(range(len(args), len(args) + len(places))):
        return None
    args += [places[i] for i in sorted(places)]
    named = {slot: text for slot, text in texts.items() if not slot.isdigit()}
    keywords = [keyword_text(spot.source, each) for each in call.keywords if each.arg not in named]
    keywords += [f"{name}={text}" for name, text in named.items()]
    return changing(spot, {call: f"{spot.source.segment(call.func)}({', '.join((*args, *keywords))})"})


def argument_text(spot: SourceSpot, slot: str) -> str | None:
    """How an argument is written in a call, by its position or keyword."""
    call = spot.node
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    if slot.isdigit():
        return spot.source.segment(call.args[int(slot)]) if int(slot) < len(call.args) else None
    found = [each.value for each in call.keywords if each.arg == slot]
    return spot.source.segment(found[0]) if found else None


def recalling(spot: SourceSpot, name: str) -> Patch | None:
    """A call of something else with the same arguments."""
    return changing(spot, {spot.node.func: name}) if isinstance(spot.node, ast.Call) else None
