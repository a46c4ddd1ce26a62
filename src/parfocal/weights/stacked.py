"""One tensor on one side, a list of layers on the other: experts, heads or blocks that are stacked.

Layers of a list (``experts.0.up``, ``experts.1.up``, ...) make a series. All series of a list must
fill the stacks of one part of the other model exactly; which series goes into which stack, in what
order and how its rows lie are the options that are tried on the inputs. A series may also have one
member only: q, k and v against one raw parameter, or heads as an axis of their own.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass

from parfocal.judge import limits
from parfocal.phrases import joined, phrase
from parfocal.weights.choices import Choice, Option
from parfocal.weights.crossing import counterpart, crossed
from parfocal.weights.fused import crossed_order, place_by_name
from parfocal.weights.names import word_likeness
from parfocal.weights.plan import Entry, Exchange
from parfocal.weights.row_parts import orders
from parfocal.weights.scopes import around, inside
from parfocal.weights.stacking import Arrangement, StackLayout, copies, layouts
from parfocal.weights.units import Slot, Unit
from parfocal.weights.views import Shape

NUMBER = re.compile(r"\d+")
MOST_SERIES = limits.transfer.PARTS.value
MANY = limits.transfer.MANY_SERIES.value
MOST_OPTIONS = limits.transfer.OPTIONS.value
MOST_COVERS = limits.transfer.COVERS.value
MOST_STEPS = limits.transfer.COVER_STEPS.value
MOST_LAYOUTS = limits.transfer.COVER_LAYOUTS.value


@dataclass(frozen=True, slots=True)
class Series:
    """The same layer of every member of a list, in the order of the list."""

    units: tuple[Unit, ...]

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(slot.role for slot in self.units[0].required)

    @property
    def path(self) -> str:
        return self.units[0].path

    def slots(self, role: str) -> tuple[Slot, ...]:
        return tuple(slot for unit in self.units for slot in unit.required if slot.role == role)


@dataclass(frozen=True, slots=True)
class Filling:
    """A stack's slot, the series that fill it and the role of theirs that does."""

    slot: Slot
    series: tuple[int, ...]
    role: str


@dataclass(frozen=True, slots=True)
class _Way:
    """A cover with the series of every stack in order and how they lie."""

    cost: int
    cover: tuple[Filling, ...]
    filled: tuple[tuple[tuple[Slot, ...], ...], ...]
    chosen: tuple[StackLayout, ...]
    named: bool

    def entries(self, stack_is_reference: bool) -> Iterator[Entry]:
        for filling, series, layout in zip(self.cover, self.filled, self.chosen, strict=True):
            yield from copies(filling.slot, series, layout, stack_is_reference)

    def crossed(self, stack_is_reference: bool) -> Exchange | None:
        """What it exchanges against the names of both sides, inside a stack or between stacks."""
        for filling, series in zip(self.cover, self.filled, strict=True):
            parts = [members[0].stored.module for members in series]
            if len(parts) > 1 and (
                found := crossed_order(filling.slot.stored.path, parts, stack_is_reference)
            ):
                return found
        pairs = [
            (filling.slot.stored.path, series[0][0].stored.module)
            for filling, series in zip(self.cover, self.filled, strict=True)
            if len(series) == 1
        ]
        stacks, parts = [stack for stack, _ in pairs], [part for _, part in pairs]
        sides = (parts, stacks) if stack_is_reference else (stacks, parts)
        return next(iter(crossed(*sides)), None) if len(pairs) > 1 else None

    @property
    def words(self) -> str:
        said = []
        for filling, series, layout in zip(self.cover, self.filled, self.chosen, strict=True):
            path = filling.slot.stored.path
            names = joined(" and ", (".".join(members[0].stored.path.split(".")[-2:]) for members in series))
            said.append(
                phrase(
                    "{name} as a stack of {names}, {layout}",
                    name=path.rpartition(".")[2],
                    names=names,
                    layout=layout.words,
                )
            )
        return joined("; ", said)


@dataclass(frozen=True, slots=True)
class StackedSeries:
    """Stacks of one side and the series of the other that fill them."""

    stacks: tuple[Unit, ...]
    series: tuple[Series, ...]

    @property
    def parts(self) -> tuple[Unit, ...]:
        return tuple(unit for each in self.series for unit in each.units)


def find(
    stacks: Sequence[Unit],
    pool: Sequence[Unit],
    place: Callable[[Unit], float],
    free: Container[str],
    explains_more: Callable[[Sequence[Unit], Sequence[Unit]], bool],
) -> StackedSeries | None:
    """The innermost list whose series fill stacks exactly, and the stacks nearest to it.

    ``free``: paths of the pool's units that are linked with nothing yet. ``explains_more``: of stacks and
    the units that would fill them, whether that leaves fewer units over than there are now.
    """
    stacks = [unit for unit in stacks if unit.required]
    for group in _lists(pool) if stacks else ():
        usable = [unit for unit in stacks if _is_usable(unit, group)]
        parts = [unit for series in group for unit in series.units]
        size = sum(map(_size, parts))
        found = []
        for scope in dict.fromkeys(scope for unit in usable for scope in around(unit.module)):
            chosen = [unit for unit in usable if inside(unit.module, scope)]
            if (
                sum(map(_size, chosen)) == size
                and _is_filled(chosen, group, free)
                and explains_more(chosen, parts)
            ):
                found.append(
                    (abs(_middle(chosen, place) - _middle(group[0].units, place)), -len(scope), chosen)
                )
        if found:
            return StackedSeries(tuple(min(found, key=lambda item: item[:2])[2]), tuple(group))
    return None


def stacked_choice(found: StackedSeries, stack_is_reference: bool) -> Choice:
    """All plausible ways, the usual ones first."""
    options: dict[tuple[Entry, ...], Option] = {}
    for way in sorted(_ways(found), key=lambda way: way.cost):
        entries = tuple(way.entries(stack_is_reference))
        options.setdefault(entries, Option(entries, way.words, way.named, way.crossed(stack_is_reference)))
        if len(options) >= MOST_OPTIONS:
            break
    sides = (found.stacks, found.parts) if stack_is_reference else (found.parts, found.stacks)
    several = len(options) > 1
    return Choice(*sides, list(options.values()), "stacked", evidence=(phrase("shapes"),), open=several)


def _lists(pool: Sequence[Unit]) -> Iterator[list[Series]]:
    """The series of every list, the innermost list first; then single layers that stand side by side.

    Lists of one length in one module (``gates.0``, ``ups.0``, ...) are tried together before each by itself:
    a stack that one of them would fill may be another's.
    """
    numbered: dict[tuple[str, str], dict[int, Unit]] = {}
    for unit in pool:
        for match in NUMBER.finditer(unit.path):
            key = unit.path[: match.start()], unit.path[match.end() :]
            numbered.setdefault(key, {})[int(match.group())] = unit
    groups: dict[tuple[str, int], list[Series]] = {}
    for (head, _), members in numbered.items():
        units = tuple(unit for _, unit in sorted(members.items()))
        if len(units) > 1 and len({unit.key for unit in units}) == 1 and units[0].required:
            groups.setdefault((head, len(units)), []).append(Series(units))
    beside_each_other: dict[tuple[str, int], list[tuple[str, int]]] = {}
    for head, count in groups:
        beside_each_other.setdefault((_owner_of_list(head), count), []).append((head, count))
    for head, count in sorted(groups, key=lambda key: -len(key[0])):
        lists = beside_each_other.pop((_owner_of_list(head), count), [])
        if len(lists) > 1:
            yield [series for key in lists for series in groups[key]]
        yield groups[head, count]
    beside: dict[str, list[Series]] = {}
    for unit in pool:
        if unit.required:
            beside.setdefault(unit.path.rpartition(".")[0], []).append(Series((unit,)))
    yield from (group for group in beside.values() if len(group) <= 2 * MOST_SERIES)


def _owner_of_list(head: str) -> str:
    """The module that a list belongs to: ``mlp`` of ``mlp.gates.``."""
    return head.rstrip(".").rpartition(".")[0]


def _size(unit: Unit) -> int:
    return sum(math.prod(slot.shape) for slot in unit.required)


def _middle(units: Sequence[Unit], place: Callable[[Unit], float]) -> float:
    return sum(map(place, units)) / len(units)


def _is_usable(stack: Unit, group: Sequence[Series]) -> bool:
    return any(
        True for _ in _fillings(stack, group, [(n, role) for n, s in enumerate(group) for role in s.roles])
    )


def _fillings(
    stack: Unit, group: Sequence[Series], free: Sequence[tuple[int, str]]
) -> Iterator[tuple[Filling, ...]]:
    """Ways to fill all slots of a stack from series that are free, the most alike names first.

    The slots of a raw parameter take any role; those of a layer take their own, from the same series.
    """
    raw = stack.family == "raw"
    for role in dict.fromkeys(role for _, role in free) if raw else [stack.required[0].role]:
        numbers = [number for number, other in free if other == role]
        most = MOST_SERIES if len(numbers) <= MANY else 2
        chosen = [each for count in range(1, most + 1) for each in itertools.combinations(numbers, count)]
        for some in sorted(chosen, key=lambda some: -_likeness(stack, [group[number] for number in some])):
            filled = tuple(Filling(slot, some, role if raw else slot.role) for slot in stack.required)
            roles_agree = raw or all(
                set(group[number].roles) == {slot.role for slot in stack.required} for number in some
            )
            if roles_agree and all(_fits(filling, group) for filling in filled):
                yield filled


def _fits(filling: Filling, group: Sequence[Series]) -> bool:
    series = [group[number].slots(filling.role) for number in filling.series]
    if not all(series) or math.prod(filling.slot.shape) != sum(
        math.prod(s.shape) for each in series for s in each
    ):
        return False
    return bool(layouts(filling.slot.shape, series))


def _is_filled(stacks: Sequence[Unit], group: Sequence[Series], free: Container[str]) -> bool:
    """Whether there is a cover that is more than single tensors against single tensors.

    Of tensors that differ in axes of length one only, those that are linked with others stay linked.
    """
    single = len(group[0].units) == 1
    if single and all(series.path in free for series in group):
        return any(
            len(filling.series) > 1 or len(filling.slot.shape) != len(_first(filling, group).shape)
            for filling in next(_covers(stacks, group), ())
        )
    return any(
        len(filling.series) > 1
        or not single
        or _long(filling.slot.shape) != _long(_first(filling, group).shape)
        for filling in next(_covers(stacks, group), ())
    )


def _first(filling: Filling, group: Sequence[Series]) -> Slot:
    return group[filling.series[0]].slots(filling.role)[0]


def _long(shape: Shape) -> list[int]:
    """The lengths of the axes that are more than a shape's ornament."""
    return sorted(length for length in shape if length != 1)


def _likeness(stack: Unit, series: Sequence[Series]) -> float:
    return sum(word_likeness(stack.path, each.path) for each in series) / len(series)


def _covers(stacks: Sequence[Unit], group: Sequence[Series]) -> Iterator[tuple[Filling, ...]]:
    """Ways to fill all stacks with all series, each once."""
    steps = iter(range(MOST_STEPS))
    largest_first = sorted(stacks, key=lambda unit: -_size(unit))

    def fill(number: int, free: list[tuple[int, str]]) -> Iterator[tuple[Filling, ...]]:
        if number == len(largest_first):
            if not free:
                yield ()
            return
        for filled in _fillings(largest_first[number], group, free):
            if next(steps, None) is None:
                return
            taken = {(place, filling.role) for filling in filled for place in filling.series}
            for rest in fill(number + 1, [each for each in free if each not in taken]):
                yield (*filled, *rest)

    return fill(0, [(number, role) for number, series in enumerate(group) for role in series.roles])


def _best_covers(found: StackedSeries) -> Iterator[tuple[Filling, ...]]:
    """Covers that fill alike with alike first."""
    some = list(itertools.islice(_covers(found.stacks, found.series), 4 * MOST_COVERS))

    def unlike(cover: tuple[Filling, ...]) -> float:
        return -sum(
            word_likeness(filling.slot.stored.path, found.series[number].path) / len(filling.series)
            for filling in cover
            for number in filling.series
        )

    yield from sorted(some, key=unlike)


def _ways(found: StackedSeries) -> Iterator[_Way]:
    for number, cover in enumerate(itertools.islice(_best_covers(found), MOST_COVERS)):
        shared = any(len(filling.series) > 1 for filling in cover)
        for unusual, order, named in _orders(found.series, cover):
            for cost, chosen in _laid_out(found, cover):
                filled = tuple(
                    tuple(
                        found.series[n].slots(filling.role) for n in sorted(filling.series, key=order.index)
                    )
                    for filling in cover
                )
                likely = not number and not unusual and not cost
                yield _Way(
                    4 * number + 2 * unusual + cost,
                    cover,
                    filled,
                    chosen,
                    named=likely and (named or not shared) and _is_told_by_names(found, cover),
                )


def _is_told_by_names(found: StackedSeries, cover: Sequence[Filling]) -> bool:
    """Whether words of its own tell every stack with one series which it takes."""
    pairs = [
        (filling.slot.stored.path, found.series[filling.series[0]].path)
        for filling in cover
        if len(filling.series) == 1
    ]
    stacks, series = [stack for stack, _ in pairs], [path for _, path in pairs]
    return all(counterpart(stack, stacks, series) == path for stack, path in pairs) or len(pairs) < 2


def _orders(
    series: Sequence[Series], cover: Sequence[Filling]
) -> Iterator[tuple[bool, tuple[int, ...], bool]]:
    """Orders of series that share a stack: as names say or as defined, then all others.

    Whether it is another one, the order, and whether names say so.
    """
    everything = tuple(range(len(series)))
    sharing = {number for filling in cover if len(filling.series) > 1 for number in filling.series}
    places = {number: place_by_name(series[number].units[0]) for number in sharing}
    known = {number: place for number, place in places.items() if place is not None}
    named = bool(sharing) and len(set(known.values())) == len(sharing)
    first = tuple(sorted(everything, key=lambda number: known.get(number, 0))) if named else everything
    several = sharing and len(series) <= MOST_SERIES
    for order in orders(everything, first) if several else (first,):
        yield order != first, order, named and order == first


def _laid_out(
    found: StackedSeries, cover: Sequence[Filling]
) -> Iterator[tuple[int, tuple[StackLayout, ...]]]:
    """The combinations of layouts for all stacks of a cover, with their costs; alike ones are likelier."""
    ways = [
        layouts(filling.slot.shape, [found.series[number].slots(filling.role) for number in filling.series])
        for filling in cover
    ]
    each = max(2, int(MOST_LAYOUTS ** (1 / len(ways))))
    for combination in itertools.islice(itertools.product(*(some[:each] for some in ways)), MOST_LAYOUTS):
        if _consistent(cover, combination):
            mixed = len({(layout.axes, layout.arrangement) for layout in combination}) - 1
            yield sum(layout.cost for layout in combination) + mixed, combination


def _consistent(cover: Sequence[Filling], chosen: Sequence[StackLayout]) -> bool:
    """Whether the tensors of a layer, its weight and its bias, lie alike where both could lie otherwise."""
    known: dict[tuple[int, ...], tuple[Arrangement, Shape]] = {}
    for filling, layout in zip(cover, chosen, strict=True):
        lengths = layout.lengths(filling.slot.shape)
        arrangement, others = known.setdefault(filling.series, (layout.arrangement, lengths))
        if arrangement != layout.arrangement or (len(lengths) == len(others) and lengths != others):
            return False
    return True
