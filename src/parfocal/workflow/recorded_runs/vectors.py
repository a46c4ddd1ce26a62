"""Recorded tensors as vectors on which linear relations can be tested: their values, or their projections.

A projection is linear, so whatever holds between tensors in one order holds between their projections.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from parfocal.judge import limits
from parfocal.judge.sketch import sketch
from parfocal.replay.trace import TensorData
from parfocal.workflow.recorded_runs.pair import StepPair, Vector
from parfocal.workflow.recorded_runs.tensors import Arrangement, TensorTable

PROPORTIONAL = limits.recorded.PROPORTIONAL.value


def vectors_of(
    pair: StepPair, own: TensorData, other: TensorData, lies: Arrangement = Arrangement.SAME
) -> tuple[Vector, Vector] | None:
    """The port's and the reference's tensor in the same order; None where the order is not known."""
    if own.shape != other.shape and lies is not Arrangement.TRANSPOSED:
        return None
    arrays = pair.port.tensors.array(own), pair.reference.tensors.array(other)
    if arrays[0] is not None and arrays[1] is not None:
        expected = arrays[1].T if lies is Arrangement.TRANSPOSED else arrays[1]
        return _flat(arrays[0]), _flat(expected)
    if lies is Arrangement.TRANSPOSED or not _have_order(pair, own, other):
        return None
    return projected(pair.port.tensors, own), projected(pair.reference.tensors, other)


def _have_order(pair: StepPair, own: TensorData, other: TensorData) -> bool:
    return pair.port.tensors.has_order(own) and pair.reference.tensors.has_order(other)


def projected(tensors: TensorTable, data: TensorData) -> Vector:
    return np.array(tensors.sketch(data).projection)


def project_pair(
    pair: StepPair, own: TensorData, other: TensorData, lies: Arrangement
) -> tuple[Vector, Vector] | None:
    """Projections of the port's and the reference's tensor in one order; None where there is none.

    Of an unknown arrangement the plain order is taken: whether it is the right one shows in the weights.
    """
    if lies is not Arrangement.TRANSPOSED:
        if own.shape != other.shape:
            return None
        return projected(pair.port.tensors, own), projected(pair.reference.tensors, other)
    array = pair.port.tensors.array(own)
    if array is not None:
        return np.array(sketch(array.T).projection), projected(pair.reference.tensors, other)
    array = pair.reference.tensors.array(other)
    if array is not None:
        return projected(pair.port.tensors, own), np.array(sketch(array.T).projection)
    return None


def _flat(array: NDArray[np.generic]) -> Vector:
    return array.astype(np.float64).reshape(-1)


def unlike(own: Vector, other: Vector) -> float:
    """How far apart two are, in units of what may be left of a multiple."""
    size = float(np.linalg.norm(own))
    return (
        float(np.linalg.norm(own - other)) / (PROPORTIONAL * size)
        if size
        else (math.inf if np.any(other) else 0.0)
    )


def multiple_of(own: Vector, other: Vector) -> float | None:
    power = float(other @ other)
    if not power or not np.isfinite(power):
        return None
    factor = float(own @ other) / power
    left = float(np.linalg.norm(own - factor * other))
    return factor if factor and left <= PROPORTIONAL * float(np.linalg.norm(own)) else None
