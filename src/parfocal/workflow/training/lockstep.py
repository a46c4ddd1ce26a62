"""Two trainings in lockstep: at every step the port begins with what the reference has."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from parfocal.backends.protocol import Mode
from parfocal.brief import some
from parfocal.capture.determinism import no_dropout
from parfocal.judge import limits
from parfocal.judge.tolerance import Tolerance
from parfocal.judge.verdict import Cause, Claim, Finding, Grounds, ProvenBy
from parfocal.phrases import phrase
from parfocal.report.report import Report
from parfocal.weights.plan import Plan
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.buffer_phase import BufferPhase
from parfocal.workflow.training.carrying import Carrier
from parfocal.workflow.training.evaluation import TOLD, evaluated
from parfocal.workflow.training.found import FoundDivergences
from parfocal.workflow.training.free_running import FreeRunning
from parfocal.workflow.training.judging import Noise
from parfocal.workflow.training.loss_phase import loss_cause
from parfocal.workflow.training.passes import OF_THE_LOSS, Passes
from parfocal.workflow.training.pending import Group, Pending
from parfocal.workflow.training.sides import TrainingSide
from parfocal.workflow.training.stretches import Stretches
from parfocal.workflow.training.update_phase import UpdatePhase

LOOKED_INTO = limits.searches.STEPS_LOOKED_INTO.value
LOOKED_AT = frozenset({"forward", "gradient", "buffer"})  # phases that calls explain
PASSED_THROUGH = frozenset({"forward", "loss", "backward", "gradient", "buffer"})
ACCUMULATED = limits.causes.ACCUMULATED.value
Look = Callable[[tuple[Batch, Batch]], Report | None]


@dataclass(slots=True)
class Lockstep:
    """All phases of all steps. ``look``: aligns the calls of a step, to say where it parts."""

    reference: TrainingSide
    port: TrainingSide
    plan: Plan
    mode: Mode
    tolerance: Tolerance | None
    explain: bool
    look: Look
    found: FoundDivergences = field(default_factory=FoundDivergences)
    losses: list[tuple[float, float]] = field(default_factory=list)
    looked: list[Report] = field(default_factory=list)
    look_always: bool = False  # into the calls of the first step, whatever it gives
    passes: Passes = field(init=False)
    buffers: BufferPhase = field(init=False)
    updates: UpdatePhase = field(init=False)
    stretches: Stretches = field(init=False)
    free: FreeRunning | None = None
    last: tuple[Batch, Batch] | None = None
    jumps: list[int] = field(default_factory=list)  # steps at which the port went another way on a kink
    variance_step: int | None = None  # at which a variance parted by convention
    variance_told: float = TOLD  # share of the outputs in evaluation from which on that is a difference
    _undo: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        carrier = Carrier.of(self.plan, self.reference, self.port)
        noise = Noise(self.reference, self.mode, self.tolerance)
        sides = self.reference, self.port
        self.passes = Passes(*sides, carrier, noise, self.found)
        self.buffers = BufferPhase(*sides, carrier, noise, self.found)
        self.updates = UpdatePhase(*sides, carrier, self.found, self.tolerance, self.explain)
        self.stretches = Stretches(self.passes, self.buffers, self.updates)

    def __enter__(self) -> Lockstep:
        for side in (self.reference, self.port):
            side.backend.clear_gradients(side.model)
            self._undo.enter_context(side.backend.mode(side.model, self.mode))
            if self.mode != "eval":
                self._undo.enter_context(no_dropout(side.model, functions=False))
                side.mutes = True
            self._undo.enter_context(side.backend.recurrence_in_training(side.model))
        if self.free is not None:
            self.free.begin()
        return self

    def finish(self) -> None:
        """What shows only after the last step."""
        self._excuse_imprecise()
        self._note_jumps()
        if self.free is not None:
            finding = self.free.finding([each[0] for each in self.losses])
            if finding is not None:
                self.found.note(finding)
        if self.last is not None and self.mode == "train":
            step = self.variance_step or 0
            divergence, finding = evaluated(self.buffers, self.last[1], step, self.variance_told)
            if finding is not None:
                self.found.note(finding)
            if divergence is not None:
                self.found.add(("evaluation",), divergence)

    def _excuse_imprecise(self) -> None:
        """Where one side computes in another precision, what rounding moves follows from that."""
        found = self.found.divergences
        if ("precision",) not in found:
            return
        for key, each in found.items():
            if each.cause is None and each.phase in PASSED_THROUGH:
                found[key] = replace(each, inherited=True)

    def __exit__(self, *problem: object) -> None:
        self._undo.close()

    def start_equal(self) -> None:
        """Give the port the reference's weights."""
        self.updates.lead_weights(self.reference.arrays("parameter"))

    def run(self, given: Iterator[Group], tell: Callable[[int], None]) -> None:
        """All steps, of which groups of batches are given: in lockstep, or several at once."""
        number = 0
        groups = Pending(given)
        while taken := groups.take(self._wanted()):
            if len(taken) > 1:
                tell(number)
                if self.stretches.run(number, taken, self.free):
                    self.losses += self.stretches.losses
                    self.last = taken[-1][0]
                    number += len(taken)
                else:
                    groups.put_back(taken)
                continue
            tell(number)
            self.step(number, taken[0])
            self.stretches.note_lockstep()
            number += 1

    def _wanted(self) -> int:
        """How many steps are made at once."""
        evaluates = self.reference.evaluates or self.port.evaluates
        free = self.tolerance is None and not (self.found.divergences or evaluates or self._lowers())
        return max(1, self.stretches.next_length() if free else 1)

    def _lowers(self) -> bool:
        """Whether any side computes in mixed precision: its rounding alone moves weights in a few steps."""
        return self.reference.lower is not None or self.port.lower is not None

    def step(self, number: int, batches: Group) -> None:
        self.last = batches[0]
        before = self.port.arrays("buffer", copy=True)
        self.passes.run(number, batches)
        self.losses.append(self.passes.losses)
        self.passes.judge_gradients()
        self._explain_accumulation(number)
        self._explain_loss()
        inherited = "forward" in self.passes.wrong
        if self.buffers.judge(number, before, inherited=inherited):
            self.passes.wrong.add("buffer")
        self._look_into(number, batches)
        if self.passes.noise.jumped:
            self.jumps.append(number)
        if self.variance_step is None and self.buffers.variances.counts:
            self.variance_step = number
        for at, side in enumerate((self.reference, self.port)):
            side.present = [pair[at] for pair in batches[: side.accumulate]]
        self.passes.noise.end()
        if self.free is not None and not self.found.divergences:
            self.free.share_first(number, self.passes.losses[1])
        self.updates.run(number)
        if self.free is not None:
            self.free.step(number, batches)
        for side in (self.reference, self.port):
            side.step_schedule(self.passes.losses[0])
            side.clear()

    def _explain_accumulation(self, step: int) -> None:
        """Gradients of another number of passes, or of the step before besides."""
        wrong = [
            key
            for key, each in self.found.divergences.items()
            if each.step == step and isinstance(key, tuple) and key[0] == "gradient"
        ]
        if not wrong or not self.explain:
            return
        cause = self._left_over(step) or self._other_count()
        if cause is None:
            return
        first, *rest = wrong
        self.found.divergences[first] = replace(self.found.divergences[first], cause=cause, inherited=False)
        for key in rest:
            del self.found.divergences[key]
        self.passes.wrong.discard("gradient")

    def _left_over(self, step: int) -> Cause | None:
        """The gradients that were there before the step are still in the port's."""
        left = self.passes.left
        if not left:
            return None
        ours, theirs = self.reference.gradients(), self.port.gradients()
        apart, after = 0.0, 0.0
        for path, before in left.items():
            right = self.passes.carrier.carry(path, ours.get) if path in self.passes.carrier.pieces else None
            if right is None or path not in theirs:
                return None
            apart = max(apart, _apart(theirs[path], right))
            after = max(after, _apart(theirs[path] - before, right))
        if after > 1.0:
            return None
        message = phrase(
            "the port's gradients are those of this step and of steps before: they are not cleared"
        )
        fix = phrase("clear the port's gradients after every update")
        return Claim("grad.accumulated", message, fix).proven(ProvenBy.RECOMPUTED, apart, after)

    def _other_count(self) -> Cause | None:
        """The port adds up the gradients of more or fewer batches."""
        ours, theirs = self.reference.accumulate, self.port.accumulate
        if ours == theirs:
            return None
        message = phrase(
            "an update uses the gradients of {ours} batches in the reference, of {port} in the port",
            ours=ours,
            port=theirs,
        )
        fix = phrase("add up the gradients of {ours} batches in the port", ours=ours)
        return Claim("grad.accumulated", message, fix).likely(Grounds.SETTINGS)

    def _explain_loss(self) -> None:
        """Why the losses of one output differ, in value or in gradient."""
        keys = [key for key in (("loss",), ("entering", "")) if key in self.found.divergences]
        pair = self.passes.pair
        if not self.explain or not self.passes.wrong & OF_THE_LOSS or not keys or pair is None:
            return
        cause = loss_cause(self.reference, self.port, self.passes.output, pair)
        for key in keys:
            each = self.found.divergences[key]
            if cause is not None and each.cause is None and each.step == self.passes.step:
                self.found.divergences[key] = replace(each, cause=cause, inherited=key != keys[0])

    def _acquit(self, step: int) -> None:
        """Every call is right on what it was given: an element that lies on a kink went the other way.

        From now on as much is allowed there.
        """
        noise, found = self.passes.noise, self.found
        for key, each in list(found.divergences.items()):
            if each.step != step or each.phase not in LOOKED_AT or each.cause is not None:
                continue
            del found.divergences[key]
            found.steps.pop(key, None)
            known = noise.relative.get(_noise_key(key))
            if known is not None and math.isfinite(each.score):
                noise.relative[_noise_key(key)] = known * each.score
        found.note(
            Finding(
                "training.kinks",
                phrase(
                    "at step {step} gradients or outputs differ by more than rounding alone; every call is "
                    "right on what it was given, so that values on a kink went different ways",
                    step=step,
                ),
            )
        )

    def _note_jumps(self) -> None:
        if not self.jumps:
            return
        said = phrase(
            "at step {steps} gradients or outputs differ by more than rounding alone, and the reference, "
            "moved by a few units in the last place, gives the port's: values on a kink went different ways",
            steps=some(list(map(str, self.jumps))),
        )
        self.found.note(Finding("training.kinks", said))

    def _look_into(self, number: int, batches: Sequence[tuple[Batch, Batch]]) -> None:
        """Where inside of the model a step parts: the same step again, call by call, before its update."""
        asked = self.passes.wrong & LOOKED_AT
        always = self.look_always and number == 0
        if not (asked and len(self.looked) < LOOKED_INTO) and not always:
            return
        report = self._first_that_parts(batches)
        if report is None:
            return
        self.looked.append(report)
        if report.ok and asked and self.tolerance is None and not self._lowers():
            self._acquit(number)
        if not any(not each.inherited for each in report.divergences):
            return
        kept = {
            key: each
            for key, each in self.found.divergences.items()
            if each.step != number
            or each.phase in ("data", "lr", "optimizer", "weights")
            or each.cause is not None
        }
        self.found.divergences.clear()
        self.found.divergences.update(kept)
        for index, each in enumerate(report.divergences):
            self.found.add(("call", number, index), replace(each, step=number))

    def _first_that_parts(self, batches: Sequence[tuple[Batch, Batch]]) -> Report | None:
        """Of the batches that an update adds up; None where one could not be looked into before."""
        report = None
        for pair in batches:
            report = self.look(pair)
            if report is None or not report.ok:
                break
        return report


def _noise_key(key: Hashable) -> Hashable:
    """How the floor of a divergence is filed."""
    return ("output", *key[1:]) if isinstance(key, tuple) and key[0] == "forward" else key


def _apart(observed: Any, expected: Any) -> float:
    """In units of what adding up in another order may leave."""
    allowed = ACCUMULATED * max(float(np.linalg.norm(expected)), math.ulp(1.0))
    return float(np.linalg.norm(observed - expected)) / allowed
