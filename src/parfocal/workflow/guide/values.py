"""Values that go from one process to another, or are kept: nested arrays in one file each.

Nothing in such a file is executed when it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.capture.nested_values import flatten
from parfocal.errors import StorageError
from parfocal.phrases import phrase
from parfocal.workflow.batches import load_batches, save_batches


def keep(value: Any, path: Path) -> str:
    """Write arrays, tensors and plain values, nested as they like; returns the file's name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            phrase("cannot write {path}: {strerror}", path=path, strerror=error.strerror)
        ) from error
    save_batches([value], path, 1)
    return str(path)


def take(path: str | Path) -> Any:
    """What ``keep`` wrote, with arrays for tensors."""
    return load_batches(path, "numpy")[0]


def named_arrays(value: Any, name: str) -> dict[str, Array]:
    """The arrays of a nested value: under ``name`` where it is only one, else with its slot behind it."""
    leaves = {slot: leaf for slot, leaf in flatten(value).leaves.items() if isinstance(leaf, np.ndarray)}
    if len(leaves) == 1:
        return {name: next(iter(leaves.values()))}
    return {f"{name}.{slot}": leaf for slot, leaf in leaves.items()}


def named_outputs(value: Any, taken: Collection[str] = ()) -> dict[str, Array]:
    """The arrays of a model's output, under the names that it gives them unless these are ``taken``."""
    found = named_arrays(value, "output")
    if not isinstance(value, Mapping):
        return found
    names = [slot for slot, leaf in flatten(value).leaves.items() if isinstance(leaf, np.ndarray)]
    if not set(names).isdisjoint(taken):
        return found
    return dict(zip(names, found.values(), strict=True))


def joined(parts: list[Any]) -> Any:
    """Nested arrays of several batches as one, along their first axis."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: joined([part[key] for part in parts]) for key in first}
    if isinstance(first, (tuple, list)):
        return type(first)(joined([part[index] for part in parts]) for index in range(len(first)))
    if isinstance(first, np.ndarray):
        return np.concatenate([np.atleast_1d(part) for part in parts])
    return first
