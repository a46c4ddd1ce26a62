"""Matching by what stands in the models: names, shapes, kinds, order. Solved per group of equal keys.

Exactly equal names come first, so that large models stay fast. What is left is scored by names
and by position (in definition order, and in execution order where the models were run) and solved
as an assignment problem; a large group is cut into pieces first (``pieces.py``). A link that nothing
speaks for clearly is marked as undecided.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights.linking import Link
from parfocal.weights.names import likenesses, normalised, word_likeness
from parfocal.weights.pieces import UnitGroup, cut
from parfocal.weights.sequences import OrderKind, SequencePairs, UnitOrder, aligned
from parfocal.weights.units import Key, Unit

TRUSTED_NAME = limits.transfer.TRUSTED_NAME.value
MARGIN = limits.transfer.NAME_MARGIN.value
SAME_KIND = limits.transfer.SAME_KIND.value
# What the same place is worth; a model lists its own parameters before those of its layers, used or not.
GUESSED = limits.transfer.GUESSED.value
TRUST = {OrderKind.DEFINITION: 0.5, OrderKind.EXECUTION: 0.75}
SAME_NAME, BEST_GUESS = phrase("same name"), phrase("best guess")


@dataclass(slots=True)
class Matching:
    """What was linked and what is left."""

    links: list[Link] = field(default_factory=list)
    references: list[Unit] = field(default_factory=list)  # left over
    ports: list[Unit] = field(default_factory=list)


def definition_order(references: Sequence[Unit], ports: Sequence[Unit]) -> UnitOrder:
    return UnitOrder(
        OrderKind.DEFINITION,
        {unit.path: unit.rank for unit in references},
        {unit.path: unit.rank for unit in ports},
    )


def match(
    references: Sequence[Unit],
    ports: Sequence[Unit],
    orders: Sequence[UnitOrder],
    regions: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
    key: Callable[[Unit], Key] = lambda unit: unit.key,
) -> Matching:
    """Link units of equal key (and equal region, where the user drew any)."""
    alignments = [aligned(references, ports, order, key) for order in orders]
    groups: dict[tuple[str, Key], tuple[list[Unit], list[Unit]]] = defaultdict(lambda: ([], []))
    for side, units in enumerate((references, ports)):
        for unit in units:
            groups[regions[side].get(unit.path, ""), key(unit)][side].append(unit)
    matching = Matching()
    for (region, _), (mine, yours) in groups.items():
        links = _solve(mine, yours, alignments, phrase("the layers argument") if region else "")
        matching.links += links
        taken = {link.reference.path for link in links}, {link.port.path for link in links}
        matching.references += [unit for unit in mine if unit.path not in taken[0]]
        matching.ports += [unit for unit in yours if unit.path not in taken[1]]
    return matching


def _solve(mine: list[Unit], yours: list[Unit], alignments: Sequence[SequencePairs], said: str) -> list[Link]:
    if not mine or not yours:
        return []
    if len(mine) == len(yours) == 1:
        same = normalised(mine[0].path) == normalised(yours[0].path)
        only = said or phrase("the only one of this shape")
        words, confidence = (SAME_NAME, 1.0) if same else (only, 0.9)
        return [Link(mine[0], yours[0], (words,), confidence)]
    exact = _by_exact_name(mine, yours)
    if exact is not None:
        return exact
    balanced = len(mine) == len(yours)
    links: list[Link] = []
    for piece in cut(UnitGroup(mine, yours), alignments):
        links += _weigh(piece, alignments, balanced) if piece.weighable else _paired_as_they_come(piece)
    return links


def _paired_as_they_come(piece: UnitGroup) -> list[Link]:
    """Too many to be weighed each against each, and neither order nor numbers divide them."""
    return [
        Link(unit, other, (BEST_GUESS,), GUESSED, decided=False)
        for unit, other in zip(piece.references, piece.ports, strict=False)
    ]


def _weigh(piece: UnitGroup, alignments: Sequence[SequencePairs], balanced: bool) -> list[Link]:
    mine, yours = piece.references, piece.ports
    names = _name_scores(mine, yours)
    score = names.copy()
    columns = {unit.path: column for column, unit in enumerate(yours)}
    for alignment in alignments:
        for row, unit in enumerate(mine):
            column = columns.get(alignment.partner.get(unit.path, ""))
            if column is not None:
                score[row, column] += TRUST[alignment.order.kind] if alignment.trusted else 0.2
    by_name, by_score = _assign(names), _assign(score)
    if _words_differ(mine, yours, by_name, by_score):
        by_score = by_name
    clear = _clear_names(names, by_name)
    return [
        _link(mine[row], yours[column], (row, column) in clear, alignments, balanced)
        for row, column in by_score
    ]


def _by_exact_name(mine: list[Unit], yours: list[Unit]) -> list[Link] | None:
    """Both sides use the very same set of names for this shape: they are the pairs."""
    named = {normalised(unit.path): unit for unit in yours}
    forms = [normalised(unit.path) for unit in mine]
    if len(named) != len(yours) or len(set(forms)) != len(forms) or set(forms) != set(named):
        return None
    return [Link(unit, named[form], (SAME_NAME,), 1.0) for unit, form in zip(mine, forms, strict=True)]


def _name_scores(mine: Sequence[Unit], yours: Sequence[Unit]) -> NDArray[np.float64]:
    score = likenesses([unit.path for unit in mine], [unit.path for unit in yours])
    score = np.where(score == 1.0, 1.0, 0.95 * score)
    same_kind = np.equal.outer([unit.kind for unit in mine], [unit.kind for unit in yours])
    return score + SAME_KIND * same_kind


def _assign(score: NDArray[np.float64]) -> list[tuple[int, int]]:
    # Of equally good solutions, the one that keeps the order of definition.
    rows, columns = score.shape
    places = np.abs(np.arange(rows)[:, None] / rows - np.arange(columns)[None, :] / columns)
    score = score - 1e-4 * places
    best = score.argmax(axis=1)
    if rows <= columns and len(set(best.tolist())) == rows:  # everybody may have what suits them best
        return list(enumerate(best.tolist()))
    from scipy.optimize import linear_sum_assignment

    chosen = linear_sum_assignment(score, maximize=True)
    return [(int(row), int(column)) for row, column in zip(*chosen, strict=True)]


def _words_differ(
    mine: Sequence[Unit],
    yours: Sequence[Unit],
    by_name: list[tuple[int, int]],
    by_score: list[tuple[int, int]],
) -> bool:
    """Whether position would pair units whose *words* disagree, while names pair ones that agree.

    Numbers alone do not overrule position: the same list may be counted from another start.
    """

    def words(pairs: list[tuple[int, int]]) -> float:
        return sum(word_likeness(mine[row].path, yours[column].path) for row, column in pairs) / len(pairs)

    return words(by_name) - words(by_score) > MARGIN


def _clear_names(names: NDArray[np.float64], pairs: list[tuple[int, int]]) -> set[tuple[int, int]]:
    """Pairs whose names beat every other choice on both sides."""
    rows, columns = (np.array(side) for side in zip(*pairs, strict=True))
    others = names.copy()
    others[rows, columns] = 0.0
    best = np.maximum(others.max(axis=1)[rows], others.max(axis=0)[columns])
    own = names[rows, columns]
    clear = (own >= TRUSTED_NAME) & (own - best >= MARGIN)
    return {pair for pair, is_clear in zip(pairs, clear.tolist(), strict=True) if is_clear}


def _link(unit: Unit, other: Unit, clear: bool, alignments: Sequence[SequencePairs], balanced: bool) -> Link:
    kinds = [
        a.order.kind for a in alignments if a.trusted and a.partner.get(unit.path) == other.path and balanced
    ]
    ordered = tuple(kind.value for kind in kinds)
    if clear and normalised(unit.path) == normalised(other.path):
        return Link(unit, other, (SAME_NAME, *ordered), 0.98)
    if clear:
        return Link(unit, other, (phrase("alike names"), *ordered), 0.9 if ordered else 0.8)
    if ordered:
        return Link(unit, other, ordered, 0.7 if OrderKind.EXECUTION in kinds else 0.6)
    return Link(unit, other, (BEST_GUESS,), GUESSED, decided=False)


def surplus(references: Sequence[Unit], ports: Sequence[Unit]) -> set[Key]:
    """Keys that one side has more of than the other."""
    mine, yours = Counter(unit.key for unit in references), Counter(unit.key for unit in ports)
    return {key for key in mine.keys() | yours.keys() if mine[key] != yours[key]}
