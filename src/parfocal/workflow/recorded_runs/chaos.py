"""From which step on two recorded runs say nothing of each other: the training makes rounding that large.

At too large a rate, errors grow from step to step, whatever made them: the reference, moved by one unit in
the last place, parts from itself as much. Nothing can be run again here, but the weights that the steps begin
with show it: equal at first, and farther apart by a factor in a single step that no correct call makes,
though nothing is wrong with any step before, and nothing but updates changes weights. An error that is small
against that factor says nothing from then on.
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
        return StageOutcome(
            findings=(finding,),
            left_out=(LeftOut(phrase("calls from step {step} on", step=self.step), Reason.IMPOSSIBLE),),
        )


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


def chaos_of(pair: StepPair) -> Chaos | None:
    """None: the weights are near each other still, or no step drove them apart so fast."""
    starts, ends = ([max(each, pair.unit) for each in own] for own in (pair.memory.starts, pair.memory.ends))
    if len(starts) < 2 or not all(map(math.isfinite, (*starts, *ends[:-1]))):
        return None
    if any(start > BETWEEN * end for end, start in zip(ends, starts[1:], strict=False)):
        return None  # something else than updates changed weights
    growth = max(after / before for before, after in pairwise(starts))
    if starts[0] > pair.unit or starts[-1] <= PARTED or growth <= JUMP:
        return None
    return Chaos(pair.step, starts[-1], growth)


def explained(pair: StepPair, outcome: StageOutcome) -> Chaos | None:
    """What explains all of a stage's differences, where chaos does."""
    if not outcome.divergences:
        return None
    chaos = chaos_of(pair)
    return chaos if chaos is not None and all(map(chaos.explains, outcome.divergences)) else None
