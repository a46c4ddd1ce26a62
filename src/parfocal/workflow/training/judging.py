"""How far apart one phase of two trainings is, in units of what rounding makes unavoidable.

Most tensors are within a few units of their own size, and nothing more is asked. Beyond that the reference
is run again in float64, and with every weight and input moved by one unit in the last place; how far its
results then are from its own is the floor, remembered relative to their size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.capture.determinism import no_dropout
from parfocal.capture.tree import flatten, replace
from parfocal.errors import ParfocalError
from parfocal.inputs import arguments, convert
from parfocal.judge import limits
from parfocal.judge.apart import apart
from parfocal.judge.floors import (
    EPSILON,
    NOTHING,
    PEAK_SLACK,
    Size,
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


@dataclass(frozen=True, slots=True)
class Verdict:
    """One tensor of both sides: how far apart in units of noise, and whether that is too far."""

    score: float
    floor: Size
    wrong: bool


FINE = Verdict(0.0, NOTHING, False)


@dataclass(slots=True)
class RemeasuredStep:
    """What a step of the reference gives, measured again in another way."""

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
    ways: list[tuple[str | None, np.random.Generator | None]] = field(default_factory=list)  # not tried yet
    lost: tuple[Any, Arrays, Any] | None = None  # output, its tensors and label of the present batch
    losses: tuple[RemeasuredStep, ...] | None = None

    def begin(self, buffers: Arrays) -> None:
        self.batches, self.measured, self.buffers = [], [], buffers
        self.ways = list(_ways())

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
        if known is not None and score(error, _scaled(size, known)) <= limit:
            return FINE
        floor = own
        for again in self._losses_again() if of_loss else self._again():
            array = pick(again)
            if array is not None and array.shape == expected.shape:
                floor = floor | difference(array.astype(expected.dtype, copy=False), expected)
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
            dtype, chance = self.ways.pop(0)
            try:
                self.measured.append(self._run(dtype, chance))
            except ParfocalError:  # no kernel in float64, or a model that cannot be copied
                continue
            yield self.measured[-1]

    def begin_loss(self, output: Any, tensors: Arrays, label: Any) -> None:
        """What the loss of the present batch is computed from."""
        self.lost, self.losses = (output, tensors, label), None

    def _losses_again(self) -> tuple[RemeasuredStep, ...]:
        if self.losses is None:
            found = []
            for dtype, chance in _ways():
                try:
                    found.append(self._loss_again(dtype, chance))
                except ParfocalError:  # no kernel in float64
                    continue
            self.losses = tuple(found)
        return self.losses

    def _loss_again(self, dtype: str | None, generator: np.random.Generator | None) -> RemeasuredStep:
        """The loss of the same outputs in another dtype, or moved by one unit in the last place."""
        assert self.lost is not None
        (output, arrays, label), side = self.lost, self.side
        backend = side.backend
        widened = backend.widened() if dtype is not None else backend.with_grad()
        with backend.gradients_kept(side.model), widened:
            leaves = {
                slot: backend.from_array(
                    array.astype(dtype) if dtype is not None else _perhaps_moved(array, generator),
                    requires_grad=True,
                )
                for slot, array in arrays.items()
            }
            twin = TrainingSide(
                side.words, backend, side.model, side.loss, lower=side.lower if dtype is None else None
            )
            loss = twin.loss_of(replace(output, leaves), _prepared(label, side, dtype))
            twin.backward(loss)
            entering = {slot: backend.gradient(leaf) for slot, leaf in leaves.items()}
        return RemeasuredStep(
            loss=float(backend.to_array(loss).reshape(-1)[0]),
            entering={slot: array for slot, array in entering.items() if array is not None},
        )

    def _run(self, dtype: str | None, generator: np.random.Generator | None) -> RemeasuredStep:
        """The reference's copy in another dtype, or with everything moved by one unit in the last place."""
        side = self.side
        backend = side.backend
        twin = backend.copy_as(side.model, dtype)
        copy = TrainingSide(side.words, backend, twin, side.loss, lower=side.lower if dtype is None else None)
        copy.refresh()
        for path, tensor in copy.tensors("buffer").items():
            backend.write(tensor, self.buffers[path].astype(backend.dtype(tensor), copy=False))
        if generator is not None:
            for tensor in copy.tensors("parameter").values():
                backend.write(tensor, moved(backend.to_array(tensor), generator))
        results = RemeasuredStep()
        widened = backend.widened() if dtype is not None else backend.with_grad()
        with widened, backend.mode(twin, "keep"), no_dropout(twin), backend.recurrence_in_training(twin):
            for batch in self.batches:
                given = Batch(
                    _prepared(batch.inputs, side, dtype, generator), _prepared(batch.label, side, dtype)
                )
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


def _prepared(
    value: Any, side: TrainingSide, dtype: str | None, generator: np.random.Generator | None = None
) -> Any:
    """Inputs or labels in another dtype, or moved."""
    backend = side.backend
    tensors = convert(value, backend)
    changed = {}
    for slot, leaf in flatten(tensors).leaves.items():
        if not backend.is_tensor(leaf) or backend.dtype(leaf) not in EPSILON:
            continue
        if dtype is not None:
            changed[slot] = backend.cast(leaf, dtype)
        elif generator is not None:
            changed[slot] = backend.from_array(moved(backend.to_array(leaf), generator))
    return replace(tensors, changed)


def _ways() -> tuple[tuple[str | None, np.random.Generator | None], ...]:
    """With everything moved, which is cheapest, in float64, and moved once more."""
    generator = np.random.default_rng(SEED)
    return (None, generator), ("float64", None), (None, generator)


def _perhaps_moved(array: Array, generator: np.random.Generator | None) -> Array:
    return array if generator is None else moved(array, generator)


def moved(array: Array, generator: np.random.Generator) -> Array:
    """Every number one unit in the last place up or down."""
    epsilon = EPSILON.get(array.dtype.name)
    if epsilon is None:
        return array
    signs = generator.choice(np.array([-epsilon, epsilon]), array.shape)
    return np.asarray(array * (1 + signs)).astype(array.dtype)


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
