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

from parfocal.inputs import arguments, convert
from parfocal.judge import limits
from parfocal.judge.verdict import Finding
from parfocal.phrases import phrase
from parfocal.report.report import Curve
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.judging import moved
from parfocal.workflow.training.sides import UNCHANGED, Arrays, TrainingSide

PARTED = limits.causes.LOSSES_PARTED.value
LEAST, MOST, SHARE = limits.searches.HORIZON_STEPS.value
UNKNOWN = limits.searches.HORIZON_UNKNOWN.value
GROWN = limits.causes.LOSSES_GROWN.value
SEED = 20240304
Group = Sequence[tuple[Batch, Batch]]  # of one step


def steps_to_run(steps: int | None) -> int:
    return UNKNOWN if steps is None else min(steps, max(LEAST, min(MOST, steps // SHARE)))


def free_step(side: TrainingSide, batches: Sequence[Batch]) -> float:
    """One step as a training of its own makes it, unchecked; returns the loss of its last batch."""
    backend = side.backend
    value = math.nan
    for batch in batches:
        args, kwargs = arguments(batch.inputs, backend)
        with backend.no_functional_dropout() if side.mutes else UNCHANGED, side.lowered():
            output = side.model(*args, **kwargs)
            loss = side.loss(output, convert(batch.label, backend))
        backend.backward([loss], [None])
        value = float(backend.to_array(loss, copy=False).reshape(-1)[0])
    side.clip_gradients()
    side.present = batches
    backend.optimizer_step(side.optimizer, side.evaluate)
    return value


@dataclass(slots=True)
class OwnCourse:
    """One side's training with a state of its own, on the models and optimizers that are there."""

    side: TrainingSide
    weights: Arrays = field(default_factory=dict)
    buffers: Arrays = field(default_factory=dict)
    state: Any = None
    counters: dict[str, Any] = field(default_factory=dict)
    losses: list[float] = field(default_factory=list)

    @staticmethod
    def of(side: TrainingSide, *, nudged: bool) -> OwnCourse:
        weights, buffers = side.arrays("parameter", copy=True), side.arrays("buffer", copy=True)
        if nudged:
            generator = np.random.default_rng(SEED)
            weights = {path: moved(array, generator) for path, array in weights.items()}
        state = side.backend.copied_optimizer_state(side.optimizer)
        return OwnCourse(side, weights, buffers, state, side.counters())

    def run(self, groups: Sequence[Sequence[Batch]], schedule: Any, metrics: Sequence[float]) -> None:
        """One step for every group of batches; the rates are those from ``schedule`` on, None: as they are.

        ``metrics``: what a schedule that asks how well the training does is told at every step.
        """
        side, backend = self.side, self.side.backend
        before = backend.exchange_optimizer_state(side.optimizer, self.state)
        counters = side.counters()
        side.set_counters(self.counters)
        reached = None if schedule is None else backend.schedule_state(side.scheduler)
        self._exchange()
        try:
            with side.telling("a step"), backend.gradients_kept(side.model):
                if schedule is not None:
                    backend.set_schedule_state(side.scheduler, schedule)
                for number, batches in enumerate(groups):
                    self.losses.append(free_step(side, batches))
                    if schedule is not None:
                        side.step_schedule(metrics[number])
                    backend.clear_gradients(side.model)
        finally:
            self.state = backend.exchange_optimizer_state(side.optimizer, before)
            self.counters = side.counters()
            side.set_counters(counters)
            if reached is not None:
                backend.set_schedule_state(side.scheduler, reached)
            self._exchange()

    def forget(self) -> None:
        """Nothing but the losses is asked for any more."""
        self.weights, self.buffers, self.state = {}, {}, None

    def _exchange(self) -> None:
        """The model gets this course's weights and buffers, and the course those that the model has."""
        backend = self.side.backend
        for role, arrays in (("parameter", self.weights), ("buffer", self.buffers)):
            for path, tensor in self.side.tensors(role).items():
                present = backend.to_array(tensor)
                backend.write(tensor, arrays[path])
                arrays[path] = present


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

    def step(self, number: int, batches: Group) -> None:
        """The rates are those of the step; the lockstep's own state is as it was afterwards."""
        self.run(number, [batches], (None, None), [])

    def run(
        self, number: int, groups: Sequence[Group], schedules: tuple[Any, Any], metrics: Sequence[float]
    ) -> None:
        """Several steps from where the schedules stood."""
        wanted = groups[: max(0, self.steps - number)]
        if not wanted or self.nudged is None or self.own is None:
            return
        for at, course in enumerate((self.nudged, self.own)):
            batches = [[pair[at] for pair in group[: course.side.accumulate]] for group in wanted]
            course.run(batches, schedules[at], metrics)
            if number + len(wanted) >= self.steps:
                course.forget()

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
