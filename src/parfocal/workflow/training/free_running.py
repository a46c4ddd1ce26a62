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
        loss = _free_loss(side, batch)
        backend.backward([loss], [None])
        value = float(backend.to_array(loss, copy=False).reshape(-1)[0])
    side.present = batches
    _free_update(side)
    return value


def _free_update(side: TrainingSide) -> None:
    side.clip_gradients()
    side.backend.optimizer_step(side.optimizer, side.evaluate)


def _free_loss(side: TrainingSide, batch: Batch) -> Any:
    backend = side.backend
    args, kwargs = arguments(batch.inputs, backend)
    with backend.no_functional_dropout() if side.mutes else UNCHANGED, side.lowered():
        return side.loss(side.model(*args, **kwargs), convert(batch.label, backend))


def _last_loss(side: TrainingSide, batches: Sequence[Batch]) -> float:
    """What ``free_step`` returns, where nothing comes after it: no gradients, no update."""
    with side.backend.no_grad():
        loss = [_free_loss(side, batch) for batch in batches][-1]
    return float(side.backend.to_array(loss, copy=False).reshape(-1)[0])


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

    def take_step(self, loss: float) -> None:
        """The first step, whose gradients the model has: it began with the same weights."""
        side, backend = self.side, self.side.backend
        before, counters = backend.exchange_optimizer_state(side.optimizer, self.state), side.counters()
        try:
            with side.telling("a step"):
                _free_update(side)
            self.losses.append(loss)
        finally:
            self.state = backend.exchange_optimizer_state(side.optimizer, before)
            self.counters = side.counters()
            side.set_counters(counters)
            self._exchange("parameter", self.weights)
            self.buffers = side.arrays("buffer", copy=True)

    def run(
        self,
        groups: Sequence[Sequence[Batch]],
        schedule: Any,
        metrics: Sequence[float],
        *,
        last: bool = False,
    ) -> None:
        """One step for every group of batches; the rates are those from ``schedule`` on, None: as they are.

        ``metrics``: what a schedule that asks how well the training does is told at every step. ``last``: no
        more steps come after these.
        """
        side, backend = self.side, self.side.backend
        before = backend.exchange_optimizer_state(side.optimizer, self.state)
        counters = side.counters()
        side.set_counters(self.counters)
        reached = None if schedule is None else backend.schedule_state(side.scheduler)
        self._exchange_all()
        try:
            with side.telling("a step"), backend.gradients_kept(side.model):
                if schedule is not None:
                    backend.set_schedule_state(side.scheduler, schedule)
                for number, batches in enumerate(groups):
                    if last and number == len(groups) - 1:
                        self.losses.append(_last_loss(side, batches))
                        break
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
            self._exchange_all()

    def forget(self) -> None:
        """Nothing but the losses is asked for any more."""
        self.weights, self.buffers, self.state = {}, {}, None

    def _exchange_all(self) -> None:
        """The model gets this course's weights and buffers, and the course those that the model has."""
        self._exchange("parameter", self.weights)
        self._exchange("buffer", self.buffers)

    def _exchange(self, role: str, arrays: Arrays) -> None:
        backend = self.side.backend
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

    def share_first(self, number: int, loss: float) -> None:
        """The port's own first step is that of the lockstep, where both agree: it costs an update only."""
        if number == 0 and self.own is not None and not self.port.evaluates:
            self.own.take_step(loss)

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
        last = number + len(wanted) >= self.steps
        for at, course in enumerate((self.nudged, self.own)):
            fresh = wanted[len(course.losses) - number :]
            batches = [[pair[at] for pair in group[: course.side.accumulate]] for group in fresh]
            if batches:
                course.run(batches, schedules[at], metrics, last=last)
            if last:
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
