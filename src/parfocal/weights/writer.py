"""Carries a plan out on two live models, and can undo it.

Tensors in main memory are read and written through views of their own storage; a tensor
elsewhere is fetched once, changed and written back whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from parfocal.backends.protocol import Array, Backend, StateTensor
from parfocal.weights import views
from parfocal.weights.copying import copy_all
from parfocal.weights.plan import Entry


@dataclass(slots=True)
class WritableModel:
    """A model with its backend and its live tensors by path."""

    backend: Backend
    model: Any
    tensors: dict[str, StateTensor] = field(init=False)

    def __post_init__(self) -> None:
        self.tensors = {tensor.path: tensor for tensor in self.backend.state(self.model)}

    def array(self, path: str) -> Array:
        """The tensor's values, sharing its memory where that is possible."""
        return self.backend.to_array(self.tensors[path].value, copy=False)

    def snapshot(self, paths: Iterable[str] | None = None) -> dict[str, Array]:
        """Copies of all tensors, or of some."""
        wanted = self.tensors if paths is None else paths
        return {
            path: self.backend.to_array(self.tensors[path].value, copy=True)
            for path in wanted
            if self.tensors[path].tied_to is None
        }

    def changed_since(self, snapshot: Mapping[str, Array]) -> dict[str, Array]:
        """Copies of the tensors of a snapshot that hold other values now."""
        return self.snapshot(
            path for path, array in snapshot.items() if self.array(path).tobytes() != array.tobytes()
        )

    def restore(self, snapshot: Mapping[str, Array]) -> None:
        for path, array in snapshot.items():
            self.backend.write(self.tensors[path].value, array)


def write(entries: Sequence[Entry], reference: WritableModel, port: WritableModel) -> None:
    """Carry out all copies."""
    targets: dict[str, Array] = {}
    away: list[str] = []  # targets whose array does not share the tensor's memory
    copies = []
    for entry in entries:
        if entry.target not in targets:
            targets[entry.target], shared = _writable(port, entry.target)
            if not shared:
                away.append(entry.target)
        target = views.apply(entry.target_view, targets[entry.target])
        copies.append((target, views.apply(entry.source_view, reference.array(entry.source))))
    copy_all(copies)
    for path in away:
        port.backend.write(port.tensors[path].value, targets[path])


def _writable(port: WritableModel, path: str) -> tuple[Array, bool]:
    value = port.tensors[path].value
    array = port.array(path)
    if port.backend.device(value) == "cpu" and array.flags.writeable:
        return array, True
    return port.backend.to_array(value, copy=True), False
