"""What ``parfocal map`` found, as JSON and in words."""

from __future__ import annotations

from typing import Any

from parfocal.backends.counterparts.entry import Category, Relation
from parfocal.backends.counterparts.lookup import ArgumentRow, ArgumentSide, Match
from parfocal.backends.counterparts.parameters import Move, ParameterCounterpart
from parfocal.backends.gaps import Family, Gap, Status, Symptom
from parfocal.locale import ENGLISH
from parfocal.phrases import joined, phrase

CATEGORIES = {
    Category.LAYER: phrase("layer"),
    Category.LOSS: phrase("loss"),
    Category.FUNCTION: phrase("function"),
    Category.TENSOR: phrase("tensor function"),
    Category.OPTIMIZER: phrase("optimizer"),
    Category.SCHEDULER: phrase("scheduler"),
    Category.INITIALISER: phrase("initialiser"),
    Category.TOOL: phrase("tool"),
    Category.MODULE: phrase("module"),
}
FAMILIES = {
    Family.PARAMETERS: phrase("Parameters and loading"),
    Family.NORMALISATION: phrase("Normalisation"),
    Family.WINDOWS: phrase("Convolution, pooling and resizing"),
    Family.ACTIVATIONS: phrase("Activations and random numbers"),
    Family.LOSSES: phrase("Losses"),
    Family.SEQUENCES: phrase("Recurrence, attention and embedding"),
    Family.INITIALISATION: phrase("Initialisation"),
    Family.OPTIMIZERS: phrase("Optimizers and clipping"),
    Family.SCHEDULES: phrase("Learning rates"),
    Family.TENSORS: phrase("Tensor functions"),
    Family.DATA: phrase("Data and metrics"),
}
STATUSES = {Status.VERIFIED: phrase("verified"), Status.READ: phrase("read, not run")}
_SYMPTOMS = {
    Symptom.LOADING: phrase("loading"),
    Symptom.FORWARD: phrase("forward"),
    Symptom.BACKWARD: phrase("backward"),
    Symptom.UPDATE: phrase("update"),
    Symptom.TRAINING: phrase("training"),
    Symptom.EVALUATION: phrase("evaluation after training"),
    Symptom.DATA: phrase("data"),
    Symptom.METRIC: phrase("metric"),
    Symptom.ERROR: phrase("error"),
}
_MOVES = {
    Move.SAME: phrase("same"),
    Move.RENAMED: phrase("renamed"),
    Move.TRANSPOSED: phrase("transposed"),
    Move.RESHAPED: phrase("reshaped"),
    Move.SPLIT: phrase("one of three parts"),
    Move.DROPPED: phrase("dropped"),
}


def symptom_words(symptom: str) -> str:
    """Where a difference shows, by the symptom's value."""
    return _SYMPTOMS[Symptom(symptom)]


def to_json(match: Match) -> dict[str, Any]:
    entry = match.counterpart
    return {
        "name": match.name,
        "framework": match.source,
        "to": match.target,
        "counterpart": entry.name(match.target),
        "exact": entry.exact,
        "category": entry.category.value,
        "meaning": meaning(match),
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
        return phrase("{name} has no counterpart in {target}", name=match.name, target=match.target)
    arrow = f"{match.name} -> {found}"
    if entry.exact:
        return arrow
    return phrase("{arrow} (the nearest relation: there is no exact counterpart)", arrow=arrow)


def meaning(match: Match, language: str = ENGLISH) -> str:
    """What it is for; empty where no table says so."""
    found = match.counterpart.meaning
    return found.words(language) if found else ""


def instead(match: Match, language: str = ENGLISH) -> str:
    """What to write where there is no counterpart; empty where there is one or nothing is known."""
    if match.counterpart.name(match.target) is not None:
        return ""
    fixes = [gap.words(language).fix for gap in match.gaps if match.name in gap.absent]
    known = match.counterpart.instead
    return " ".join(fixes) or (known.words(language) if known else "")


def relation(row: ArgumentRow) -> str:
    """How the values of two arguments are related; empty where they are the same."""
    lacking = "paddle" if row.paddle is None else "torch"
    words = {
        Relation.SAME: "",
        Relation.COMPLEMENT: "paddle = 1 - torch",
        Relation.OPPOSITE: "paddle = not torch",
        Relation.PRESENCE: phrase("paddle = False where torch is False"),
        Relation.PARTS: phrase("the parts of torch's"),
        Relation.FIXED: phrase(
            "{lacking} always behaves as {values}",
            lacking=lacking,
            values=joined(", ", map(repr, row.values)),
        ),
        Relation.ONE_SIDED: phrase("{lacking} has none", lacking=lacking),
    }
    if row.relation is Relation.CONVERTED:
        return joined(
            ", ",
            (
                phrase("{ours} is {theirs}", ours=repr(ours), theirs=repr(theirs))
                for ours, theirs in row.values
            ),
        )
    if row.relation is Relation.SAME and _defaults_differ(row):
        return phrase("other default")
    return words[row.relation]


def _defaults_differ(row: ArgumentRow) -> bool:
    defaults = [side.default for side in (row.torch, row.paddle) if side is not None]
    return len(set(defaults)) > 1 and None not in defaults


def layout(name: str | None, axes: tuple[str, ...]) -> str:
    return "" if name is None else f"{name} [{', '.join(axes)}]"


def moves(each: ParameterCounterpart) -> str:
    """What becomes of a tensor on the way from torch to paddle."""
    told = [_MOVES[move] for move in each.moves]
    if each.rows:
        told.append(phrase("rows in the same order: {rows}", rows=joined(", ", each.rows)))
    return joined(", ", told)
