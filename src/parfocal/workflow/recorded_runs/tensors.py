"""Recorded tensors, known by their fingerprints until values are asked for, and how far two are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.errors import InputError
from parfocal.judge.layouts import fit, same_extents, without_ones
from parfocal.judge.metrics import Comparison, compare_arrays
from parfocal.judge.moments import Fingerprint, fingerprint
from parfocal.judge.picture import picture_of
from parfocal.judge.sketch import Sketch, relative_distance, sketch
from parfocal.judge.tolerance import Tolerance
from parfocal.matching.values import SAME, distance, tie_slots
from parfocal.phrases import phrase
from parfocal.replay.observe import FLOATING
from parfocal.replay.trace import TensorData, Value
from parfocal.run.reader import Run
from parfocal.run.records import TensorValue

# A call that is given no error is not accused of less than this (call_errors.py: JUMP times GIVEN units in
# the last place of float32). So many pictures of errors are made of a step: the first are looked at.
ACCUSED = 1.5e-5
PICTURES = 12


@dataclass(frozen=True, slots=True)
class RelativeDistance:
    """How far a port's tensor is from the reference's, relative to the reference's norm.

    With a tolerance the error is 0 within it and infinite beyond.
    """

    error: float
    comparison: Comparison | None = None


class Arrangement(Enum):
    """How the values of two tensors lie to each other."""

    SAME = "same"
    TRANSPOSED = "transposed"
    UNKNOWN = "unknown"  # whatever fits best


class TensorTable:
    """The tensors of one step. The same bytes give the same ``TensorData``: that shows what feeds what."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._known: dict[object, TensorData] = {}
        self._values: dict[int, TensorValue] = {}
        self._sketches: dict[int, Sketch] = {}

    def data(self, value: TensorValue) -> TensorData:
        parsed = Sketch.from_json(dict(value.sketch)) if value.sketch is not None else None
        key = value.ref if parsed is None else (value.shape, parsed.fingerprint, parsed.projection)
        if key is None:
            raise InputError(
                phrase(
                    "{path} has statistics only (tensors={tensors}): values cannot be compared",
                    path=self.run.path,
                    tensors=repr(self.run.header.tensors),
                ),
                hint=phrase('record with tensors="full" or tensors="sketch"'),
            )
        if key not in self._known:
            marks = fingerprint(self.run.read(value)) if parsed is None else parsed.fingerprint
            data = self._known[key] = TensorData(value.shape, value.dtype, marks, None)
            self._values[id(data)] = value
            if parsed is not None:
                self._sketches[id(data)] = parsed
        return self._known[key]

    def array(self, data: TensorData) -> Array | None:
        """The values, where they were kept."""
        value = self._values[id(data)]
        return None if value.ref is None else self.run.read(value)

    def knows(self, data: TensorData) -> bool:
        return id(data) in self._values

    def has_order(self, data: TensorData) -> bool:
        """Whether more is known than a fingerprint, which says nothing of the order of the values."""
        return True

    def sketch(self, data: TensorData) -> Sketch:
        """Of a tensor whose order is known."""
        if id(data) not in self._sketches:
            values = self.array(data)
            assert values is not None  # otherwise a sketch was recorded
            self._sketches[id(data)] = sketch(values)
        return self._sketches[id(data)]


class Distances:
    """How far tensors of two steps are apart, each pair measured once.

    ``moves``: axes may lie in another order without changing the shape (NCHW against NHWC). Where they
    may not, a sketch is compared by its projection, which depends on the order.
    """

    def __init__(self, reference: TensorTable, port: TensorTable, tolerance: Tolerance | None) -> None:
        self.reference = reference
        self.port = port
        self.tolerance = tolerance
        self.moves = True
        self._pictures = 0  # that were made
        self._known: dict[tuple[int, int, bool, Arrangement], RelativeDistance] = {}

    def between(
        self, own: TensorData, other: TensorData, *, judged: bool = False, lies: Arrangement | None = None
    ) -> RelativeDistance:
        """``judged``: by the fixed tolerance, where there is one. ``lies``: how, where that is known."""
        judged = judged and self.tolerance is not None
        lies = lies or (Arrangement.UNKNOWN if self.moves else Arrangement.SAME)
        key = id(own), id(other), judged, lies
        if key not in self._known:
            self._known[key] = self._measure(own, other, judged, lies)
        return self._known[key]

    def _measure(
        self, own: TensorData, other: TensorData, judged: bool, lies: Arrangement
    ) -> RelativeDistance:
        observed, recorded = self.port.array(own), self.reference.array(other)
        if observed is not None and recorded is not None:
            return self._of_arrays(observed, recorded, judged, lies)
        if judged:
            raise InputError(
                phrase("a fixed tolerance needs full tensors"),
                hint=phrase('record both runs with tensors="full"'),
            )
        return RelativeDistance(self._of_sketches(own, other, lies))

    def _of_arrays(
        self, observed: Array, recorded: Array, judged: bool, lies: Arrangement
    ) -> RelativeDistance:
        if lies is Arrangement.TRANSPOSED:
            recorded = recorded.T
        if observed.size != recorded.size and broadcasts(observed.shape, recorded.shape):
            observed, recorded = np.broadcast_arrays(observed, recorded)
        layout = fit(recorded, observed, may_move=lies is Arrangement.UNKNOWN)
        if layout is None:
            return RelativeDistance(math.inf)
        tolerance = self.tolerance if judged else None
        expected = layout.apply(recorded)
        comparison = compare_arrays(observed, expected, tolerance=tolerance)
        if comparison.rel_l2 > ACCUSED and self._pictures < PICTURES:
            self._pictures += 1
            comparison = replace(comparison, picture=picture_of(observed, expected))
        if judged:
            return RelativeDistance(math.inf if comparison.mismatched else 0.0, comparison)
        return RelativeDistance(comparison.rel_l2, comparison)

    def _of_sketches(self, own: TensorData, other: TensorData, lies: Arrangement) -> float:
        marks = own.fingerprint, other.fingerprint
        if marks[0].size != marks[1].size and broadcasts(own.shape, other.shape):
            size = max(each.size for each in marks)
            return _beyond_rounding(distance(*(repeated(each, size) for each in marks)))
        order_free = distance(*marks)
        if lies is Arrangement.TRANSPOSED and min(own.shape, default=1) > 1:
            return _beyond_rounding(order_free)
        if own.shape != other.shape and without_ones(own.shape) != without_ones(other.shape):
            # projections say nothing across layouts, fingerprints little
            return _beyond_rounding(order_free)
        if not (self.port.has_order(own) and self.reference.has_order(other)):
            return _beyond_rounding(order_free)
        apart = relative_distance(self.port.sketch(own), self.reference.sketch(other))
        if lies is Arrangement.UNKNOWN and apart > 0.1 and order_free <= SAME:
            return _beyond_rounding(order_free)
        return apart


def _beyond_rounding(order_free: float) -> float:
    return order_free if order_free > SAME else 0.0


def broadcasts(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether one of two shapes becomes the other by repeating along axes of length one."""
    try:
        return np.broadcast_shapes(one, other) in (one, other)
    except ValueError:
        return False


def repeated(marks: Fingerprint, size: int) -> Fingerprint:
    """The fingerprint of a tensor that holds the same values several times over."""
    times = size // marks.size if marks.size else 1
    return replace(
        marks,
        size=marks.size * times,
        sum=marks.sum * times,
        l1=marks.l1 * times,
        l2=marks.l2 * math.sqrt(times),
        third=marks.third * times,
    )


def tie_values(port: Mapping[str, Value], reference: Mapping[str, Value]) -> dict[str, Value]:
    """Port slot -> the reference's value there; what has no partner of its size may broadcast to one."""
    tied = tie_slots(port, reference)
    taken = {id(value) for value in tied.values()}
    left = {name: value for name, value in reference.items() if id(value) not in taken}
    for slot, own in port.items():
        if slot in tied:
            continue
        fitting = [name for name, other in left.items() if _may_broadcast(own.data, other.data)]
        if fitting:
            chosen = slot if slot in fitting else fitting[0]
            tied[slot] = left.pop(chosen)
    return tied


def _may_broadcast(own: TensorData, other: TensorData) -> bool:
    alike = (own.dtype in FLOATING) == (other.dtype in FLOATING)
    return alike and bool(own.shape) and bool(other.shape) and broadcasts(own.shape, other.shape)


def lies_otherwise(own: TensorData, other: TensorData) -> bool:
    """Whether two tensors of the same values have the same extents in another order."""
    return (
        without_ones(own.shape) != without_ones(other.shape)
        and len(own.shape) == len(other.shape)
        and same_extents(own.shape, other.shape)
        and distance(own.fingerprint, other.fingerprint) <= SAME
    )
