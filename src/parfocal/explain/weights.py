"""Why corresponding weights differ before anything runs: transposed, in another order, or others."""

from __future__ import annotations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.causes import number, spelled_path
from parfocal.judge.floors import Size, error_of, score
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.shape_order import find_order, find_transposition
from parfocal.judge.verdict import Cause

CHANCE = 1e-6
# How a parameter is overwritten with its own transposition, by framework.
TRANSPOSED = {
    "paddle": "{0}.set_value({0}.t().clone())",
    "torch": "{0}.data = {0}.data.T.contiguous()",
}


def weight_cause(
    path: str, framework: str, observed: Array, expected: Array, floor: Size, limit: float
) -> Cause | None:
    """``observed`` of the port lies as ``expected`` of the reference would if all were well."""
    if observed.shape != expected.shape or not observed.size:
        return None
    wide, other = observed.astype(np.float64), expected.astype(np.float64)
    noise = np.full(observed.shape, 4.0 * floor.peak)
    axes, _ = find_transposition(wide, other, noise, CHANCE)
    if axes is not None and axes != tuple(range(observed.ndim)):
        measured = _score(wide, other.transpose(axes).reshape(wide.shape), floor)
        if measured <= limit:
            message = f"{path} {list(observed.shape)} of the port is the reference's with its axes swapped"
            plain = TRANSPOSED.get(framework) if observed.ndim == 2 else None
            fix = (
                plain.format(spelled_path(path))
                if plain
                else f"transpose {path} by {list(axes)} when loading it"
            )
            return Cause("weight.transposed", message, fix, measured)
    order = find_order(wide, other, noise, CHANCE)
    if order is not None:
        axis, indices = order
        measured = _score(wide, other.take(np.asarray(indices), axis), floor)
        if measured <= limit:
            shown = ", ".join(map(str, indices[:8])) + (", ..." if len(indices) > 8 else "")
            message = f"{path} has the reference's slices along axis {axis} in another order: {shown}"
            fix = f"load {path} in the reference's order along axis {axis}"
            return Cause("weight.permuted", message, fix, measured)
    return _mismatched(path, wide, other)


def _mismatched(path: str, observed: Array, expected: Array) -> Cause:
    """Other numbers altogether, or a few that are: copying is the cure either way."""
    apart = int(np.count_nonzero(observed != expected))
    cosine = float(observed.ravel() @ expected.ravel())
    sizes = float(np.linalg.norm(observed) * np.linalg.norm(expected))
    likeness = cosine / sizes if sizes else 0.0
    message = (
        f"{path} differs in {apart} of {observed.size} values (cosine {number(round(likeness, 4))}; size "
        f"{_size(expected)} in the reference, {_size(observed)} in the port)"
    )
    return Cause("weight.mismatched", message, "parfocal.transfer(reference, port)", 0.0)


def _size(array: Array) -> str:
    return f"{float(np.sqrt(np.mean(np.square(array)))):.3g}"


def _score(observed: Array, expected: Array, floor: Size) -> float:
    return score(error_of(compare_arrays(observed, expected)), floor)
