"""The lines that give an argument another value: where it is written, or where a caller passes it in.

A line that runs several times with different values cannot contain a number; it then uses a name that has
the right value, or the caller passes the value in. ``ops/rewriting.py`` tries which of the lines is right.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parfocal.explain.fixes.finding import find_calling
from parfocal.explain.fixes.frames import UserFrame
from parfocal.explain.fixes.literals import CodeLiteral
from parfocal.explain.fixes.naming import named
from parfocal.explain.fixes.operands import FunctionArgument, said_by
from parfocal.explain.fixes.patching import telling
from parfocal.explain.fixes.scopes import functions_around
from parfocal.explain.fixes.sources import SourceSpot
from parfocal.explain.fixes.splicing import Patch

Function = ast.FunctionDef | ast.AsyncFunctionDef
Around = Callable[[], Sequence[UserFrame]]  # the frames beyond, which take a run to see


def lines(
    spot: SourceSpot, argument: FunctionArgument, frames: Sequence[UserFrame], around: Around = tuple
) -> list[Patch]:
    """Each once, the likeliest first. ``frames``: of the code at the spot, and of its callers."""
    return list(dict.fromkeys(_lines(spot, argument, frames, around)))


def _lines(
    spot: SourceSpot, argument: FunctionArgument, frames: Sequence[UserFrame], around: Around
) -> Iterator[Patch]:
    function = max(functions_around(spot), key=lambda each: each.lineno, default=None)
    names = frames[0].names if frames else {}
    literal = telling(spot, argument)
    by_name = {
        text: patch
        for text, new in _words_for(argument, names)
        if (patch := telling(spot, replace(argument, new=new))) is not None
    }
    idle = set() if function is None else _parameters(function).keys() - _read(function)
    outer = [] if function is None else list(_handed(spot, function, argument, frames[1:], around))
    told = any(explicit for explicit, _ in outer)
    yield from (patch for text, patch in by_name.items() if text in idle)
    yield from (patch for explicit, patch in outer if told)
    yield from () if literal is None else (literal,)
    yield from by_name.values()
    yield from (patch for _, patch in outer)


def _words_for(argument: FunctionArgument, names: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Names for a value, or for the one number of an index that is to be another."""
    yield from ((text, CodeLiteral(text)) for text in named(argument.new, names))
    old, new = argument.old, argument.new
    if isinstance(new, tuple) and isinstance(old, tuple) and len(old) == len(new):
        differing = [place for place, pair in enumerate(zip(old, new, strict=True)) if pair[0] != pair[1]]
        for place in differing if len(differing) == 1 and isinstance(new[differing[0]], int) else ():
            for text in named(new[place], names):
                yield text, (*new[:place], CodeLiteral(text), *new[place + 1 :])


def _handed(
    spot: SourceSpot,
    function: Function,
    argument: FunctionArgument,
    frames: Sequence[UserFrame],
    around: Around,
) -> Iterator[tuple[bool, Patch]]:
    """What the caller can pass, and whether it passes something now."""
    said, parameters = said_by(spot, argument), _parameters(function)
    if not isinstance(said, ast.Name) or said.id not in parameters or _is_stored(function, said.id):
        return
    callers, beyond = (frames, around) if frames else (around(), tuple)
    call = find_calling(callers[0].file, callers[0].span) if callers else None
    if call is None:
        return
    outer = FunctionArgument(said.id, parameters[said.id], argument.old, argument.new)
    explicit = said_by(call, outer) is not None
    yield from ((explicit, patch) for patch in _lines(call, outer, callers, beyond))


def _parameters(function: Function) -> dict[str, int | None]:
    """Names of the parameters that a caller can pass -> their positions."""
    places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if places and places[0] in ("self", "cls"):
        places = places[1:]
    return {
        **{name: place for place, name in enumerate(places)},
        **{each.arg: None for each in function.args.kwonlyargs},
    }


def _read(function: Function) -> set[str]:
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def _is_stored(function: Function, name: str) -> bool:
    names = (node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == name)
    return any(not isinstance(node.ctx, ast.Load) for node in names)
