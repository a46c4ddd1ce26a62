"""Parameters that ranks of one launch do not share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parfocal.judge import limits
from parfocal.judge.verdict import Cause, Claim, Grounds, side_name
from parfocal.phrases import phrase
from parfocal.workflow.recorded_runs.steps import RecordedStep
from parfocal.workflow.recorded_runs.vectors import projected

APART = limits.recorded.RANKS_SHARE.value
DRIFTED = "dist.rank"


@dataclass(frozen=True, slots=True)
class Drift:
    """A parameter that a rank has otherwise than rank 0."""

    path: str
    rank: int
    error: float  # relative


def drifts_of(side: RecordedStep) -> Iterator[Drift]:
    """Every parameter of every rank that is not rank 0's when the step begins."""
    for other in side.launch[1:]:
        for path, moments in side.launch[0].parameters.items():
            theirs = other.parameters.get(path)
            if moments.before is None or theirs is None or theirs.before is None:
                continue
            if moments.before.fingerprint == theirs.before.fingerprint:
                continue
            first = projected(side.launch[0].tensors, moments.before)
            second = projected(other.tensors, theirs.before)
            size = float(np.linalg.norm(first))
            error = float(np.linalg.norm(second - first)) / size if size else float("inf")
            if error > APART:
                yield Drift(path, other.rank, error)


def drift_cause(side: str, drift: Drift) -> Cause:
    fix = phrase(
        "give all ranks of the port the weights of rank 0 before training (a DataParallel wrapper does), and "
        "reduce their gradients at every step"
    )
    if side == "reference":
        fix = phrase("keep a model of its own on every rank, as the reference does, or mend the reference")
    return Claim(DRIFTED, told_drift(side, drift), fix).likely(Grounds.VALUES)


def told_drift(side: str, drift: Drift) -> str:
    return phrase(
        "{parameter} of rank {rank} of the {side} differs from that of rank 0 by {share} of its size: the "
        "ranks "
        "have drifted apart",
        parameter=drift.path,
        rank=drift.rank,
        side=side_name(side),
        share=f"{drift.error:.3g}",
    )
