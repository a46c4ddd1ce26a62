"""How the rows of several tensors may lie in one: ``[experts, out, in]`` against a weight for every expert.

A *stack* is one tensor, a *row of series* the tensors it may hold: k series (gate and up, say) of n
members each. The axes of the stack come in any order; its rows hold all series of a member one after
the other, all members of a series one after the other, or row by row in turn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from parfocal.judge import limits
from parfocal.phrases import joined, phrase
from parfocal.weights.linking import entry
from parfocal.weights.plan import Entry
from parfocal.weights.row_parts import orders
from parfocal.weights.units import Slot
from parfocal.weights.views import Shape, View, index, part, reshape, transpose

MOST_AXES = limits.transfer.PARTS.value


class Arrangement(Enum):
    """In which order a stack holds the rows of several series."""

    MEMBERS = phrase("one member after the other")
    SERIES = phrase("one series after the other")
    IN_TURN = phrase("row by row in turn")


_ONE_AFTER_THE_OTHER = [Arrangement.MEMBERS, Arrangement.SERIES]


@dataclass(frozen=True, slots=True)
class StackLayout:
    """One way to lay series into a stack."""

    axes: tuple[int, ...]  # the stack's axes as: slabs, rows, the rest of a row
    turned: bool  # the columns of the members are what is counted as rows
    arrangement: Arrangement
    rest: int  # how many axes a row has
    cost: int  # how unusual it is

    def lengths(self, stack: Shape) -> Shape:
        """Of the axes that are counted as rows."""
        return tuple(stack[axis] for axis in self.axes[: len(self.axes) - self.rest])

    @property
    def words(self) -> str:
        turned = self.turned or self.axes[-2:] == (len(self.axes) - 1, len(self.axes) - 2)
        words: str = self.arrangement.value
        return joined(", ", (words, phrase("transposed"))) if turned else words


@dataclass(frozen=True, slots=True)
class _Rows:
    """Where rows of one member lie: counted through all slabs, or every ``step``-th from ``first`` on."""

    start: int
    stop: int
    step: int = 1
    first: int = 0


def layouts(stack: Shape, series: Sequence[Sequence[Slot]]) -> list[StackLayout]:
    """All ways that fit the shapes, the usual ones first."""
    found = []
    for turned in (False, True):
        shapes = [_seen(members[0].shape, turned) for members in series]
        if not all(shapes) or (turned and len(shapes[0]) != 2) or len({shape[1:] for shape in shapes}) != 1:
            continue
        for axes in _orders_of_axes(stack, shapes[0][1:], sum(shape[0] for shape in shapes) * len(series[0])):
            seen = tuple(stack[axis] for axis in axes)
            rows = seen[len(seen) - len(shapes[0])]
            for number, arrangement in enumerate(_arrangements(shapes, len(series[0]), rows)):
                cost = _unusual(axes, turned) + 2 * number
                found.append(StackLayout(axes, turned, arrangement, len(shapes[0]) - 1, cost))
    return sorted(found, key=lambda layout: layout.cost)


def copies(
    stack: Slot, series: Sequence[Sequence[Slot]], layout: StackLayout, stack_is_reference: bool
) -> Iterator[Entry]:
    """The copies between a stack and its series that a layout means."""
    seen = tuple(stack.shape[axis] for axis in layout.axes)
    rank = len(series[0][0].shape)
    lead, rows = seen[: len(seen) - rank], seen[len(seen) - rank]
    turn: View = () if layout.axes == tuple(range(len(seen))) else (transpose(*layout.axes),)
    own: View = (transpose(1, 0),) if layout.turned else ()
    heights = [_seen(members[0].shape, layout.turned)[0] for members in series]
    for number, members in enumerate(series):
        for place, member in enumerate(members):
            where = _rows_of(heights, len(members), number, place, layout.arrangement)
            for view, cut in _pieces(where, lead, rows, seen[len(lead) + 1 :]):
                on_member = own if cut == (0, heights[number]) else (*own, part(0, *cut))
                pair = (stack, member) if stack_is_reference else (member, stack)
                seen_through = (
                    ((*turn, *view), on_member) if stack_is_reference else (on_member, (*turn, *view))
                )
                yield entry(*pair, (), 0.5, source_view=seen_through[0], target_view=seen_through[1])


def _seen(shape: Shape, turned: bool) -> Shape:
    return shape[::-1] if turned else shape


def _orders_of_axes(stack: Shape, rest: Shape, height: int) -> Iterator[tuple[int, ...]]:
    """Orders that end with the rest of a row and have as many rows before it as there should be."""
    if len(stack) > MOST_AXES or len(stack) <= len(rest):
        return
    for axes in orders(range(len(stack))):
        seen = tuple(stack[axis] for axis in axes)
        split = len(seen) - len(rest)
        if (
            seen[split:] == rest
            and math.prod(seen[:split]) == height
            and list(axes[split:]) == sorted(axes[split:])
        ):
            yield axes


def _unusual(axes: Sequence[int], turned: bool) -> int:
    if list(axes) == sorted(axes):
        return int(turned)
    swapped = [*range(len(axes) - 2), len(axes) - 1, len(axes) - 2]
    kept = len(axes) < 3 or axes[0] < axes[1]  # what is merged into rows keeps its order
    return turned + (1 if list(axes) == swapped else 3 if kept else 6)


def _arrangements(shapes: Sequence[Shape], members: int, rows: int) -> list[Arrangement]:
    if len(shapes) == 1:
        return [Arrangement.MEMBERS]
    together = sum(shape[0] for shape in shapes)
    found = [Arrangement.MEMBERS] if members == 1 or rows == together else _ONE_AFTER_THE_OTHER
    equal = len({shape[0] for shape in shapes}) == 1
    return [*found, Arrangement.IN_TURN] if equal and rows % together == 0 else found


def _rows_of(
    heights: Sequence[int], members: int, number: int, place: int, arrangement: Arrangement
) -> _Rows:
    together, before = sum(heights), sum(heights[:number])
    if arrangement is Arrangement.IN_TURN:
        return _Rows(place * together, (place + 1) * together, len(heights), number)
    by_member = arrangement is Arrangement.MEMBERS
    start = place * together + before if by_member else before * members + place * heights[number]
    return _Rows(start, start + heights[number])


def _pieces(where: _Rows, lead: Shape, rows: int, rest: Shape) -> Iterator[tuple[View, tuple[int, int]]]:
    """Views of the stack for rows that may go through several slabs, and the rows of the member they are."""
    begin = where.start
    while begin < where.stop:
        slab, offset = divmod(begin, rows)
        end = min(where.stop, (slab + 1) * rows)
        view: View = tuple(index(0, number) for number in _unravelled(slab, lead))
        local = offset, offset + end - begin
        if where.step > 1:
            view = (*view, reshape(rows // where.step, where.step, *rest), index(1, where.first))
            local = local[0] // where.step, local[1] // where.step
        if local != (0, rows // where.step):
            view = (*view, part(0, *local))
        yield view, ((begin - where.start) // where.step, (end - where.start) // where.step)
        begin = end


def _unravelled(number: int, lengths: Shape) -> tuple[int, ...]:
    found: list[int] = []
    for length in reversed(lengths):
        number, place = divmod(number, length)
        found.insert(0, place)
    return tuple(found)
