"""Drafts a plan: every unit linked as well as can be told without trying.

Composites whose counterpart is not a composite are taken apart first. Then units of equal key are
linked; one-against-many becomes a choice; raw parameters find the layers that hold them elsewhere.
The draft is improved by ``follow.py`` when inputs are given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from parfocal.weights import choices
from parfocal.weights.assignment import definition_order, match, surplus
from parfocal.weights.draft import STEALABLE, Draft, Regions, Runs
from parfocal.weights.gathering import find_fused, find_stacked
from parfocal.weights.linking import Link
from parfocal.weights.relayout import flattened, reshape_choice
from parfocal.weights.sequences import OrderKind, UnitOrder
from parfocal.weights.units import Key, Unit, parts_of


def build(
    references: Sequence[Unit], ports: Sequence[Unit], runs: Runs | None, regions: Regions = ({}, {})
) -> Draft:
    """The best draft from names, shapes and order, and from the order of execution if there were runs."""
    apart = surplus(references, ports)
    draft = Draft(_taken_apart(references, apart), _taken_apart(ports, apart), regions=regions)
    orders = [definition_order(draft.references, draft.ports)]
    if runs:
        orders.append(_execution_order(draft.references, draft.ports, runs))
    _link(draft, draft.references, draft.ports, orders, regions)
    find_fused(draft, orders[-1], runs)
    find_stacked(draft, orders[-1])
    _link(draft, draft.left_references, draft.left_ports, orders, regions)
    _link_flattened(draft, orders, regions)
    _link_raw(draft, orders, regions)
    _open_orientations(draft)
    if runs:
        _link_heads(draft)
    return draft


def settle_by_execution(draft: Draft, runs: Runs) -> None:
    """Links that values left undecided (behind a mistake, say): by their place among the decided ones.

    A layer that runs after the same five known layers on both sides is the same layer, if it is the
    only one of its kind there; each that is settled so tells more of the others. A layer that runs
    elsewhere than it should still comes first, second or third of its kind; and of layers that nothing
    else tells apart, the first to run is the first.
    """
    order = _execution_order(draft.references, draft.ports, runs)
    while _settle_places(draft, order, _agree_exactly):
        pass
    _settle_places(draft, order, _tell_apart)
    _settle_places(draft, order, lambda ours, theirs: True)


def _agree_exactly(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """All places are different, and the same on both sides."""
    return ours == theirs and len(set(ours)) == len(ours)


def _tell_apart(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """All places are different on one side."""
    return any(len(set(side)) == len(side) for side in (ours, theirs))


def _settle_places(
    draft: Draft, order: UnitOrder, enough: Callable[[Sequence[int], Sequence[int]], bool]
) -> bool:
    """Settle groups of equal units whose places are ``enough``, in order; whether there was any."""
    decided = [link for link in draft.links.values() if link.decided]
    groups: dict[Key, list[Link]] = {}
    for link in draft.links.values():
        if not link.decided and link.reference.path in order.reference and link.port.path in order.port:
            groups.setdefault(link.port.key, []).append(link)
    settled = False
    known = (
        _positions((link.reference for link in decided), order.reference),
        _positions((link.port for link in decided), order.port),
    )
    for links in groups.values():
        ours = sorted(_placed(link.reference, known[0], order.reference) for link in links)
        theirs = sorted(_placed(link.port, known[1], order.port) for link in links)
        if not enough([place for place, _, _ in ours], [place for place, _, _ in theirs]):
            continue
        settled = True
        units = {link.reference.path: link.reference for link in links}
        ports = {link.port.path: link.port for link in links}
        for (_, _, path), (_, _, other) in zip(ours, theirs, strict=True):
            draft.links[other] = Link(units[path], ports[other], (OrderKind.EXECUTION.value,), STEALABLE)
    return settled


def _positions(units: Iterable[Unit], positions: Mapping[str, int]) -> list[int]:
    """When units run, in order; those that do not run come last of all."""
    return sorted(positions.get(unit.path, len(positions)) for unit in units)


def _placed(unit: Unit, decided: Sequence[int], positions: Mapping[str, int]) -> tuple[int, int, str]:
    """How many decided units run before this one, when it runs, and which it is."""
    return bisect_left(decided, positions[unit.path]), positions[unit.path], unit.path


def _taken_apart(units: Sequence[Unit], keys: set[Key]) -> list[Unit]:
    found: list[Unit] = []
    for unit in units:
        found += parts_of(unit) if unit.key in keys else [unit]
    return [replace(unit, rank=rank) for rank, unit in enumerate(found)]


def _execution_order(references: Sequence[Unit], ports: Sequence[Unit], runs: Runs) -> UnitOrder:
    positions: list[dict[str, int]] = []
    for units, run in zip((references, ports), runs, strict=True):
        called = [(seen.order, unit.rank, unit.path) for unit in units if (seen := run.around(unit.module))]
        positions.append({path: place for place, (_, _, path) in enumerate(sorted(called))})
    return UnitOrder(OrderKind.EXECUTION, *positions)


def _link(
    draft: Draft,
    references: Sequence[Unit],
    ports: Sequence[Unit],
    orders: Sequence[UnitOrder],
    regions: Regions,
) -> None:
    matching = match(references, ports, orders, regions)
    draft.links.update({link.port.path: link for link in matching.links})
    draft.left_references, draft.left_ports = matching.references, matching.ports


def _link_flattened(draft: Draft, orders: Sequence[UnitOrder], regions: Regions) -> None:
    """Convolutions over patches against Linear layers over flattened ones."""
    left = [[u for u in units if u.family == "affine"] for units in (draft.left_references, draft.left_ports)]
    for link in match(left[0], left[1], orders, regions, key=flattened).links:
        choice = reshape_choice(link)
        if choice:
            draft.links[link.port.path] = link
            draft.adopt(choice)
            draft.left_references = [u for u in draft.left_references if u.path != link.reference.path]
            draft.left_ports = [u for u in draft.left_ports if u.path != link.port.path]


def _link_raw(draft: Draft, orders: Sequence[UnitOrder], regions: Regions) -> None:
    """Single tensors against single tensors, whatever family they are of, if one side is raw."""
    singles = [_singles(draft.left_references), _singles(draft.left_ports)]
    matching = match(singles[0], singles[1], orders, regions, key=_sizes)
    raw = {unit.path for unit in (*draft.left_references, *draft.left_ports) if unit.family == "raw"}
    for link in matching.links:
        if link.reference.path in raw or link.port.path in raw:
            choice = choices.raw(link)
            if choice:
                plain = choices.is_plain(choice)
                draft.links[link.port.path] = replace(link, decided=link.decided or plain)
                if not plain:
                    draft.adopt(choice)
    linked = set(draft.links), {link.reference.path for link in draft.links.values()}
    draft.left_ports = _still_left(draft.left_ports, linked[0])
    draft.left_references = _still_left(draft.left_references, linked[1])


def _singles(units: Sequence[Unit]) -> list[Unit]:
    """Every required slot as a unit of its own."""
    return [
        replace(
            unit,
            path=unit.path if len(unit.required) == 1 else slot.stored.path,
            slots=(replace(slot, role="value"),),
        )
        for unit in units
        for slot in unit.required
    ]


def _sizes(unit: Unit) -> Key:
    """The key of a single tensor that may lie in another order of axes on the other side."""
    lengths = tuple(sorted(length for length in unit.slots[0].shape if length != 1))
    return "single", (("value", lengths),)


def _still_left(units: Sequence[Unit], linked: set[str]) -> list[Unit]:
    left = []
    for unit in units:
        slots = unit.required
        open_slots = tuple(s for s in slots if s.stored.path not in linked) if len(slots) > 1 else slots
        if unit.path in linked and len(slots) <= 1:
            continue
        if open_slots or not slots:
            left.append(replace(unit, slots=open_slots) if len(open_slots) < len(slots) else unit)
    return left


def _link_heads(draft: Draft) -> None:
    """A port's own head against a reference that multiplies with its embedding: a guess to be confirmed."""
    for unit in list(draft.left_ports):
        sources = [
            other
            for other in draft.references
            if other.family == "embedding" and other.key[1] == unit.key[1] and unit.family == "affine"
        ]
        if len(sources) == 1:
            guess = Link(sources[0], unit, ("the shape of the embedding",), 0.4, decided=False)
            draft.links[unit.path] = guess
            draft.left_ports.remove(unit)


def _open_orientations(draft: Draft) -> None:
    settled = {unit.path for choice in draft.choices for unit in choice.ports}
    for path, link in draft.links.items():
        if path in settled:
            continue
        if link.port.family == "raw":
            choice = choices.raw(link)
        else:
            choice = choices.orientation(link)
        if choice and len(choice.options) > 1:
            draft.adopt(choice)
