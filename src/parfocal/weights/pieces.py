"""Cuts a large group of units of one shape into pieces that are small enough to be weighed each against each.

A trusted order cuts between blocks of the model; without one, the numbers in the paths do. Whatever is
weighed costs the square of its size, so a model of any depth costs what its depth is.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from parfocal.judge import limits
from parfocal.weights.names import tokens
from parfocal.weights.sequences import SequencePairs
from parfocal.weights.units import Unit

WEIGHED = limits.transfer.WEIGHED.value


@dataclass(frozen=True, slots=True)
class UnitGroup:
    """Units of one shape that may be each other's counterparts."""

    references: Sequence[Unit]
    ports: Sequence[Unit]

    @property
    def weighable(self) -> bool:
        return max(len(self.references), len(self.ports)) <= WEIGHED


def cut(group: UnitGroup, alignments: Sequence[SequencePairs]) -> Iterator[UnitGroup]:
    """Pieces that are both sides' own, none of them empty on either side."""
    if group.weighable:
        yield group
        return
    trusted = [alignment for alignment in alignments if alignment.trusted]
    if trusted:
        yield from (piece for piece in _by_place(group, trusted[-1]) if piece.references and piece.ports)
        return
    yield from _by_number(group, 0)


def _by_place(group: UnitGroup, alignment: SequencePairs) -> Iterator[UnitGroup]:
    """Between blocks: where the paths of two neighbours have the least in common, on both sides."""
    order = alignment.order
    ports = {unit.path: unit for unit in group.ports}
    pairs = [
        (unit, ports[partner])
        for unit in sorted(group.references, key=_place(order.reference))
        if (partner := alignment.partner.get(unit.path, "")) in ports
    ]
    edges = list(_edges(pairs))
    yield from (
        UnitGroup(references, others)
        for references, others in zip(
            _divided(group.references, [pairs[edge][0] for edge in edges], _place(order.reference)),
            _divided(group.ports, [pairs[edge][1] for edge in edges], _place(order.port)),
            strict=True,
        )
    )


def _edges(pairs: Sequence[tuple[Unit, Unit]]) -> Iterator[int]:
    """The first pair of every piece but the first."""
    start = 0
    while len(pairs) - start > WEIGHED:
        candidates = range(start + WEIGHED // 2, start + WEIGHED)
        start = min(candidates, key=lambda place: sum(map(_in_common, pairs[place - 1], pairs[place])))
        yield start


def _in_common(first: Unit, second: Unit) -> int:
    """How many modules are around both."""
    both = zip(first.path.split("."), second.path.split("."), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda names: names[0] == names[1], both))


def _divided(
    units: Sequence[Unit], firsts: Sequence[Unit], place: Callable[[Unit], float]
) -> list[list[Unit]]:
    """Units by the piece they lie in; each keeps the order it had."""
    edges = [place(unit) for unit in firsts]
    found: list[list[Unit]] = [[] for _ in range(len(edges) + 1)]
    for unit in units:
        found[bisect_right(edges, place(unit))].append(unit)
    return found


def _place(positions: Mapping[str, int]) -> Callable[[Unit], float]:
    return lambda unit: positions.get(unit.path, float("inf"))


def _by_number(group: UnitGroup, depth: int) -> Iterator[UnitGroup]:
    """By the first number of the paths, then the next; what has no more numbers stays together."""
    found: dict[int | None, tuple[list[Unit], list[Unit]]] = {}
    for side, units in enumerate((group.references, group.ports)):
        for unit in units:
            numbers = tokens(unit.path).numbers
            number = numbers[depth] if depth < len(numbers) else None
            found.setdefault(number, ([], []))[side].append(unit)
    for number, (references, ports) in found.items():
        piece = UnitGroup(references, ports)
        if not references or not ports:
            continue
        if piece.weighable or number is None:
            yield piece
        else:
            yield from _by_number(piece, depth + 1)
