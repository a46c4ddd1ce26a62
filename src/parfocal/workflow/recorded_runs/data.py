"""Stage: what enters the model from outside. Whatever differs there is not the model's doing."""

from __future__ import annotations

from collections.abc import Mapping

from parfocal.judge.floors import EPSILON, NOTHING, Size
from parfocal.judge.verdict import Divergence
from parfocal.phrases import phrase
from parfocal.replay.trace import TensorData, Value
from parfocal.report.coverage import Compared, LeftOut, Reason
from parfocal.workflow.recorded_runs.call_errors import GIVEN, JUMP
from parfocal.workflow.recorded_runs.data_causes import explain_data
from parfocal.workflow.recorded_runs.pair import StageOutcome, StepPair
from parfocal.workflow.recorded_runs.sampler_causes import sampler_cause
from parfocal.workflow.recorded_runs.tensors import tie_values


def compare_data(pair: StepPair, diverged: bool) -> StageOutcome:
    """``diverged`` says nothing here: data does not come from the model."""
    found: list[Divergence] = []
    count = total = 0
    for reference, port in pair.roots:
        tied = tie_values(port.inputs, reference.inputs)
        total += max(len(port.inputs), len(reference.inputs))
        count += len(tied)
        for slot, value in tied.items():
            divergence = _judge(pair, slot, port.inputs[slot].data, value.data)
            if divergence is not None:
                found.append(divergence)
        if port.inputs and reference.inputs and not tied:
            found.append(_other_shapes(pair, port.inputs, reference.inputs))
    calls = [len(side.roots) for side in (pair.reference, pair.port)]
    left_out = (
        (
            LeftOut(
                phrase("{count} of the calls of the model", count=abs(calls[0] - calls[1])),
                Reason.UNPAIRED,
                phrase("{reference} in the reference, {port} in the port", reference=calls[0], port=calls[1]),
            ),
        )
        if calls[0] != calls[1]
        else ()
    )
    return StageOutcome(
        tuple(found), compared=(Compared("inputs of the model", count, total),), left_out=left_out
    )


def _judge(pair: StepPair, slot: str, own: TensorData, other: TensorData) -> Divergence | None:
    apart = pair.distances.between(own, other, judged=True)
    unit = GIVEN * max(EPSILON.get(own.dtype, 0.0), EPSILON.get(other.dtype, 0.0))
    limit = unit * JUMP if pair.tolerance is None else 0.0
    if apart.error <= limit:
        return None
    reference, port = pair.sites()
    size = (
        Size(*(2 * [unit * apart.comparison.rmse / apart.comparison.rel_l2]))
        if (apart.comparison is not None and apart.comparison.rel_l2 and unit)
        else NOTHING
    )
    return Divergence(
        "data",
        reference,
        port,
        phrase("input {slot} of the model", slot=slot),
        apart.comparison,
        size,
        apart.error / unit if unit else float("inf"),
        cause=sampler_cause(pair, slot) or explain_data(pair, own, other),
        step=pair.step,
        rank=pair.rank,
    )


def _other_shapes(pair: StepPair, own: Mapping[str, Value], other: Mapping[str, Value]) -> Divergence:
    shapes = [", ".join(str(list(value.data.shape)) for value in side.values()) for side in (other, own)]
    message = phrase(
        "shapes {reference} in the reference, {port} in the port", reference=shapes[0], port=shapes[1]
    )
    return Divergence(
        "data",
        *pair.sites(),
        phrase("inputs of the model"),
        None,
        NOTHING,
        float("inf"),
        message,
        cause=sampler_cause(pair, next(iter(own))),
        step=pair.step,
        rank=pair.rank,
    )
