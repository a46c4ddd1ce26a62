"""What became of the gradients of several ranks: averaged or summed, where, or left to each rank.

A wrapper reduces them in the backward pass; code of people's own does it afterwards, which is recorded where
it changes them. Projections are linear, so a mean of tensors is a mean of their projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parfocal.judge import limits
from parfocal.workflow.recorded_runs.gathering import DerivedTensors
from parfocal.workflow.recorded_runs.pair import Vector
from parfocal.workflow.recorded_runs.steps import Gradients, RecordedStep, Reduction
from parfocal.workflow.recorded_runs.vectors import PROPORTIONAL, multiple_of, projected

ALIKE = limits.recorded.RANKS_SHARE.value


def with_reduction(steps: Sequence[RecordedStep]) -> tuple[RecordedStep, ...]:
    """The same step of all ranks, each with the gradients as they are once ranks have reduced them."""
    if len(steps) < 2:
        return tuple(steps)
    launch = tuple(steps)
    reduction, factor = _reduction(launch)
    return tuple(replace(_reduced(each, reduction, factor, len(launch)), launch=launch) for each in launch)


def _reduced(step: RecordedStep, reduction: Reduction | None, factor: float, ranks: int) -> RecordedStep:
    if reduction not in (Reduction.MEAN, Reduction.SUM, Reduction.SCALED):
        return replace(step, reduction=reduction)
    gradients = {**step.gradients, **{path: data for path, data in step.used.items() if data is not None}}
    tensors = step.tensors
    scale = 1.0
    if reduction is Reduction.SCALED:  # clipped besides, which is told by the norm that the update uses
        scale = 1.0 / (factor * ranks)
        tensors = derived = DerivedTensors([step])
        gradients = {
            path: None if data is None else derived.scaled(data, scale) for path, data in gradients.items()
        }
    end = step.end
    if end is not None:
        norm = float(np.linalg.norm([data.fingerprint.l2 for data in gradients.values() if data is not None]))
        end = replace(end, gradient_norm=norm)
    return replace(step, gradients=gradients, tensors=tensors, end=end, reduction=reduction)


def _reduction(launch: Sequence[RecordedStep]) -> tuple[Reduction | None, float]:
    """What was done, and the factor of the sum that every rank uses."""
    paths = [
        path
        for path, data in launch[0].gradients.items()
        if data is not None and all(step.gradients.get(path) is not None for step in launch)
    ]
    if not paths:
        return None, 1.0
    own = [_vector(step, step.gradients, paths) for step in launch]
    if all(_alike(vector, own[0]) for vector in own[1:]):
        return Reduction.BACKWARD, 1.0
    used = [_vector(step, {**step.gradients, **step.used}, paths) for step in launch]
    total = np.sum(own, axis=0)
    factors = [multiple_of(vector, total) for vector in used]
    known = [factor for factor in factors if factor is not None]
    if len(known) == len(used) and max(known) - min(known) <= PROPORTIONAL * abs(known[0]):
        return _named(known[0], len(launch)), known[0]
    if all(multiple_of(mine, before) is not None for mine, before in zip(used, own, strict=True)):
        return Reduction.NONE, 1.0
    return None, 1.0


def _named(factor: float, ranks: int) -> Reduction:
    if abs(factor * ranks - 1) < PROPORTIONAL:
        return Reduction.MEAN
    return Reduction.SUM if abs(factor - 1) < PROPORTIONAL else Reduction.SCALED


def _vector(step: RecordedStep, gradients: Gradients, paths: Sequence[str]) -> Vector:
    parts = [data for data in (gradients.get(path) for path in paths) if data is not None]
    return np.concatenate([projected(step.tensors, data) for data in parts])


def _alike(one: Vector, other: Vector) -> bool:
    return float(np.linalg.norm(one - other)) <= ALIKE * float(np.linalg.norm(other))
