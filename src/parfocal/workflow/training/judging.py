"""How far apart one phase of two trainings is, in units of what rounding makes unavoidable.

Most tensors are within a few units of their own size, and nothing more is asked. Beyond that the reference
is run again in float64, and with every weight and input moved by one unit in the last place; how far its
results then are from its own is the floor, remembered relative to their size. Where a value lies on a kink
(of a ReLU, of a maximum) results jump: the reference is moved a little more until it jumps as the port did.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.capture.determinism import no_dropout
from parfocal.capture.nested_values import flatten, replace
from parfocal.errors import ParfocalError
from parfocal.inputs import arguments, convert
from parfocal.judge import limits
from parfocal.judge.floors import (
    EPSILON,
    NOTHING,
    PEAK_SLACK,
    Size,
    apart,
    coarser,
    difference,
    error_of,
    score,
    size_of,
)
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.tolerance import Tolerance
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.sides import Arrays, TrainingSide

LOSS_LIMIT = limits.verdicts.LOSS_OF_A_STEP.value
END_LIMIT = limits.verdicts.WHOLE_MODEL.value
SMALL = 1 << 14  # elements of an array that NumPy goes through before anything else is set up
SEED = 20240303
CLEAR = limits.verdicts.CLEARLY_RIGHT.value
NEAR = limits.verdicts.NEAR_ROUNDING.value
KINK_UNITS = limits.verdicts.KINK_UNITS.value
KINK_LEFT = limits.verdicts.KINK_LEFT.value
KINK_TRIALS = limits.searches.KINK_TRIALS.value


@dataclass(frozen=True, slots=True)
class Verdict:
    """One tensor of both sides: how far apart in units of noise, and whether that is too far."""

    score: float
    floor: Size
    wrong: bool


FINE = Verdict(0.0, NOTHING, False)


@dataclass(frozen=True, slots=True)
class Way:
    """How a step is measured again: in another dtype, or moved by so many units in the last place."""

    dtype: str | None
    units: float = 0.0


FLOOR_WAYS = Way(None, 1.0), Way("float64"), Way(None, 1.0)  # the cheapest first
KINK_WAYS = (Way(None, KINK_UNITS),) * KINK_TRIALS


@dataclass(slots=True)
class RemeasuredStep:
    """What a step of the reference gives, measured again in another way."""

    way: Way
    outputs: Arrays = field(default_factory=dict)
    loss: float = math.nan
    gradients: Arrays = field(default_factory=dict)
    buffers: Arrays = field(default_factory=dict)
    entering: Arrays = field(default_factory=dict)  # gradients of the loss by outputs


@dataclass(slots=True)
class Noise:
    """The floors of the reference's outputs, loss and gradients."""

    side: TrainingSide
    mode: str
    tolerance: Tolerance | None
    relative: dict[Hashable, Size] = field(default_factory=dict)  # by what was compared
    batches: list[Batch] = field(default_factory=list)  # of the present step
    buffers: Arrays = field(default_factory=dict)  # as the step began
    measured: list[RemeasuredStep] = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)  # not tried yet
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))
    jumped: bool = False  # whether the port went another way on a kink at the present step
    lost: tuple[Any, Arrays, Any] | None = None  # output, its tensors and label of the present batch
    losses: tuple[RemeasuredStep, ...] | None = None

    def begin(self, buffers: Arrays) -> None:
        self.batches, self.buffers, self.jumped = [], buffers, False
        self._forget_measured()

    def add_batch(self, batch: Batch) -> None:
        """One more of the present step: what was measured before it lacks its share."""
        self.batches.append(batch)
        if len(self.batches) > 1:
            self._forget_measured()

    def _forget_measured(self) -> None:
        self.measured = []
        first, *rest = FLOOR_WAYS
        self.ways = [first, *KINK_WAYS, *rest] if self.relative else [*FLOOR_WAYS, *KINK_WAYS]
        self.generator = np.random.default_rng(SEED)

    def end(self) -> None:
        """Nothing more is asked of the present step."""
        self.measured = []

    def judge(
        self,
        key: Hashable,
        observed: Array,
        expected: Array,
        pick: Callable[[RemeasuredStep], Array | None],
        *,
        of_loss: bool = False,
    ) -> Verdict:
        """``pick``: the same tensor of the reference when it is run again, in the shape of ``expected``.

        ``of_loss``: only the loss is, on the outputs that are there.
        """
        if self.tolerance is not None:
            found = compare_arrays(observed, expected, tolerance=self.tolerance)
            return Verdict(math.inf if found.mismatched else 0.0, NOTHING, bool(found.mismatched))
        if observed.shape != expected.shape:
            return Verdict(math.inf, NOTHING, True)
        if observed.size <= SMALL and nearly(observed, expected, NEAR):
            return FINE
        limit = LOSS_LIMIT if observed.size == 1 and of_loss else END_LIMIT
        error, size = _measured(observed, expected)
        if error.peak == 0.0:
            return FINE
        own = size * coarser(observed.dtype.name, expected.dtype.name)
        if score(error, own) <= NEAR:
            return FINE
        known = self.relative.get(key)
        smooth = own if known is None else own | _scaled(size, known)
        if known is not None and score(error, smooth) <= limit:
            return FINE
        floor = own
        for again in self._losses_again() if of_loss else self._again():
            array = pick(again)
            if array is None or array.shape != expected.shape:
                continue
            array = array.astype(expected.dtype, copy=False)
            if _jumped_alike(observed, array, score(error, smooth), smooth, limit):
                self._note_jump(again)
                return FINE
            if again.way.units <= 1.0:
                floor = floor | difference(array, expected)
            if score(error, floor) <= limit / CLEAR:
                break
        if size.rms and size.peak:
            ratio = Size(floor.rms / size.rms, floor.peak / size.peak)
            self.relative[key] = ratio if known is None else ratio | known
        found_score = score(error, floor)
        return Verdict(found_score, floor, found_score > limit)

    def _again(self) -> Iterator[RemeasuredStep]:
        """One way after the other, as long as more is asked for: each costs a step of the reference."""
        yield from self.measured
        while self.ways:
            way = self.ways.pop(0)
            try:
                found = self._run(way)
            except ParfocalError:  # no kernel in float64, or a model that cannot be copied
                continue
            if way.units <= 1.0:  # of the others only those are kept that jump as the port does
                self.measured.append(found)
            yield found

    def _note_jump(self, again: RemeasuredStep) -> None:
        self.jumped = True
        if not any(again is each for each in self.measured):
            self.measured.append(again)

    def begin_loss(self, output: Any, tensors: Arrays, label: Any) -> None:
        """What the loss of the present batch is computed from."""
        self.lost, self.losses = (output, tensors, label), None

    def _losses_again(self) -> tuple[RemeasuredStep, ...]:
        if self.losses is None:
            found = []
            generator = np.random.default_rng(SEED)
            for way in FLOOR_WAYS:
                try:
                    found.append(self._loss_again(way, generator))
                except ParfocalError:  # no kernel in float64
                    continue
            self.losses = tuple(found)
        return self.losses

    def _loss_again(self, way: Way, generator: np.random.Generator) -> RemeasuredStep:
        """The loss of the same outputs in another dtype, or moved by one unit in the last place."""
        assert self.lost is not None
        (output, arrays, label), side, dtype = self.lost, self.side, way.dtype
        backend = side.backend
        widened = backend.widened() if dtype is not None else backend.with_grad()
        with backend.gradients_kept(side.model), widened:
            leaves = {
                slot: backend.from_array(
                    array.astype(dtype) if dtype is not None else moved(array, generator),
                    requires_grad=True,
                )
                for slot, array in arrays.items()
            }
            twin = TrainingSide(
                side.words, backend, side.model, side.loss, lower=side.lower if dtype is None else None
            )
            loss = twin.loss_of(replace(output, leaves), self._prepared(label, Way(dtype)))
            twin.backward(loss)
            entering = {slot: backend.gradient(leaf) for slot, leaf in leaves.items()}
        return RemeasuredStep(
            way,
            loss=float(backend.to_array(loss).reshape(-1)[0]),
            entering={slot: array for slot, array in entering.items() if array is not None},
        )

    def _run(self, way: Way) -> RemeasuredStep:
        """The reference's copy in another dtype, or with everything moved."""
        side, dtype = self.side, way.dtype
        backend = side.backend
        twin = backend.copy_as(side.model, dtype)
        copy = TrainingSide(side.words, backend, twin, side.loss, lower=side.lower if dtype is None else None)
        copy.refresh()
        for path, tensor in copy.tensors("buffer").items():
            backend.write(tensor, self.buffers[path].astype(backend.dtype(tensor), copy=False))
        if way.units:
            for tensor in copy.tensors("parameter").values():
                backend.write(tensor, moved(backend.to_array(tensor, copy=False), self.generator, way.units))
        results = RemeasuredStep(way)
        widened = backend.widened() if dtype is not None else backend.with_grad()
        with widened, backend.mode(twin, "keep"), no_dropout(twin), backend.recurrence_in_training(twin):
            for batch in self.batches:
                given = Batch(self._prepared(batch.inputs, way), self._prepared(batch.label, Way(dtype)))
                args, kwargs = arguments(given.inputs, backend)
                with copy.telling("the model"), copy.lowered():
                    output = twin(*args, **kwargs)
                results.outputs = {
                    slot: backend.to_array(leaf) for slot, leaf in copy.outputs(output).items()
                }
                loss = copy.loss_of(output, given.label)
                results.loss = float(backend.to_array(loss).reshape(-1)[0])
                copy.backward(loss)
        own = side.tensors("parameter")  # a twin in float64 is not kept in float64
        results.gradients = {
            path: array.astype(backend.dtype(own[path]), copy=False)
            for path, array in copy.gradients().items()
        }
        results.buffers = copy.arrays("buffer", copy=True)
        return results

    def _prepared(self, value: Any, way: Way) -> Any:
        """Inputs or labels in another dtype, or moved."""
        backend = self.side.backend
        tensors = convert(value, backend)
        changed = {}
        for slot, leaf in flatten(tensors).leaves.items():
            if not backend.is_tensor(leaf) or backend.dtype(leaf) not in EPSILON:
                continue
            if way.dtype is not None:
                changed[slot] = backend.cast(leaf, way.dtype)
            elif way.units:
                changed[slot] = backend.from_array(moved(backend.to_array(leaf), self.generator, way.units))
        return replace(tensors, changed)


def _jumped_alike(observed: Array, again: Array, error: float, floor: Size, limit: float) -> bool:
    """Whether the reference, moved a little, gives what the port gives, which it does not give unmoved."""
    return score(difference(observed, again), floor) <= min(limit, KINK_LEFT * error)


def moved(array: Array, generator: np.random.Generator, units: float = 1.0) -> Array:
    """Every number so many units in the last place up or down."""
    epsilon = EPSILON.get(array.dtype.name)
    if epsilon is None:
        return array
    drawn = np.frombuffer(generator.bytes((array.size + 7) // 8), np.uint8)
    upwards = np.unpackbits(drawn, count=array.size).view(np.bool_).reshape(array.shape)
    up, down = (array.dtype.type(1.0 + sign * units * epsilon) for sign in (1, -1))  # no rounding yet
    return np.asarray(array * np.where(upwards, up, down)).astype(array.dtype, copy=False)


def nearly(observed: Array, expected: Array, units: float) -> bool:
    """Whether two arrays are this near, quickly; False says nothing."""
    if observed.dtype != expected.dtype or observed.dtype.name != "float32":
        return False
    if observed.size > SMALL:
        found = apart(observed, np.ascontiguousarray(expected))
        if found is None:
            return False
        unit = units * EPSILON["float32"]
        return found.rms <= unit * found.reference_rms and (
            found.peak <= unit * PEAK_SLACK * found.reference_peak
        )
    apart_by = (observed - expected).reshape(-1)
    right = expected.reshape(-1)
    peak = max(abs(float(apart_by.max(initial=0.0))), abs(float(apart_by.min(initial=0.0))))
    if peak == 0.0:
        return True
    unit = units * EPSILON["float32"]
    size = float(np.dot(right, right))
    near = float(np.dot(apart_by, apart_by)) <= unit * unit * size
    return near and peak <= unit * PEAK_SLACK * max(float(right.max()), -float(right.min()))


def _measured(observed: Array, expected: Array) -> tuple[Size, Size]:
    found = apart(observed, expected)
    if found is not None:
        return Size(found.rms, found.peak), Size(found.reference_rms, found.reference_peak)
    return error_of(compare_arrays(observed, expected)), size_of(expected)


def _scaled(size: Size, ratio: Size) -> Size:
    return Size(size.rms * ratio.rms, size.peak * ratio.peak)
