"""Which units lie at the same place of two sequences of keys: definition order, or execution order.

Sequences that differ in a few places are compared as a whole, others a stretch at a time, so that the
work grows with the length alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import Enum

from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights.units import Key, Unit

TRUSTED_ORDER = limits.transfer.TRUSTED_ORDER.value
STRETCH = limits.transfer.ORDER_STRETCH.value
EDITS = limits.transfer.ORDER_EDITS.value


class OrderKind(Enum):
    """What decides which unit comes before which; the value says so as evidence."""

    DEFINITION = phrase("definition order")
    EXECUTION = phrase("execution order")


@dataclass(frozen=True, slots=True)
class UnitOrder:
    """Position of every unit, by path; units that are missing come nowhere."""

    kind: OrderKind
    reference: Mapping[str, int]
    port: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SequencePairs:
    """Pairs that lie at the same place of the two sequences of keys."""

    order: UnitOrder
    partner: Mapping[str, str]  # reference path -> port path
    trusted: bool


def aligned(
    references: Sequence[Unit], ports: Sequence[Unit], order: UnitOrder, key: Callable[[Unit], Key]
) -> SequencePairs:
    """The longest runs of equal keys, in order."""
    mine = sorted(
        (unit for unit in references if unit.path in order.reference), key=lambda u: order.reference[u.path]
    )
    yours = sorted((unit for unit in ports if unit.path in order.port), key=lambda u: order.port[u.path])
    codes: dict[Key, int] = {}
    sequences = [[codes.setdefault(key(unit), len(codes)) for unit in side] for side in (mine, yours)]
    if sequences[0] == sequences[1]:
        partner = {r.path: p.path for r, p in zip(mine, yours, strict=True)}
        return SequencePairs(order, partner, trusted=True)
    partner = {mine[first].path: yours[second].path for first, second in _matching(*sequences)}
    # a buffer without counterpart (a table of indices, a mask) disturbs no order
    shorter = min(sum(bool(unit.required) for unit in side) for side in (mine, yours))
    in_place = sum(bool(unit.required) and unit.path in partner for unit in mine)
    trusted = bool(shorter) and in_place >= TRUSTED_ORDER * shorter
    return SequencePairs(order, partner, trusted)


def _matching(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Places of equal codes, in order on both sides."""
    few = _with_few_edits(first, second)
    yield from few if few is not None else _stretch_by_stretch(first, second)


def _with_few_edits(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]] | None:
    """The alignment with the fewest units left out, by Myers' greedy algorithm; None if those are many.

    Layers repeat in blocks, so that a stretch alone may fit a block off: only the ends tell.
    """
    reached = {1: 0}  # how far on the first side, by diagonal
    steps: list[dict[int, int]] = []
    for edits in range(EDITS + 1):
        steps.append(dict(reached))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
            mine = reached[diagonal + 1] if down else reached[diagonal - 1] + 1
            yours = mine - diagonal
            while mine < len(first) and yours < len(second) and first[mine] == second[yours]:
                mine, yours = mine + 1, yours + 1
            reached[diagonal] = mine
            if mine >= len(first) and yours >= len(second):
                return _traced_back(steps, len(first), len(second))
    return None


def _traced_back(steps: Sequence[dict[int, int]], mine: int, yours: int) -> list[tuple[int, int]]:
    """The pairs of equal codes on the way that Myers' algorithm found."""
    pairs: list[tuple[int, int]] = []
    for edits in range(len(steps) - 1, -1, -1):
        reached, diagonal = steps[edits], mine - yours
        down = diagonal == -edits or (diagonal != edits and reached[diagonal - 1] < reached[diagonal + 1])
        before = diagonal + 1 if down else diagonal - 1
        start = reached[before] if edits else 0
        start = start if down or not edits else start + 1
        while mine > start:
            mine, yours = mine - 1, yours - 1
            pairs.append((mine, yours))
        if edits:
            mine, yours = reached[before], reached[before] - before
    return pairs[::-1]


def _stretch_by_stretch(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[int, int]]:
    places = 0, 0
    while places[0] < len(first) and places[1] < len(second):
        ends = tuple(
            min(place + STRETCH, len(side)) for place, side in zip(places, (first, second), strict=True)
        )
        last = ends == (len(first), len(second))
        pairs = list(_matching_stretch(first[places[0] : ends[0]], second[places[1] : ends[1]]))
        # what lies in the second half may have a better place in what is still to come
        kept = [pair for pair in pairs if last or max(pair) < STRETCH // 2] or pairs[:1]
        yield from ((places[0] + mine, places[1] + yours) for mine, yours in kept)
        if last:
            return
        if kept:
            places = places[0] + kept[-1][0] + 1, places[1] + kept[-1][1] + 1
        else:
            places = places[0] + STRETCH // 2, places[1] + STRETCH // 2


def _matching_stretch(first: Sequence[int], second: Sequence[int]) -> Iterator[tuple[int, int]]:
    for block in SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks():
        yield from ((block.a + step, block.b + step) for step in range(block.size))
