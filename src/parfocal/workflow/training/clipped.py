"""Gradients as clipping leaves them: how far apart the two sides are, and what each does."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from parfocal.explain.clipping import CLOSE, clip_of
from parfocal.judge.floors import EPSILON, difference
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy
from parfocal.phrases import phrase
from parfocal.workflow.training.sides import Arrays, TrainingSide

FITTED = CLOSE / EPSILON["float32"]  # of gradients that are clipped anew, in units in the last place


class WorstGradient(NamedTuple):
    """The gradient that is farthest from the reference's, in units in the last place of its largest value."""

    score: float
    path: str


def worst_clipped(expected: Arrays, observed: Arrays) -> WorstGradient:
    worst = WorstGradient(0.0, "")
    for path, right in expected.items():
        if path in observed:
            largest = max(float(np.abs(right).max(initial=0.0)), 1e-30)
            unit = EPSILON.get(right.dtype.name, EPSILON["float32"]) * largest
            apart = difference(observed[path].astype(right.dtype), np.ascontiguousarray(right)).peak
            worst = max(worst, WorstGradient(apart / unit, path), key=lambda each: each.score)
    return worst


def total_norm(arrays: Arrays) -> float:
    return math.sqrt(sum(float(np.vdot(a.astype(np.float64), a.astype(np.float64))) for a in arrays.values()))


def norm_words(before: Arrays, norms: tuple[float, float]) -> str:
    return phrase(
        "gradients after clipping: norm {reference} in the reference, {port} in the port (before: {total})",
        reference=f"{norms[0]:.6g}",
        port=f"{norms[1]:.6g}",
        total=f"{total_norm(before):.6g}",
    )


def clip_cause(before: Arrays, expected: Arrays, observed: Arrays, port: TrainingSide) -> Cause:
    """What each side does to the gradients that both began with."""
    paths = [path for path in expected if path in observed and path in before]
    ours, theirs = (
        clip_of([before[path] for path in paths], [side[path] for path in paths])
        for side in (expected, observed)
    )
    message = phrase("the reference {reference}, the port {port}", reference=ours.words, port=theirs.words)
    if ours.kind in ("value", "norm", "global_norm"):
        fix = port.backend.written_clip(ours.kind, ours.limit)
    elif ours.kind == "none":
        fix = phrase("leave the port's gradients as they are at this step")
    else:
        fix = phrase("clip the port's gradients as the reference's")
    start, right, wrong = ({path: side[path] for path in paths} for side in (before, expected, observed))
    made = ours.applied(start)
    after = math.inf if made is None else worst_clipped(right, made).score
    return Claim("grad.clip", message, fix).judged(
        ProvenBy.RECOMPUTED, worst_clipped(right, wrong).score, after, FITTED, Grounds.VALUES
    )
