"""One against many: what is left over on one side explained as several units of the other in one.

Fused layers (``fused.py``, with the norms of channels behind them) and stacks (``stacked.py``) become
choices. Weak links are undone where their units explain more this way.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from parfocal.weights import fused, stacked
from parfocal.weights.choices import Choice
from parfocal.weights.draft import STEALABLE, Draft, Runs
from parfocal.weights.fingerprint import distances
from parfocal.weights.observe import Observation
from parfocal.weights.sequences import Order
from parfocal.weights.units import Unit


def find_fused(draft: Draft, order: Order, runs: Runs | None) -> None:
    """Explain what is left over as one-against-many, both ways; what a better explanation frees, too."""
    for whole_is_reference in (True, False):
        while _claim_a_whole(draft, order, runs, whole_is_reference):
            pass


def _claim_a_whole(draft: Draft, order: Order, runs: Runs | None, whole_is_reference: bool) -> bool:
    wholes = draft.left_references if whole_is_reference else draft.left_ports
    pools = _pool(draft, not whole_is_reference), _pool(draft, whole_is_reference)
    sides = (runs if whole_is_reference else runs[::-1]) if runs else (None, None)
    for whole in filter(fused.may_be_fused, wholes):
        parts = fused.find_parts(whole, pools[1], _together(sides[1]), _places(draft, order))
        if parts:
            norms = _norms_behind(whole, parts, pools, sides)
            choice = fused.fused_choice(whole, parts, whole_is_reference, norms)
            _claim(draft, choice)
            return True
    return False


def _norms_behind(
    whole: Unit,
    parts: Sequence[Unit],
    pools: tuple[Sequence[Unit], Sequence[Unit]],
    runs: tuple[Observation | None, Observation | None],
) -> tuple[Unit, ...]:
    """The norm of channels that takes what the whole gives, and those of the parts; nothing, or all."""
    found = [
        _norm_behind(whole, pools[0], runs[0]),
        *(_norm_behind(unit, pools[1], runs[1]) for unit in parts),
    ]
    norms = tuple(unit for unit in found if unit is not None)
    return norms if len(norms) == len(found) and len({unit.path for unit in norms}) == len(norms) else ()


def _norm_behind(layer: Unit, pool: Sequence[Unit], run: Observation | None) -> Unit | None:
    before = run.first(layer.module) if run else None
    for unit in pool:
        if not fused.is_norm_of(unit, fused.rows(layer)):
            continue
        after = run.first(unit.module) if run else None
        beside = unit.path.rpartition(".")[0] == layer.path.rpartition(".")[0]
        if distances(before.outputs, after.inputs) == 0.0 if before and after else beside:
            return unit
    return None


def find_stacked(draft: Draft, order: Order) -> None:
    """Explain what is left over as stacks against lists, both ways."""
    for whole_is_reference in (True, False):
        while True:
            sides = draft.left_references, draft.left_ports
            stacks, left = sides if whole_is_reference else sides[::-1]
            pool, free = _pool(draft, whole_is_reference), {unit.path for unit in left}
            found = stacked.find(stacks, pool, _places(draft, order), free)
            if found is None:
                break
            choice = stacked.stacked_choice(found, whole_is_reference)
            _claim(draft, choice)


def _pool(draft: Draft, whole_is_reference: bool) -> list[Unit]:
    if whole_is_reference:
        return draft.left_ports + [link.port for link in draft.links.values() if link.confidence < STEALABLE]
    weak = [link.reference for link in draft.links.values() if link.confidence < STEALABLE]
    return draft.left_references + weak


def _together(run: Observation | None) -> Callable[[Unit, Unit], bool]:
    """Whether two units take the same input: seen in a run, or standing side by side."""

    def together(first: Unit, second: Unit) -> bool:
        if any(unit.kind == "MultiheadAttention" and unit.path.endswith(".out") for unit in (first, second)):
            return False  # the output projection of an attention taken apart: fed by the others
        calls = (run.first(first.module), run.first(second.module)) if run else (None, None)
        if first.module != second.module and calls[0] and calls[1]:
            return distances(calls[0].inputs, calls[1].inputs) == 0.0
        return first.path.rpartition(".")[0] == second.path.rpartition(".")[0]

    return together


def _places(draft: Draft, order: Order) -> Callable[[Unit], float]:
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


def _claim(draft: Draft, choice: Choice) -> None:
    """Let a choice speak for its units; links that had one of them are undone."""
    sides = {unit.path for unit in choice.references}, {unit.path for unit in choice.ports}
    for path, link in list(draft.links.items()):
        if link.reference.path in sides[0] or link.port.path in sides[1]:
            del draft.links[path]
            draft.left_references.append(link.reference)
            draft.left_ports.append(link.port)
    draft.left_references = [unit for unit in draft.left_references if unit.path not in sides[0]]
    draft.left_ports = [unit for unit in draft.left_ports if unit.path not in sides[1]]
    draft.adopt(choice)
