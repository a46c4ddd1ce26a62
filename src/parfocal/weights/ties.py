"""Units that values alone cannot tell apart: equal keys and equal inputs, or no call of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from parfocal.weights.draft import Draft
from parfocal.weights.fingerprint import distances, noise_of
from parfocal.weights.observe import FinishedCall, ObservedRun
from parfocal.weights.print_index import PrintIndex
from parfocal.weights.trials import EqualUnits
from parfocal.weights.units import Key, Unit


def by_key(references: Sequence[Unit], seen: ObservedRun) -> dict[Key, list[tuple[Unit, FinishedCall]]]:
    """Units with their first calls, by key."""
    found: dict[Key, list[tuple[Unit, FinishedCall]]] = {}
    for unit in called(references):
        call = seen.first(unit.module)
        if call:
            found.setdefault(unit.key, []).append((unit, call))
    return found


def called(units: Sequence[Unit]) -> list[Unit]:
    """Units that are known by a call of their own: whole modules, and the only parameter of a module."""
    owned = Counter(unit.module for unit in units if unit.required)
    return [unit for unit in units if unit.path == unit.module or (unit.required and owned[unit.module] == 1)]


def ties(references: Sequence[Unit], seen: ObservedRun) -> list[EqualUnits]:
    """Units of one key that take the same input, and units of one module without calls of their own."""
    groups: list[list[str]] = []
    for candidates in by_key(references, seen).values():
        index = PrintIndex((item, item[1].inputs) for item in candidates)
        done: set[str] = set()
        for unit, call in candidates:
            if unit.path in done:
                continue
            noise = noise_of(call.inputs)
            members = [
                other.path
                for other, its in index.near(call.inputs, noise)
                if other.path not in done and distances(its.inputs, call.inputs) <= noise
            ]
            done.update((unit.path, *members))
            groups.append(members)
    return [EqualUnits(tuple(members)) for members in (*groups, *uncalled(references)) if len(members) > 1]


def ties_of_uncalled(draft: Draft) -> list[EqualUnits]:
    """What is linked with raw parameters of one module of the port: no call tells which is which."""
    groups = [[draft.links.get(path) for path in paths] for paths in uncalled(draft.ports)]
    tied = [tuple(link.reference.path for link in group if link) for group in groups]
    return [
        EqualUnits(paths) for paths, group in zip(tied, groups, strict=True) if len(paths) == len(group) > 1
    ]


def uncalled(units: Sequence[Unit]) -> list[list[str]]:
    """Units of one module that are used without a call of their own: raw parameters, parts of composites."""
    found: dict[object, list[str]] = {}
    for unit in units:
        if unit.path != unit.module and unit.required:
            found.setdefault((unit.module, unit.key), []).append(unit.path)
    return list(found.values())
