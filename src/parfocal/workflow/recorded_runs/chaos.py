"""From which step on two recorded runs say nothing of each other: the training makes rounding that large.

At too large a rate, errors grow from step to step, whatever made them: the reference, moved by one unit in
the last place, parts from itself as much. Nothing can be run again here, but the weights that the steps begin
with show it: equal at first, and farther apart by a factor in a single step that no correct call makes,
though nothing is wrong with any step before, and nothing but updates changes weights. The outputs must have
parted too: an optimizer that divides by the size of gradients also drives weights apart that change nothing.
The same holds from where both trainings overflow on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from parfocal.judge import limits
from parfocal.judge.verdict import Divergence, Finding
from parfocal.phrases import phrase
from parfocal.report.coverage import LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import JUMP
from parfocal.workflow.recorded_runs.pair import Moment, StageOutcome, StepPair
from parfocal.workflow.recorded_runs.steps import RecordedStep

PARTED = limits.causes.LOSSES_PARTED.value
BETWEEN = limits.recorded.WEIGHTS_BETWEEN.value
# What follows from weights alone; settings, data and rates are as wrong as ever.
OF_WEIGHTS = frozenset({"forward", "loss", "backward", "gradient", "buffer", "optimizer"})


@dataclass(frozen=True, slots=True)
class Chaos:
    """How far the weights had drifted as a step began, and how fast at most in one step before."""

    step: int
    drift: float
    growth: float

    @property
    def parted(self) -> bool:
        """Whether nothing that follows from these weights can be compared."""
        return self.drift > PARTED

    def explains(self, divergence: Divergence) -> bool:
        """Whether this is no more than the training does to any error in one step."""
        return divergence.phase in OF_WEIGHTS and divergence.cause is None and divergence.score <= self.growth

    def told(self) -> StageOutcome:
        finding = Finding(
            "training.horizon",
            phrase(
                "from step {step} on the comparison says nothing: equal at first, the weights had drifted "
                "apart by {drift} when it began, {growth} times farther in a single step, with nothing wrong "
                "before; a reference moved by one unit in the last place parts from itself as well. "
                "A smaller rate lets more steps be compared",
                step=self.step,
                drift=f"{self.drift:.2g}",
                growth=f"{self.growth:.2g}",
            ),
        )
        return _silent_from(self.step, finding)


def _silent_from(step: int, finding: Finding) -> StageOutcome:
    left_out = LeftOut(phrase("calls from step {step} on", step=step), Reason.IMPOSSIBLE)
    return StageOutcome(findings=(finding,), left_out=(left_out,))


def note_drift(pair: StepPair) -> None:
    """Remember how far apart the weights are as a step begins and ends."""
    if pair.followed or pair.tolerance is not None:
        return
    both: tuple[tuple[Moment, list[float]], ...] = (
        ("before", pair.memory.starts),
        ("after", pair.memory.ends),
    )
    for moment, known in both:
        found = [pair.weight_error(tie, moment) for tie in pair.parameters]
        known.append(max((each.error for each in found if each is not None), default=math.nan))


def note_outputs(pair: StepPair) -> None:
    """Remember how far apart the outputs were, for the steps that follow."""
    if not pair.followed and pair.tolerance is None:
        pair.memory.outputs = pair.finite_output_error


def chaos_of(pair: StepPair) -> Chaos | None:
    """None: nothing grows, or not so fast in any step, or only weights on which no output depends."""
    starts, ends = ([max(each, pair.unit) for each in own] for own in (pair.memory.starts, pair.memory.ends))
    if len(starts) < 2 or not all(map(math.isfinite, (*starts, *ends[:-1]))):
        return None
    if any(start > BETWEEN * end for end, start in zip(ends, starts[1:], strict=False)):
        return None  # something else than updates changed weights
    growth = max(after / before for before, after in pairwise(starts))
    if starts[0] > pair.unit or growth <= JUMP or pair.memory.outputs <= JUMP * pair.unit:
        return None
    return Chaos(pair.step, starts[-1], growth)


def silence(pair: StepPair) -> StageOutcome | None:
    """Told where a step begins from which on weights say nothing, whatever follows from them."""
    if pair.first or pair.tolerance is not None:
        return None
    # an update that a scaler of gradients leaves out for infinite ones leaves the weights finite
    updated = not math.isfinite(pair.memory.ends[-1]) if pair.memory.ends else False
    ours, theirs = (_overflow(side, updated) for side in (pair.reference, pair.port))
    if ours and theirs:
        finding = Finding(
            "training.horizon",
            phrase(
                "from step {step} on the comparison says nothing: {what} is {reference} in the reference, "
                "{port} in the port, with nothing wrong before. A smaller rate lets more steps be compared",
                step=pair.step,
                what=ours[0],
                reference=ours[1],
                port=theirs[1],
            ),
        )
        return _silent_from(pair.step, finding)
    chaos = chaos_of(pair)
    return chaos.told() if chaos is not None and chaos.parted else None


def _overflow(side: RecordedStep, updated: bool) -> tuple[str, float] | None:
    """The first number of the step that is not finite; ``updated``: nor are the weights after it."""
    if side.end is None:
        return None
    norm = (phrase("the norm of the gradients"), side.end.gradient_norm if updated else None)
    numbers = ((phrase("the loss"), side.end.loss), norm)
    return next(
        ((what, number) for what, number in numbers if number is not None and not math.isfinite(number)), None
    )


def explained(pair: StepPair, outcome: StageOutcome) -> Chaos | None:
    """What explains all of a stage's differences, where chaos does."""
    if not outcome.divergences:
        return None
    chaos = chaos_of(pair)
    return chaos if chaos is not None and all(map(chaos.explains, outcome.divergences)) else None
