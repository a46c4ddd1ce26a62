"""One layer against several: qkv against q, k and v; gate_up against gate and up; kv; and back.

Proposed by shape arithmetic among affine units with the same input: the rows of the parts add up
to the rows of the whole. The options are the orders of the parts and the ways their rows can lie:
one part after the other, or interleaved by head.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from parfocal.judge import limits
from parfocal.phrases import phrase
from parfocal.weights.choices import Choice, Option
from parfocal.weights.linking import entry
from parfocal.weights.names import plain_words, tokens
from parfocal.weights.plan import Entry, Exchange
from parfocal.weights.row_parts import orders, rows_view, said_heads
from parfocal.weights.tables import BATCH_NORMS
from parfocal.weights.units import Unit

MOST_PARTS = limits.transfer.PARTS.value
MOST_OPTIONS = limits.transfer.OPTIONS.value
# The place of a part by its name, in the order nearly everybody packs them.
PLACES = {"q": 0, "k": 1, "v": 2, "gate": 0, "up": 1, "self": 0}


def rows(unit: Unit) -> int:
    weight = unit.slot("weight")
    return weight.shape[0] if weight else 0


def may_be_fused(unit: Unit) -> bool:
    weight = unit.slot("weight")
    return unit.family == "affine" and weight is not None and len(weight.shape) >= 2 and not unit.flexible


def same_input(whole: Unit, piece: Unit) -> bool:
    """Equal roles and equal shapes but for the rows."""
    if not (may_be_fused(whole) and may_be_fused(piece)):
        return False
    mine, yours = ({slot.role: slot.shape[1:] for slot in unit.required} for unit in (whole, piece))
    return mine == yours and rows(piece) < rows(whole)


def arrange_parts(
    whole: Unit, company: Sequence[Unit], place: Callable[[Unit], float]
) -> Iterator[tuple[bool, float, tuple[Unit, ...]]]:
    """Units of one company whose rows add up to the whole's: whether of unequal size, how far, and which."""
    fitting = [unit for unit in company if same_input(whole, unit)]
    for number, first in enumerate(fitting):
        others = fitting[number + 1 :][: 2 * MOST_PARTS]
        for count in range(1, MOST_PARTS):
            for some in itertools.combinations(others, count):
                group = (first, *some)
                if sum(map(rows, group)) == rows(whole):
                    places = [place(unit) for unit in group]
                    away = sum(abs(each - place(whole)) for each in places) / len(places)
                    unequal = len({rows(unit) for unit in group}) > 1
                    yield unequal, away + max(places) - min(places), group


def is_norm_of(unit: Unit, channels: int) -> bool:
    """A norm with statistics or factors for every channel by itself: it divides as its channels do."""
    return unit.kind in BATCH_NORMS and all(slot.shape == (channels,) for slot in unit.required)


def fused_choice(
    whole: Unit, parts: Sequence[Unit], whole_is_reference: bool, norms: Sequence[Unit] = ()
) -> Choice:
    """All plausible arrangements, the usual ones first.

    ``norms``: what is behind the whole and each of the parts, and lies as their rows do.
    """
    behind = dict(zip([unit.path for unit in parts], norms[1:], strict=False))
    options: dict[tuple[Entry, ...], Option] = {}
    for words, order, groups, named in _arrangements(whole, parts):
        entries = tuple(_entries(whole, order, groups, whole_is_reference, words))
        if norms:
            moved = [behind[unit.path] for unit in order]
            entries += tuple(_entries(norms[0], moved, groups, whole_is_reference, words))
        if entries not in options:
            crossed = crossed_order(whole.path, [unit.path for unit in order], whole_is_reference)
            options[entries] = Option(entries, words, named, crossed)
        if len(options) >= MOST_OPTIONS:
            break
    ones, many = (whole, *norms[:1]), (*parts, *norms[1:])
    references, ports = (ones, many) if whole_is_reference else (many, ones)
    return Choice(references, ports, list(options.values()), "fused")


def _arrangements(whole: Unit, parts: Sequence[Unit]) -> Iterator[tuple[str, tuple[Unit, ...], int, bool]]:
    """Where names say the order, every interleaving of that order comes first."""
    possible = list(_orders(whole, parts))
    counts = list(_head_counts(whole, parts))
    pairs = [(groups, order, named) for groups in counts for order, named in possible]
    if any(named for _, named in possible):
        pairs.sort(key=lambda pair: not pair[2])
    for groups, order, named in pairs:
        names = ", ".join(_short(unit) for unit in order)
        how = (
            phrase("one after the other")
            if groups == 1
            else phrase("interleaved in {groups} groups", groups=groups)
        )
        words = phrase("fused {names}, {how}", names=names, how=how)
        yield words, order, groups, named and groups == 1


def _orders(whole: Unit, parts: Sequence[Unit]) -> Iterator[tuple[tuple[Unit, ...], bool]]:
    known = [(place, unit) for unit in parts if (place := place_by_name(unit)) is not None]
    by_path = {unit.path: unit for unit in parts}
    spelled = spelled_order(whole.path, list(by_path))
    named = tuple(by_path[path] for path in spelled) if spelled else None
    if named is None and len({place for place, _ in known}) == len(parts):
        named = tuple(unit for _, unit in sorted(known, key=lambda pair: pair[0]))
    for order in orders(parts, named):
        yield order, order == named


def crossed_order(whole: str, order: Sequence[str], whole_is_reference: bool) -> Exchange | None:
    """What an order of parts exchanges against the one that the whole's own name spells; paths all."""
    spelled = spelled_order(whole, order)
    moved = [place for place, path in enumerate(order) if spelled is not None and path != spelled[place]]
    if spelled is None or not moved:
        return None
    places = [f"{whole}[{_role(spelled[place])}]" for place in moved]
    named = [spelled[place] for place in moved]
    certain = all(_role(path) in plain_words(path) for path in spelled)
    if not whole_is_reference:
        return Exchange(tuple(places), tuple(order[place] for place in moved), tuple(named), certain)
    by_name = dict(zip(named, places, strict=True))
    targets = [order[place] for place in moved]
    return Exchange(tuple(targets), tuple(places), tuple(by_name[path] for path in targets), certain)


def _role(path: str) -> str:
    """The last of the usual names of parts in a path."""
    return next((word for word in reversed(tokens(path).words) if word in PLACES), "")


def place_by_name(unit: Unit) -> int | None:
    """Where a part comes in the usual order, if its name is one of the usual ones."""
    found = [PLACES[word] for word in tokens(unit.path).words if word in PLACES]
    return found[-1] if found else None


def spelled_order(whole: str, parts: Sequence[str]) -> tuple[str, ...] | None:
    """The whole's own name may spell the order of its parts: ``kvq``, ``gate_up``; paths all."""
    roles = {role: path for path in parts if (role := _role(path))}
    if len(roles) != len(parts):
        return None
    words = plain_words(whole.rpartition(".")[2])
    for spelling in (*words, [word for word in words if word in roles]):
        if len(spelling) == len(parts) and set(spelling) == set(roles):
            return tuple(roles[role] for role in spelling)
    return None


def _short(unit: Unit) -> str:
    return ".".join(unit.path.split(".")[-1:])


def _head_counts(whole: Unit, parts: Sequence[Unit]) -> Iterator[int]:
    """1 (not interleaved), then what the modules say about heads, then every common divisor."""
    smallest = min(map(rows, parts))
    said = said_heads((whole, *parts), smallest)
    divisors = [
        number for number in range(smallest, 1, -1) if all(rows(unit) % number == 0 for unit in parts)
    ]
    fitting = [number for number in said if number in divisors]
    # The finest interleaving (row by row) and the powers of two are likelier than the rest.
    usual = [number for number in divisors if number == smallest or number & (number - 1) == 0]
    yield from dict.fromkeys([1, *fitting, *usual[::-1], *divisors])


def _entries(
    whole: Unit, order: Sequence[Unit], groups: int, whole_is_reference: bool, words: str
) -> Iterator[Entry]:
    before = dict.fromkeys((slot.role for slot in whole.slots), 0)
    for unit in order:
        for slot in unit.required:
            big, size = whole.slot(slot.role), slot.shape[0]
            assert big is not None  # same_input compared the roles
            on_whole = rows_view(big.shape, before[slot.role], size, groups, interleaved=True)
            on_part = rows_view(slot.shape, 0, size, groups, interleaved=False)
            before[slot.role] += size
            if whole_is_reference:
                yield entry(big, slot, (words,), 0.5, source_view=on_whole, target_view=on_part)
            else:
                yield entry(slot, big, (words,), 0.5, source_view=on_part, target_view=on_whole)
