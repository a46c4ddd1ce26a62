"""The weights of a dump in canonical form, so that both frameworks' layouts compare directly.

The tree of a dump says as much as a checkpoint with modules does; the tables of ``weights`` turn
it into units (a Linear, an LSTM, an attention with its projections) whose tensors have the same
roles and shapes on either side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from parfocal.compat.padiff.checker.dumps import Dump
from parfocal.weights.state import Owner, SideContents, StoredTensor
from parfocal.weights.tables import COUNTERS
from parfocal.weights.units import Unit, read_units

Entry = Mapping[str, Any]
# paddle lists the running statistics among the parameters, and so did PaDiff's dumps.
_STATISTICS = ("_mean", "_variance")


@dataclass(frozen=True)
class State:
    """Everything about one target ("weights" or "grads") of one dump."""

    dump: Dump
    units: list[Unit]
    files: Mapping[str, str | None]  # route of a tensor -> its file
    owners: Mapping[str, Entry]  # route of a tensor -> the module's entry in the tree


def read_state(dump: Dump, target: str) -> State:
    """Read the tree of ``params.json``, ``weights.json`` or ``grads.json``."""
    owners: dict[str, Owner] = {}
    stored: list[StoredTensor] = []
    files: dict[str, str | None] = {}
    entries: dict[str, Entry] = {}
    for entry in _walk(dump.document["tree"]):
        route = entry["route"]
        owners[route] = _owner(dump.framework, entry)
        for name, role, file in _tensors(entry, target):
            path = f"{route}.{name}"
            files[path], entries[path] = file, entry
            stored.append(StoredTensor(path, route, name, _shape(dump, entry, name, file), "", role))
    return State(dump, read_units(SideContents(dump.framework, tuple(stored), owners)), files, entries)


def _owner(framework: str, entry: Entry) -> Owner:
    layout = entry.get("weight_layout") or ("in,out" if framework == "paddle" else "out,in")
    # Trees of PaDiff itself have the class's name only: Conv2D is a Conv2d.
    kind = entry.get("kind") or re.sub(r"(\d)D$", r"\1d", entry["name"])
    return Owner(entry["route"], kind, {"weight_layout": layout})


def _shape(dump: Dump, entry: Entry, name: str, file: str | None) -> tuple[int, ...]:
    """As noted in the tree; dumps of PaDiff itself do not note it, and a missing gradient has none."""
    noted = entry.get("shapes", {}).get(name)
    if noted is not None:
        return tuple(noted)
    array = dump.array(file)
    if array is not None:
        return array.shape
    return (0, 0) if name.endswith("weight") else (0,)


def _walk(entry: Entry) -> Iterator[Entry]:
    yield entry
    for child in entry["children"]:
        yield from _walk(child)


def _tensors(entry: Entry, target: str) -> Iterator[tuple[str, str, str | None]]:
    for name, file in entry[target].items():
        yield name, "buffer" if name in _STATISTICS else "parameter", file
    if target == "weights":
        for name, file in entry.get("buffers", {}).items():
            if name not in COUNTERS:
                yield name, "buffer", file
