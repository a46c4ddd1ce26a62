"""One against many: what is left over on one side explained as several units of the other in one.

Fused layers (``fused.py``, with the norms of channels behind them) and stacks (``stacked.py``) become
choices. Weak links are undone where their units explain more this way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

from parfocal.weights import fused, stacked
from parfocal.weights.choices import Choice
from parfocal.weights.company import NormsBehind, PartCandidates
from parfocal.weights.draft import STEALABLE, Draft, Runs
from parfocal.weights.sequences import UnitOrder
from parfocal.weights.units import Key, Unit

ExplainsMore = Callable[[Sequence[Unit], Sequence[Unit]], bool]


def find_fused(draft: Draft, order: UnitOrder, runs: Runs | None) -> None:
    """Explain what is left over as one-against-many, both ways; what a better explanation frees, too."""
    for whole_is_reference in (True, False):
        while _claim_wholes(draft, order, runs, whole_is_reference):
            pass


def _claim_wholes(draft: Draft, order: UnitOrder, runs: Runs | None, whole_is_reference: bool) -> bool:
    """Find the parts of all wholes that have some; whether there was any."""
    wholes = draft.left_references if whole_is_reference else draft.left_ports
    wholes = [unit for unit in wholes if fused.may_be_fused(unit)]
    if not wholes:
        return False
    pools = _pool(draft, not whole_is_reference), _pool(draft, whole_is_reference)
    sides = (runs if whole_is_reference else runs[::-1]) if runs else (None, None)
    companies = PartCandidates(pools[1], sides[1], _places(draft, order))
    norms = NormsBehind(pools[0], sides[0]), NormsBehind(pools[1], sides[1])
    explains_more = _explains_more_now(draft, whole_is_reference)
    found = []
    for whole in wholes:
        parts = companies.parts_of(whole)
        if parts:
            behind = [norms[0].of(whole), *(norms[1].of(unit) for unit in parts)]
            known = tuple(unit for unit in behind if unit is not None)
            together = len(known) == len(behind) == len({unit.path for unit in known})
            choice = fused.fused_choice(whole, parts, whole_is_reference, known if together else ())
            ones, many = choice.references, choice.ports
            ones, many = (ones, many) if whole_is_reference else (many, ones)
            companies.take(unit.path for unit in many)
            if explains_more(ones, many):
                found.append(choice)
    _claim(draft, found)
    return bool(found)


def find_stacked(draft: Draft, order: UnitOrder) -> None:
    """Explain what is left over as stacks against lists, both ways."""
    for whole_is_reference in (True, False):
        while True:
            sides = draft.left_references, draft.left_ports
            stacks, left = sides if whole_is_reference else sides[::-1]
            pool, free = _pool(draft, whole_is_reference), {unit.path for unit in left}
            explains_more = _explains_more_now(draft, whole_is_reference)
            found = stacked.find(stacks, pool, _places(draft, order), free, explains_more)
            if found is None:
                break
            choice = stacked.stacked_choice(found, whole_is_reference)
            _claim(draft, [choice])


def _explains_more_now(draft: Draft, whole_is_reference: bool) -> ExplainsMore:
    """A function of wholes and parts: whether fewer units are left over when these are linked.

    It counts with the links as they are now. The parts leave their partners, which may be linked anew with
    units of the same shapes that are left over.
    """
    partners: dict[str, list[Unit]] = {}
    for link in draft.links.values():
        whole, part = (link.reference, link.port) if whole_is_reference else (link.port, link.reference)
        partners.setdefault(part.path, []).append(whole)
    left: dict[str, list[Key]] = {}
    for unit in draft.left_ports if whole_is_reference else draft.left_references:
        left.setdefault(unit.path, []).append(unit.key)
    spare = Counter(key for keys in left.values() for key in keys)

    def explains_more(wholes: Sequence[Unit], parts: Sequence[Unit]) -> bool:
        taken = {unit.path for unit in parts}
        freed = [unit for path in taken for unit in partners.get(path, ())]
        remaining = spare - Counter(key for path in taken for key in left.get(path, ()))
        linked_anew = (Counter(unit.key for unit in freed) & remaining).total()
        left_over_now = len(wholes) + len(parts) - len(freed)
        return len(freed) - 2 * linked_anew < left_over_now

    return explains_more


def _pool(draft: Draft, whole_is_reference: bool) -> list[Unit]:
    if whole_is_reference:
        return draft.left_ports + [link.port for link in draft.links.values() if link.confidence < STEALABLE]
    weak = [link.reference for link in draft.links.values() if link.confidence < STEALABLE]
    return draft.left_references + weak


def _places(draft: Draft, order: UnitOrder) -> Callable[[Unit], float]:
    """Where a unit stands, counted in linked units before it, so that both sides use one scale."""
    positions: dict[int, list[int]] = {}
    sides = (order.reference, order.port)
    for number, positions_of in enumerate(sides):
        linked = (link.reference if number == 0 else link.port for link in draft.links.values())
        positions[number] = sorted(positions_of[unit.path] for unit in linked if unit.path in positions_of)
    mine = {id(unit) for unit in draft.references}

    def place(unit: Unit) -> float:
        number = 0 if id(unit) in mine else 1
        position = sides[number].get(unit.path)
        if position is None:
            return float(unit.rank)
        return bisect_left(positions[number], position) + position / (1.0 + len(sides[number]))

    return place


def _claim(draft: Draft, found: Sequence[Choice]) -> None:
    """Let choices speak for their units; links that had one of them are undone."""
    taken = (
        {unit.path for choice in found for unit in choice.references},
        {unit.path for choice in found for unit in choice.ports},
    )
    for path, link in list(draft.links.items()):
        if link.reference.path in taken[0] or path in taken[1]:
            del draft.links[path]
            draft.left_references.append(link.reference)
            draft.left_ports.append(link.port)
    draft.left_references = [unit for unit in draft.left_references if unit.path not in taken[0]]
    draft.left_ports = [unit for unit in draft.left_ports if unit.path not in taken[1]]
    for choice in found:
        draft.adopt(choice)
