"""Tensors of the reference in the port's own shape: weights, gradients, slots and buffers go one way.

What holds for a weight holds for all that belongs to it: its gradient and its slots lie as it does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.weights import views
from parfocal.weights.plan import Entry, Plan
from parfocal.workflow.training.sides import Arrays, TrainingSide

Get = Callable[[str], Array | None]
STACKED = frozenset({"recent_gradients"})  # slots that hold several arrays, each as the parameter


@dataclass(slots=True)
class Carrier:
    """Which tensors of the reference make up which of the port."""

    pieces: dict[str, list[Entry]] = field(default_factory=dict)  # by the port's path
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    parameters: list[str] = field(default_factory=list)
    buffers: list[str] = field(default_factory=list)

    @staticmethod
    def of(plan: Plan, reference: TrainingSide, port: TrainingSide) -> Carrier:
        first = {
            entry.path: entry.tied_to or entry.path for entry in reference.backend.state(reference.model)
        }
        known = {entry.path: entry for entry in port.entries}
        made = Carrier()
        for entry in plan.entries:
            target = known.get(entry.target)
            if target is None or entry.source not in first:
                continue
            made.pieces.setdefault(entry.target, []).append(entry)
            made.shapes[entry.target] = port.backend.shape(target.value)
        made.pieces = {
            path: [_of_first(entry, first) for entry in entries] for path, entries in made.pieces.items()
        }
        for path in made.pieces:
            (made.parameters if known[path].role == "parameter" else made.buffers).append(path)
        return made

    def sources(self, path: str) -> list[str]:
        return list(dict.fromkeys(entry.source for entry in self.pieces[path]))

    def name(self, path: str) -> str:
        """The reference's path of a tensor of the port."""
        return self.sources(path)[0]

    def carry(self, path: str, get: Get) -> Array | None:
        """A tensor of the port put together from those of the reference; None where one is missing."""
        entries = self.pieces[path]
        found = {source: get(source) for source in self.sources(path)}
        if any(array is None for array in found.values()):
            return None
        arrays = {source: array for source, array in found.items() if array is not None}
        if len(entries) == 1 and not entries[0].target_view:
            source = arrays[entries[0].source]
            return views.apply(entries[0].source_view, source) if source.shape else source
        first = next(iter(arrays.values()))
        whole = np.zeros(self.shapes[path], first.dtype)
        for entry in entries:
            views.apply(entry.target_view, whole)[...] = views.apply(entry.source_view, arrays[entry.source])
        return whole

    def carried(self, paths: list[str], arrays: Arrays) -> Arrays:
        found = {path: self.carry(path, arrays.get) for path in paths}
        return {path: array for path, array in found.items() if array is not None}

    def carried_slots(self, slots: dict[str, Arrays]) -> dict[str, Arrays]:
        """By the port's path and the slot's name; a number belongs to the whole parameter."""
        found: dict[str, Arrays] = {}
        for path in self.parameters:
            sources = self.sources(path)
            names = slots.get(sources[0], {})
            own: Arrays = {}
            for name, values in names.items():
                if values.ndim == 0 or values.size == 1:
                    own[name] = values
                    continue
                several = range(len(values)) if name in STACKED else (...,)
                wholes = [self.carry(path, _part_of(slots, name, part)) for part in several]
                parts = [whole for whole in wholes if whole is not None]
                if len(parts) == len(wholes):
                    own[name] = np.stack(parts) if name in STACKED else parts[0]
            found[path] = own
        return found


def _part_of(slots: dict[str, Arrays], name: str, part: Any) -> Get:
    def get(source: str) -> Array | None:
        values = slots.get(source, {}).get(name)
        return None if values is None else values[part]

    return get


def _of_first(entry: Entry, first: dict[str, str]) -> Entry:
    if first[entry.source] == entry.source:
        return entry
    return Entry(first[entry.source], entry.target, entry.source_view, entry.target_view)
