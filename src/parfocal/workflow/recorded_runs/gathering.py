"""A launch as one process: the same step of all ranks, put together as if one had seen all of their data.

Batches are put together in the order in which the other run has the samples. The objective of a launch is the
mean of its ranks' losses, so gradients of what depends on the batch are divided by the number of ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge.moments import Fingerprint, fingerprint
from parfocal.judge.sketch import Sketch
from parfocal.replay.trace import Node, TensorData, Trace, Value
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.tensors import TensorTable

Order = Sequence[int] | None  # positions of the samples of all ranks, one rank after the other


@dataclass(frozen=True, slots=True)
class _Derived:
    """A tensor that was not recorded, but follows from those that were."""

    values: Callable[[], Array | None]
    marks: Callable[[], Sketch] | None  # None: only the fingerprint is known


class DerivedTensors(TensorTable):
    """The tensors of the same step of several ranks, and what is made of them."""

    def __init__(self, steps: Sequence[RecordedStep]) -> None:
        super().__init__(steps[0].run)
        self._tables = [step.tensors for step in steps]
        self._derived: dict[int, _Derived] = {}
        self._made: dict[object, TensorData] = {}

    def array(self, data: TensorData) -> Array | None:
        if id(data) in self._derived:
            return self._derived[id(data)].values()
        return self._owner(data).array(data)

    def has_order(self, data: TensorData) -> bool:
        found = self._derived.get(id(data))
        return found is None or found.marks is not None or found.values() is not None

    def sketch(self, data: TensorData) -> Sketch:
        found = self._derived.get(id(data))
        if found is None:
            return self._owner(data).sketch(data)
        if id(data) not in self._sketches and found.marks is not None and found.values() is None:
            self._sketches[id(data)] = found.marks()
        return super().sketch(data)

    def scaled(self, data: TensorData, factor: float) -> TensorData:
        """All values times a number."""

        def values() -> Array | None:
            array = self.array(data)
            return None if array is None else (array.astype(np.float64) * factor).astype(array.dtype)

        def marks() -> Sketch:
            known = self.sketch(data)
            return replace(
                known,
                mean=known.mean * factor,
                std=known.std * abs(factor),
                fingerprint=_scaled(known.fingerprint, factor),
                projection=tuple(each * factor for each in known.projection),
            )

        key = id(data), factor
        made = TensorData(data.shape, data.dtype, _scaled(data.fingerprint, factor), None)
        return self._keep(key, made, _Derived(values, marks if self.has_order(data) else None))

    def joined(self, parts: Sequence[TensorData], axis: int, order: Order, samples: int) -> TensorData:
        """Tensors of the ranks one after the other along ``axis``, their samples in another order."""

        def values() -> Array | None:
            arrays = [self.array(part) for part in parts]
            known = [array for array in arrays if array is not None]
            if len(known) < len(arrays):
                return None
            whole = np.concatenate(known, axis)
            return whole if order is None else _reordered(whole, axis, order, samples)

        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        made = TensorData(
            tuple(shape), parts[0].dtype, fingerprint_of_all([part.fingerprint for part in parts]), None
        )
        return self._keep((axis, order is None, *map(id, parts)), made, _Derived(values, None))

    def mean(self, parts: Sequence[TensorData]) -> TensorData:
        """Of tensors that do not grow with the batch, of which the launch has one for each rank."""

        def values() -> Array | None:
            arrays = [self.array(part) for part in parts]
            known = [array.astype(np.float64) for array in arrays if array is not None]
            if len(known) < len(parts):
                return None
            return np.asarray(np.mean(known, axis=0)).astype(parts[0].dtype)

        array = values()
        if array is None:  # a mean of fingerprints is not that of a mean
            return parts[0]
        made = TensorData(parts[0].shape, parts[0].dtype, fingerprint(array), None)
        return self._keep(("mean", *map(id, parts)), made, _Derived(values, None))

    def _keep(self, key: object, made: TensorData, derived: _Derived) -> TensorData:
        if key not in self._made:
            self._made[key] = made
            self._derived[id(made)] = derived
        return self._made[key]

    def _owner(self, data: TensorData) -> TensorTable:
        return next((table for table in self._tables if table.knows(data)), self._tables[0])

    def knows(self, data: TensorData) -> bool:
        return id(data) in self._derived or any(table.knows(data) for table in self._tables)


def _reordered(whole: Array, axis: int, order: Sequence[int], samples: int) -> Array:
    """Each sample may be several rows."""
    moved = np.moveaxis(whole, axis, 0)
    grouped = moved.reshape(samples, moved.shape[0] // samples, *moved.shape[1:])
    return np.moveaxis(grouped[np.asarray(order)].reshape(moved.shape), 0, axis)


def _scaled(marks: Fingerprint, factor: float) -> Fingerprint:
    ends = [None if end is None else end * factor for end in (marks.minimum, marks.maximum)]
    low, high = ends if factor >= 0 else ends[::-1]
    return Fingerprint(
        marks.size,
        marks.sum * factor,
        marks.l1 * abs(factor),
        marks.l2 * abs(factor),
        marks.third * factor**3,
        low,
        high,
    )


def fingerprint_of_all(parts: Sequence[Fingerprint]) -> Fingerprint:
    """Of all values of several tensors."""
    lows = [part.minimum for part in parts if part.minimum is not None]
    highs = [part.maximum for part in parts if part.maximum is not None]
    return Fingerprint(
        sum(part.size for part in parts),
        math.fsum(part.sum for part in parts),
        math.fsum(part.l1 for part in parts),
        math.sqrt(math.fsum(part.l2**2 for part in parts)),
        math.fsum(part.third for part in parts),
        min(lows, default=None),
        max(highs, default=None),
    )


def gather_ranks(steps: Sequence[RecordedStep], like: RecordedStep | None) -> RecordedStep:
    """All ranks of a step as one, samples in the order of ``like``; weights and updates are rank 0's."""
    first = steps[0]
    if len(steps) < 2 or not same_calls(steps):
        return first
    tensors = DerivedTensors(steps)
    sizes = [batch_of(step) for step in steps]
    join = _Join(tensors, sizes, None)
    if like is not None:
        join = replace(join, order=_order_of(first, steps, like, join))
    nodes = [
        _joined_node([step.trace.nodes[order] for step in steps], join, order in first.roots)
        for order in range(len(first.trace.nodes))
    ]
    losses = [step.end.loss for step in steps if step.end is not None and step.end.loss is not None]
    loss = sum(losses) / len(losses) if len(losses) == len(steps) else None
    return replace(
        first,
        tensors=tensors,
        trace=Trace(nodes),
        end=None if first.end is None else replace(first.end, loss=loss),
        given=frozenset(v.data.fingerprint for order in first.roots for v in nodes[order].inputs.values()),
        ops={},
    )


def same_calls(steps: Sequence[RecordedStep]) -> bool:
    """Whether all ranks call the same layers in the same order."""
    paths = [[(node.path, node.kind) for node in step.trace.nodes] for step in steps]
    return all(each == paths[0] for each in paths)


@dataclass(frozen=True, slots=True)
class _Join:
    """How tensors of ranks are put together."""

    tensors: DerivedTensors
    sizes: Sequence[int]  # samples of every rank
    order: Order

    def data(self, parts: Sequence[TensorData], batched: bool) -> TensorData:
        axis = self._axis(parts)
        if axis is not None and (batched or any(p.fingerprint != parts[0].fingerprint for p in parts)):
            return self.tensors.joined(parts, axis, self.order, sum(self.sizes))
        if len({part.shape for part in parts}) > 1 or all(
            p.fingerprint == parts[0].fingerprint for p in parts
        ):
            return parts[0]
        return self.tensors.mean(parts)

    def gradient(self, parts: Sequence[TensorData | None]) -> TensorData | None:
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        if self._axis(known) is None:
            return self.data(known, False)
        return self.tensors.scaled(self.data(known, True), 1.0 / len(parts))

    def _axis(self, parts: Sequence[TensorData]) -> int | None:
        """Along which the batch lies: the first whose extents go with the ranks' numbers of samples."""
        shapes = [part.shape for part in parts]
        if len({len(shape) for shape in shapes}) > 1:
            return None
        found = []
        for axis in range(len(shapes[0])):
            rest = {shape[:axis] + shape[axis + 1 :] for shape in shapes}
            times = {
                shape[axis] / size if size else 0.0 for shape, size in zip(shapes, self.sizes, strict=True)
            }
            if len(rest) == 1 and len(times) == 1 and (count := times.pop()) >= 1 and count == int(count):
                found.append((count, axis))
        return min(found)[1] if found else None


def batch_of(step: RecordedStep) -> int:
    """The number of samples: the first extent of what enters the model."""
    for order in step.roots:
        for value in step.trace.nodes[order].inputs.values():
            if value.data.shape:
                return value.data.shape[0]
    return 0


def _order_of(first: RecordedStep, steps: Sequence[RecordedStep], like: RecordedStep, join: _Join) -> Order:
    """Where the other run's samples are; None where that cannot be told."""
    for order, other in zip(first.roots, like.roots, strict=False):
        own, wanted = first.trace.nodes[order].inputs, like.trace.nodes[other].inputs
        for slot in own.keys() & wanted.keys():
            whole = join.data([step.trace.nodes[order].inputs[slot].data for step in steps], True)
            arrays = join.tensors.array(whole), like.tensors.array(wanted[slot].data)
            if arrays[0] is not None and arrays[1] is not None and arrays[0].shape == arrays[1].shape:
                found = positions_of(arrays[0], arrays[1])
                if found is not None:
                    return found
    return None


def positions_of(rows: Array, wanted: Array) -> list[int] | None:
    """Where each of the wanted rows is among the given ones, each once; None if one is missing."""
    places: dict[bytes, list[int]] = {}
    for position, row in enumerate(rows):
        places.setdefault(row.tobytes(), []).append(position)
    found = []
    for row in wanted:
        left = places.get(row.tobytes())
        if not left:
            return None
        found.append(left.pop(0))
    return found


def _joined_node(nodes: Sequence[Node], join: _Join, is_root: bool) -> Node:
    first = nodes[0]
    return replace(
        first,
        inputs=_joined_values([node.inputs for node in nodes], join, is_root),
        outputs=_joined_values([node.outputs for node in nodes], join, False),
        children=list(first.children),
    )


def _joined_values(sides: Sequence[Mapping[str, Value]], join: _Join, batched: bool) -> dict[str, Value]:
    found = {}
    for slot, first in sides[0].items():
        values = [side[slot] for side in sides if slot in side]
        if len(values) == len(sides):
            found[slot] = Value(
                join.data([value.data for value in values], batched),
                join.gradient([value.gradient for value in values]),
                first.differentiable,
                any(value.hidden for value in values),
            )
    return found
