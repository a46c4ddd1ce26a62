"""What running variances that part by convention do to the port in evaluation, after the training."""

from __future__ import annotations

import math

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Claim, Divergence, Finding, ProvenBy, Site
from parfocal.phrases import phrase
from parfocal.workflow.training.batches import Batch
from parfocal.workflow.training.buffer_phase import BufferPhase
from parfocal.workflow.training.sides import Arrays, TrainingSide

TOLD = limits.verdicts.EVALUATION_TOLD.value


def evaluated(
    phase: BufferPhase, batch: Batch, step: int, told: float = TOLD
) -> tuple[Divergence | None, Finding | None]:
    """The port in evaluation with the reference's variances, and with those that it would have by itself.

    ``told``: from which share of the outputs on that is a difference, and no mere note.
    """
    variances = phase.variances
    if not variances.counts:
        return None, None
    port = phase.port
    tensors = port.tensors("buffer")
    right = _outputs(port, batch)
    kept = {path: port.backend.to_array(tensors[path]) for path in variances.own}
    try:
        for path, values in variances.own.items():
            port.backend.write(tensors[path], values.astype(kept[path].dtype))
        wrong = _outputs(port, batch)
    finally:
        for path, values in kept.items():
            port.backend.write(tensors[path], values)
    shares = {slot: _share(wrong[slot], array) for slot, array in right.items() if slot in wrong}
    slot = max(shares, key=lambda each: shares[each])
    first, count = min(variances.counts.items(), key=lambda each: each[1])  # where it matters most
    layers = some([first, *(path for path in variances.counts if path != first)], 1)
    message = phrase(
        "the running variance of {layers} is divided by n on one side and by n - 1 on the "
        "other, a factor of {factor} at n of about {count}: equal in training, and in evaluation "
        "the outputs differ by {largest}",
        layers=layers,
        factor=f"{count / (count - 1):.6g}",
        count=count,
        largest=f"{np.abs(wrong[slot] - right[slot]).max():.3g}",
    )
    if shares[slot] <= told:
        return None, Finding("buffer.running_variance", message)
    fix = (
        phrase(
            "multiply a batch's variance by {count} / {less} before it goes into {layers}",
            count=count,
            less=count - 1,
            layers=layers,
        )
        if set(variances.counts.values()) == {count}
        else phrase(
            "multiply a batch's variance by n / (n - 1) of its layer ({count} / {less} in {first}) before it "
            "goes into {layers}",
            count=count,
            less=count - 1,
            first=first,
            layers=layers,
        )
    )
    cause = Claim("buffer.running_variance", message, fix).proven(
        ProvenBy.RELATED, variances.apart, variances.left
    )
    divergence = Divergence(
        "buffer",
        Site(phase.carrier.name(first), "buffer"),
        Site(first, "buffer"),
        phrase("output {slot} in evaluation after the training", slot=slot),
        compare_arrays(wrong[slot], right[slot], picture=True),
        NOTHING,
        math.inf,
        cause=cause,
        step=step,
    )
    return divergence, Finding("buffer.running_variance", message, diverged=True)


def _outputs(side: TrainingSide, batch: Batch) -> Arrays:
    with side.backend.mode(side.model, "eval"), side.backend.no_grad():
        output = side.forward(batch)
        return {slot: side.backend.to_array(tensor) for slot, tensor in side.outputs(output).items()}


def _share(observed: Array, expected: Array) -> float:
    size = float(np.linalg.norm(expected))
    return float(np.linalg.norm(observed - expected)) / size if size else math.inf
