"""Stage: values that were logged by name (``recorder.log``)."""

from __future__ import annotations

import math

from parfocal.backends import registry
from parfocal.capture.calls import FOLLOWED
from parfocal.capture.recorder import PROOF
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.metrics import Comparison
from parfocal.judge.verdict import Cause, Claim, Divergence, ProvenBy
from parfocal.phrases import phrase
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.run.records import Leaf, TensorValue, ValueRecord
from parfocal.workflow.recorded_runs.call_errors import GIVEN, JUMP
from parfocal.workflow.recorded_runs.forward import inherited_from
from parfocal.workflow.recorded_runs.pair import StageOutcome, StepPair
from parfocal.workflow.recorded_runs.rate import rates_of
from parfocal.workflow.recorded_runs.steps import RecordedStep

SAME = limits.causes.SAME_SETTING.value


def compare_logs(pair: StepPair, diverged: bool) -> StageOutcome:
    ours, theirs = _logged(pair.reference), _logged(pair.port)
    found = []
    for name in ours.keys() & theirs.keys():
        for own, other in zip(theirs[name], ours[name], strict=False):
            divergence = _judge(pair, name, own.value, other.value)
            if divergence is not None:
                found.append(divergence)
    common = len(ours.keys() & theirs.keys())
    left_out = tuple(
        LeftOut(phrase("logged value {name}", name=name), reason)
        for reason, mine, other in (
            (Reason.ONLY_REFERENCE, ours, theirs),
            (Reason.ONLY_PORT, theirs, ours),
        )
        for name in mine.keys() - other.keys()
    )
    compared = (Compared("logged values", common, len(ours.keys() | theirs.keys())),) if common else ()
    found.sort(key=lambda each: each.what)
    return StageOutcome(inherited_from(found, diverged), compared=compared, left_out=left_out)


def _logged(side: RecordedStep) -> dict[str, list[ValueRecord]]:
    """What users logged, by name; what a recording says of itself is not theirs."""
    found: dict[str, list[ValueRecord]] = {}
    for record in side.logs:
        if record.name != PROOF and not record.name.startswith(FOLLOWED):
            found.setdefault(record.name, []).append(record)
    return found


def _judge(pair: StepPair, name: str, own: Leaf, other: Leaf) -> Divergence | None:
    message, comparison, cause = "", None, None
    given = max(pair.unit, pair.finite_output_error)
    if isinstance(own, TensorValue) and isinstance(other, TensorValue):
        error, comparison, unit = _of_tensors(pair, own, other)
        given = max(given, unit)
    elif _is_number(own) and _is_number(other):
        error = _relative(float(own), float(other))  # type: ignore[arg-type]
        message = phrase("{reference} in the reference, {port} in the port", reference=other, port=own)
        cause = _misread(pair, name, float(own), float(other))  # type: ignore[arg-type]
    elif own == other:
        return None
    else:
        error, message = (
            math.inf,
            phrase(
                "{reference} in the reference, {port} in the port", reference=_told(other), port=_told(own)
            ),
        )
    if error <= JUMP * given:
        return None
    noise = Size(given, given) if math.isfinite(error) else NOTHING
    what = phrase("logged value {name}", name=name)
    return Divergence(
        "metric",
        *pair.sites(),
        what,
        comparison,
        noise,
        error / given,
        message,
        cause=cause,
        step=pair.step,
        rank=pair.rank,
    )


def _misread(pair: StepPair, name: str, own: float, other: float) -> Cause | None:
    """The reference logs its learning rate; the port's is the same, and what it logs is not.

    Scripts log after an update, which ends a step, or after the schedule has moved on: the rate may be that
    of the step before or of the next one.
    """
    rates = [rates_of(side) for side in (pair.reference, pair.port)]
    for step in (pair.step, pair.step - 1, pair.step + 1):
        ours, theirs = (each.get(step) for each in rates)
        if ours is None or theirs is None or max(_relative(theirs, ours), _relative(other, ours)) > SAME:
            continue
        message = phrase(
            "the reference logs its learning rate as {name}: {ours}; the port's learning rate is the same, "
            "and what it logs is another number: {own}",
            name=name,
            ours=f"{other:.6g}",
            own=f"{own:.6g}",
        )
        line = registry.dialect(pair.port.run.header.framework).rate_in_use
        fix = phrase("log the rate that the optimizer uses{line}", line=f": {line}" if line else "")
        before, after = (_relative(value, other) / SAME for value in (own, theirs))
        return Claim("metric.value", message, fix).proven(ProvenBy.RECOMPUTED, before, after)
    return None


def _of_tensors(
    pair: StepPair, own: TensorValue, other: TensorValue
) -> tuple[float, Comparison | None, float]:
    apart = pair.distances.between(pair.port.tensors.data(own), pair.reference.tensors.data(other))
    return apart.error, apart.comparison, GIVEN * EPSILON.get(own.dtype, 0.0)


def _is_number(value: Leaf) -> bool:
    return isinstance(value, (int, float))


def _relative(own: float, other: float) -> float:
    if own == other or (math.isnan(own) and math.isnan(other)):
        return 0.0
    error = abs(own - other) / abs(other) if other else math.inf
    return error if math.isfinite(error) else math.inf


def _told(value: Leaf) -> str:
    return (
        phrase("a tensor of {shape}", shape=list(value.shape))
        if isinstance(value, TensorValue)
        else repr(value)
    )
