"""What ``parfocal map`` found, as JSON and in words."""

from __future__ import annotations

from typing import Any

from parfocal.backends.counterparts.entry import Relation
from parfocal.backends.counterparts.lookup import ArgumentRow, ArgumentSide, Match
from parfocal.backends.counterparts.parameters import ParameterCounterpart
from parfocal.backends.gaps.entry import Gap


def to_json(match: Match) -> dict[str, Any]:
    entry = match.counterpart
    return {
        "name": match.name,
        "framework": match.source,
        "to": match.target,
        "counterpart": entry.name(match.target),
        "exact": entry.exact,
        "category": entry.category.value,
        "meaning": entry.meaning,
        "instead": instead(match),
        "arguments": [_argument(row) for row in match.arguments],
        "parameters": [_stored(each) for each in match.parameters],
        "differences": [_gap(gap) for gap in match.gaps],
        "not_installed": list(match.missing),
    }


def _argument(row: ArgumentRow) -> dict[str, Any]:
    return {
        "torch": _side(row.torch),
        "paddle": _side(row.paddle),
        "relation": row.relation.value,
        "values": [list(each) if isinstance(each, tuple) else each for each in row.values],
    }


def _side(side: ArgumentSide | None) -> dict[str, Any] | None:
    return None if side is None else {"name": side.name, "default": side.default}


def _stored(each: ParameterCounterpart) -> dict[str, Any]:
    return {
        "torch": each.torch,
        "torch_axes": list(each.torch_axes),
        "paddle": each.paddle,
        "paddle_axes": list(each.paddle_axes),
        "moves": [move.value for move in each.moves],
        "rows": list(each.rows),
    }


def _gap(gap: Gap) -> dict[str, Any]:
    words = gap.words()
    return {
        "id": gap.id,
        "status": gap.status.value,
        "symptoms": [symptom.value for symptom in gap.symptoms],
        "title": words.title,
        "torch": words.torch,
        "paddle": words.paddle,
        "seen": words.seen,
        "fix": words.fix,
    }


def headline(match: Match) -> str:
    entry = match.counterpart
    found = entry.name(match.target)
    if found is None:
        return f"{match.name} has no counterpart in {match.target}"
    arrow = f"{match.name} -> {found}"
    return arrow if entry.exact else f"{arrow} (the nearest relation: there is no exact counterpart)"


def instead(match: Match) -> str:
    """What to write where there is no counterpart; empty where there is one or nothing is known."""
    if match.counterpart.name(match.target) is not None:
        return ""
    fixes = [gap.words().fix for gap in match.gaps if match.name in gap.absent]
    return " ".join(fixes) or match.counterpart.instead


def relation(row: ArgumentRow) -> str:
    """How the values of two arguments are related; empty where they are the same."""
    lacking = "paddle" if row.paddle is None else "torch"
    words = {
        Relation.SAME: "",
        Relation.COMPLEMENT: "paddle = 1 - torch",
        Relation.OPPOSITE: "paddle = not torch",
        Relation.PRESENCE: "paddle = False where torch is False",
        Relation.PARTS: "the parts of torch's",
        Relation.FIXED: f"{lacking} always behaves as {', '.join(map(repr, row.values))}",
        Relation.ONE_SIDED: f"{lacking} has none",
    }
    if row.relation is Relation.CONVERTED:
        return ", ".join(f"{ours!r} is {theirs!r}" for ours, theirs in row.values)
    if row.relation is Relation.SAME and _defaults_differ(row):
        return "other default"
    return words[row.relation]


def _defaults_differ(row: ArgumentRow) -> bool:
    defaults = [side.default for side in (row.torch, row.paddle) if side is not None]
    return len(set(defaults)) > 1 and None not in defaults


def layout(name: str | None, axes: tuple[str, ...]) -> str:
    return "" if name is None else f"{name} [{', '.join(axes)}]"


def moves(each: ParameterCounterpart) -> str:
    """What becomes of a tensor on the way from torch to paddle."""
    told = [move.value for move in each.moves]
    if each.rows:
        told.append(f"rows in the same order: {', '.join(each.rows)}")
    return ", ".join(told)
