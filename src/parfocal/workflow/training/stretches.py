"""Several steps of both sides at once, each by itself, and compared where they end.

In lockstep every tensor of every phase of a step is read, judged and led, which costs several times the step
itself. Where the first steps agree, the next ones are run freely instead: weights, slots and buffers at the
end are held against what rounding makes of so many steps. Where that is exceeded, both sides go back to the
beginning and the same steps are made in lockstep, so that no verdict rests on a stretch alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.updates.floors import LIMIT
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, apart
from parfocal.workflow.training.buffer_phase import BufferPhase, biased_count
from parfocal.workflow.training.data_phase import compare_inputs
from parfocal.workflow.training.dropout import asked_rates
from parfocal.workflow.training.free_running import FreeRunning, free_step
from parfocal.workflow.training.passes import Passes
from parfocal.workflow.training.pending import Group
from parfocal.workflow.training.sides import Arrays, TrainingSide
from parfocal.workflow.training.update_phase import UpdatePhase

WARM = limits.searches.LOCKSTEP_FIRST.value
FIRST, LONGEST = limits.searches.STRETCH_STEPS.value
IN_A_ROW = limits.searches.STRETCHES_IN_A_ROW.value
LARGE = limits.searches.STRETCH_LARGE.value
TRIES = limits.searches.STRETCH_TRIES.value
ROUNDING = limits.causes.STRETCH_ROUNDING.value
NOISY = limits.causes.STRETCH_NOISY.value
LOSS = limits.causes.STRETCH_LOSS.value

Groups = Sequence[Group]


@dataclass(slots=True)
class _Start:
    """One side as a stretch begins."""

    side: TrainingSide
    weights: Arrays
    buffers: Arrays
    optimizer: Any
    counters: dict[str, Any]
    schedule: Any

    @staticmethod
    def of(side: TrainingSide) -> _Start:
        backend = side.backend
        return _Start(
            side,
            side.arrays("parameter", copy=True),
            side.arrays("buffer", copy=True),
            backend.copied_optimizer_state(side.optimizer),
            side.counters(),
            None if side.scheduler is None else backend.schedule_state(side.scheduler),
        )

    def go_back(self) -> None:
        side, backend = self.side, self.side.backend
        for role, arrays in (("parameter", self.weights), ("buffer", self.buffers)):
            for path, tensor in side.tensors(role).items():
                backend.write(tensor, arrays[path])
        backend.exchange_optimizer_state(side.optimizer, self.optimizer)
        side.set_counters(self.counters)
        if side.scheduler is not None:
            backend.set_schedule_state(side.scheduler, self.schedule)
        side.clear()


@dataclass(slots=True)
class _Rates:
    """The rate of every parameter of a side, looked up again where a group's changes."""

    side: TrainingSide
    groups: list[float] | None = None
    known: dict[str, float] = field(default_factory=dict)

    def read(self) -> dict[str, float]:
        groups = self.side.backend.optimizer_rates(self.side.optimizer)
        if groups != self.groups:
            self.groups = groups
            self.known = {path: float(own["lr"]) for path, own in self.side.settings().items()}
        return self.known


def _part(ours: float, theirs: float) -> bool:
    return abs(theirs - ours) > LOSS * max(1.0, abs(ours))


@dataclass(slots=True)
class Stretches:
    """Runs stretches for as long as they agree."""

    passes: Passes
    buffers: BufferPhase
    updates: UpdatePhase
    length: int = FIRST
    failures: int = 0
    waiting: int = WARM  # steps in lockstep before the next stretch
    in_a_row: int = 0  # longest stretches that agreed, one after the other
    run_freely: int = 0  # steps so far
    large: bool | None = None  # the models, once that is known
    mutes: bool = False  # functions that drop, which takes time at every call of any function
    losses: list[tuple[float, float]] = field(default_factory=list)  # of the last stretch
    rates: list[tuple[dict[str, float], dict[str, float]]] = field(default_factory=list)  # by own paths

    def next_length(self) -> int:
        """How many steps may be run freely from here; 0: the next one goes in lockstep."""
        if self.failures >= TRIES or self.waiting > 0 or self._is_large():
            return 0
        return self.length

    def _is_large(self) -> bool:
        """Judging a step costs some time for every tensor; a stretch costs memory for all of them."""
        if self.large is None:
            arrays = self.passes.reference.arrays("parameter")
            self.large = sum(array.size for array in arrays.values()) > LARGE
        return self.large

    def note_lockstep(self) -> None:
        self.waiting -= 1

    def run(self, step: int, groups: Groups, free: FreeRunning | None) -> bool:
        """Whether both sides agree at the end; both are as they were, if not."""
        sides = self.passes.reference, self.passes.port
        starts = [_Start.of(side) for side in sides]
        with ExitStack() as undo:
            for side in sides if not self.mutes else ():
                undo.callback(setattr, side, "mutes", side.mutes)
                side.mutes = False
            agree = self._same_data(step, groups) and self._both_run(groups)
        agree = agree and self._agree(starts, len(groups))
        self.in_a_row = self.in_a_row + 1 if agree and len(groups) == LONGEST else 0
        self.waiting = 0 if self.in_a_row % IN_A_ROW else 1
        if not agree:
            for start in starts:
                start.go_back()
            self._shorten(groups)
            return False
        self.failures = 0
        self.length = min(LONGEST, 2 * len(groups))
        self.run_freely += len(groups)
        self.passes.add_count("batches", len(groups) * len(groups[0]))
        self.passes.add_count("losses", len(groups))
        self.updates.add_count("updates of parameters", len(self.passes.carrier.parameters))
        self.updates.add_rates(self.rates)
        self._lead(starts[1], len(groups))
        if free is not None:
            schedules = starts[0].schedule, starts[1].schedule
            free.run(step, groups, schedules, [loss for loss, _ in self.losses])
        return True

    def _shorten(self, groups: Groups) -> None:
        """What failed is tried again: functions that drop muted, then in halves, at last in lockstep."""
        length = len(groups)
        if not self.mutes and self._drops(groups[0]):
            self.mutes, self.waiting, self.length = True, 0, length
            return
        self.length = max(FIRST, length // 2)
        self.waiting = 0
        if length < 2 * FIRST:
            self.failures += 1
            self.waiting = length + 1

    def _drops(self, group: Group) -> bool:
        """Whether a function of any side drops something."""
        sides = self.passes.reference, self.passes.port
        return any(asked_rates(side, batch, "keep") for side, batch in zip(sides, group[0], strict=True))

    def _same_data(self, step: int, groups: Groups) -> bool:
        return not any(
            True
            for number, group in enumerate(groups)
            for ours, theirs in group
            for _ in compare_inputs(ours, theirs, self.passes.sites(), step + number)
        )

    def _both_run(self, groups: Groups) -> bool:
        """False: they part, or something was raised. The lockstep raises it again, and says where."""
        try:
            return self._both(groups)
        except (Exception, SystemExit):  # noqa: BLE001
            self.failures = TRIES
            return False

    def _both(self, groups: Groups) -> bool:
        """All steps of one side, then of the other: faster than by turns. False: they part visibly."""
        losses: list[list[float]] = []
        rates = []
        for at, side in enumerate((self.passes.reference, self.passes.port)):
            reader = _Rates(side)
            own: list[float] = []
            noted = []
            for number, group in enumerate(groups):
                noted.append(reader.read())
                own.append(free_step(side, [pair[at] for pair in group[: side.accumulate]]))
                if not math.isfinite(own[-1]) or (at and _part(losses[0][number], own[-1])):
                    return False
                side.step_schedule(losses[0][number] if at else own[-1])
                side.clear()
            losses.append(own)
            rates.append(noted)
        self.losses = list(zip(*losses, strict=True))
        self.rates = list(zip(*rates, strict=True))
        return True

    def _agree(self, starts: Sequence[_Start], count: int) -> bool:
        """Weights, slots and buffers, in units of what rounding makes of so many steps."""
        carrier = self.passes.carrier
        reference, port = self.passes.reference, self.passes.port
        allowed = LIMIT * math.sqrt(count)
        ours, theirs = reference.arrays("parameter"), port.arrays("parameter")
        slots = carrier.carried_slots(reference.slots()), port.slots()
        for path in carrier.parameters:
            expected = carrier.carry(path, ours.get)
            unit = self._gradient_unit(path)
            if expected is None or unit > NOISY:
                continue
            if not _near(theirs[path], expected, starts[1].weights[path], unit, allowed):
                return False
            for name, values in slots[0].get(path, {}).items():
                own = slots[1].get(path, {}).get(name)
                if own is None or name == "step" or own.shape != values.shape:
                    continue
                if not _near(own, values, None, 2 * unit, allowed):
                    return False
        return self._buffers_agree(starts[1].buffers, count, allowed)

    def _gradient_unit(self, path: str) -> float:
        """How exact a gradient of this parameter is, relative to its size."""
        known = self.passes.noise.relative.get(("gradient", path))
        return max(ROUNDING * EPSILON["float32"], known.rms if known is not None else 0.0)

    def _buffers_agree(self, before: Arrays, count: int, allowed: float) -> bool:
        carrier, phase = self.passes.carrier, self.buffers
        after = self.passes.reference.arrays("buffer")
        for path, observed in self.passes.port.arrays("buffer").items():
            if path not in carrier.pieces or observed.dtype.name not in EPSILON:
                continue
            expected = carrier.carry(path, after.get)
            known = self.passes.noise.relative.get(("buffer", path))
            unit = max(ROUNDING * EPSILON["float32"], known.rms if known is not None else 0.0)
            if expected is None or _near(observed, expected, None, unit, allowed):
                continue
            momentum = phase.momentum(path)
            if path not in phase.variances.counts or momentum is None:
                return False
            if biased_count(before[path], expected, observed, 1 - (1 - momentum) ** count) is None:
                return False
        return True

    def _lead(self, start: _Start, count: int) -> None:
        """The port goes on from what the reference has, and its own variances are booked."""
        passes, updates, phase = self.passes, self.updates, self.buffers
        for path, observed in passes.port.arrays("buffer").items():
            momentum = phase.momentum(path) if path in phase.variances.own else None
            if momentum is not None:
                drift = phase.variances.own[path] - start.buffers[path].astype(np.float64)
                phase.variances.own[path] = observed + (1 - momentum) ** count * drift
        updates.lead_all()


def _near(observed: Array, expected: Array, before: Array | None, unit: float, allowed: float) -> bool:
    """Within rounding of the values themselves and of what was added to them; ``unit`` is that of the latter.

    Only as a whole: an element whose gradient is nothing but rounding may go any way.
    """
    found = apart(observed, np.ascontiguousarray(expected))
    if found is None:
        return bool(np.array_equal(observed, expected))
    if before is None:
        return found.rms <= allowed * unit * found.reference_rms
    moved = apart(before, np.ascontiguousarray(expected))
    step = 0.0 if moved is None else moved.rms
    return found.rms <= allowed * max(EPSILON["float32"] * found.reference_rms, unit * step)
