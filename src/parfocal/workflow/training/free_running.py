"""Both trainings by themselves, beside the lockstep: how the losses go, and from where on that says nothing.

The reference is also run from weights moved by one unit in the last place. The step from which that run parts
from the reference is the horizon: behind it two correct trainings part as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.judge.verdict import Finding
from parfocal.phrases import phrase
from parfocal.report.report import Curve
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.judging import moved
from parfocal.workflow.training.sides import Arrays, TrainingSide

PARTED = 1e-3  # relative difference of two losses that are no longer the same
LEAST, MOST, SHARE = 4, 64, 4  # steps that are run like this: one in four, within bounds
UNKNOWN = 16  # of a training whose length is not known
GROWN = 8.0  # times a difference must have grown to be said to grow
SEED = 20240304


def steps_to_run(steps: int | None) -> int:
    return UNKNOWN if steps is None else min(steps, max(LEAST, min(MOST, steps // SHARE)))


@dataclass(slots=True)
class OwnCourse:
    """One side's training with a state of its own, on the models and optimizers that are there."""

    side: TrainingSide
    weights: Arrays = field(default_factory=dict)
    buffers: Arrays = field(default_factory=dict)
    state: Any = None
    losses: list[float] = field(default_factory=list)

    @staticmethod
    def of(side: TrainingSide, *, nudged: bool) -> OwnCourse:
        weights, buffers = side.arrays("parameter", copy=True), side.arrays("buffer", copy=True)
        if nudged:
            generator = np.random.default_rng(SEED)
            weights = {path: moved(array, generator) for path, array in weights.items()}
        return OwnCourse(side, weights, buffers, side.backend.copied_optimizer_state(side.optimizer))

    def step(self, batches: Sequence[Batch]) -> None:
        with self.side.backend.gradients_kept(self.side.model):
            self._step(batches)

    def _step(self, batches: Sequence[Batch]) -> None:
        side, backend = self.side, self.side.backend
        kept = side.arrays("parameter", copy=True), side.arrays("buffer", copy=True)
        before = backend.exchange_optimizer_state(side.optimizer, self.state)
        try:
            self._write(self.weights, self.buffers)
            for batch in batches:
                loss = side.loss_of(side.forward(batch), batch.label)
                side.backward(loss)
                value = float(backend.to_array(loss).reshape(-1)[0])
            self.losses.append(value)
            side.clip_gradients()
            with side.telling("the optimizer's step"):
                backend.optimizer_step(side.optimizer)
            self.weights, self.buffers = side.arrays("parameter", copy=True), side.arrays("buffer", copy=True)
        finally:
            self.state = backend.exchange_optimizer_state(side.optimizer, before)
            self._write(*kept)

    def _write(self, weights: Arrays, buffers: Arrays) -> None:
        for role, arrays in (("parameter", weights), ("buffer", buffers)):
            for path, tensor in self.side.tensors(role).items():
                self.side.backend.write(tensor, arrays[path])


@dataclass(slots=True)
class FreeRunning:
    """The reference nudged and the port free, for the first steps."""

    reference: TrainingSide
    port: TrainingSide
    steps: int
    nudged: OwnCourse | None = None
    own: OwnCourse | None = None

    def begin(self) -> None:
        self.nudged = OwnCourse.of(self.reference, nudged=True)
        self.own = OwnCourse.of(self.port, nudged=False)

    def step(self, number: int, batches: Sequence[tuple[Batch, Batch]]) -> None:
        """The rates are those of the step; the lockstep's own state is as it was afterwards."""
        if number >= self.steps or self.nudged is None or self.own is None:
            return
        self.nudged.step([pair[0] for pair in batches[: self.reference.accumulate]])
        self.own.step([pair[1] for pair in batches[: self.port.accumulate]])

    def curve(self, losses: Sequence[float]) -> Curve | None:
        if self.own is None or not self.own.losses:
            return None
        count = len(self.own.losses)
        horizon = horizon_of(losses, self.nudged.losses)[0] if self.nudged is not None else None
        return Curve(
            "loss, each side by itself", tuple(losses[:count]), tuple(self.own.losses), horizon=horizon
        )

    def finding(self, losses: Sequence[float]) -> Finding | None:
        if self.nudged is None or not self.nudged.losses:
            return None
        horizon, seen = horizon_of(losses, self.nudged.losses)
        count = len(self.nudged.losses)
        start = phrase("chaos horizon: the reference against itself, moved by one unit in the last place, ")
        if horizon is None:
            words = phrase("does not part within the {count} steps that were tried", count=count)
        elif seen:
            words = phrase(
                "parts at step {horizon}: from there on two correct trainings part as well", horizon=horizon
            )
        else:
            words = phrase(
                "parts about step {horizon}, as its difference grew over the first {count} steps",
                horizon=horizon,
                count=count,
            )
        return Finding("training.horizon", start + words)


def horizon_of(losses: Sequence[float], nudged: Sequence[float]) -> tuple[int | None, bool]:
    """The step at which the two part, or None; and whether that was seen or follows from growth."""
    apart = [
        abs(a - b) / max(abs(a), math.ulp(1.0)) if math.isfinite(b) else math.inf
        for a, b in zip(losses, nudged, strict=False)
    ]
    for step, distance in enumerate(apart):
        if distance > PARTED:
            return step, True
    half = len(apart) // 2
    early, late = max(apart[: half or 1], default=0.0), max(apart[half:], default=0.0)
    if half < 2 or not early or late < GROWN * early:
        return None, False
    rate = math.log(late / early) / half
    return len(apart) - 1 + math.ceil(math.log(PARTED / late) / rate), False
