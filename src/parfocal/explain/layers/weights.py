"""Why corresponding weights differ before anything runs: transposed, in another order, or others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import ml_dtypes
import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.explain.causes import number, rounded, spelled_path
from parfocal.explain.layers.rearranging import Arrangement, find_arrangement, in_words, same_numbers
from parfocal.explain.layers.relations import factor_between
from parfocal.judge.floors import Size, error_of, score
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause

LONGEST = 64  # numbers that a line of code still may list
COPY = "parfocal.transfer(reference, port)"
NARROW = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
Others = Iterable[tuple[str, Array]]


def weight_cause(
    path: str,
    framework: str,
    observed: Array,
    expected: Array,
    floor: Size,
    limit: float,
    others: Others = (),
) -> Cause | None:
    """``observed`` of the port lies as ``expected`` of the reference would if all were well.

    ``others``: the reference's other tensors, each by the path in the port where it belongs.
    """
    if observed.shape != expected.shape or not observed.size:
        return None
    wide, other = observed.astype(np.float64), expected.astype(np.float64)
    found = find_arrangement(wide, other, 4.0 * floor.peak)
    if found is not None:
        measured = _score(wide, found.apply(other), floor)
        if measured <= limit:
            return _arranged(path, framework, observed.shape, found, measured)
    elif same_numbers(wide, other, 4.0 * floor.peak):
        message = f"{path} {list(observed.shape)} of the port has the reference's numbers in another order"
        return Cause("weight.permuted", message, COPY, 0.0)
    return _related(path, observed, expected, floor, limit, others) or _mismatched(path, wide, other)


def tied_cause(path: str, right: str, source: str) -> Cause:
    """``path`` and ``right`` of the port are one tensor in the reference, and only ``right`` is like it."""
    message = (
        f"{path} and {right} are one tensor in the reference ({source}) and two in the port: "
        f"{right} has its values, {path} has others"
    )
    return Cause("weight.tied", message, COPY, 0.0)


def _arranged(path: str, framework: str, shape: Sequence[int], found: Arrangement, measured: float) -> Cause:
    if not found.moved:
        message = f"{path} {list(shape)} of the port is the reference's with its axes swapped"
        return Cause("weight.transposed", message, _transposed(path, framework, found.axes), measured)
    where = "; ".join(
        f"along axis {axis} in another order: {in_words(found.orders[axis])}" for axis in found.moved
    )
    swapped = f"the reference's axes {list(found.axes)}, then " if found.swaps_axes else ""
    message = f"{path} has {swapped}the reference's slices {where}"
    fix = COPY if found.swaps_axes else _picked(path, framework, found)
    return Cause("weight.permuted", message, fix, measured)


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
    return Cause("weight.mismatched", message, COPY, 0.0)


def _related(
    path: str, observed: Array, expected: Array, floor: Size, limit: float, others: Others
) -> Cause | None:
    """What the port's numbers are to the reference's, where they are not merely others."""
    for name, dtype in NARROW.items():
        with np.errstate(over="ignore"):
            short = expected.astype(dtype).astype(expected.dtype)
        if np.array_equal(observed, short):
            message = f"{path} has the reference's values rounded to {name}"
            return Cause("dtype.precision", message, COPY, 0.0)
    if observed.size > 1 and bool((observed == observed.flat[0]).all()):
        constant = number(float(observed.flat[0]))
        message = f"every value of {path} is {constant} in the port (size {_size(expected)} in the reference)"
        return Cause("weight.mismatched", message, COPY, 0.0)
    for name, other in others:
        if other.shape == observed.shape and np.array_equal(observed, other):
            return Cause("weight.mismatched", f"{path} has the values that belong to {name}", COPY, 0.0)
    factor = factor_between(observed, expected)
    if factor is None:
        return None
    factor = rounded(factor)
    left = _score(observed.astype(np.float64) / factor, expected.astype(np.float64), floor)
    message = f"{path} is {number(factor)} times the reference's"
    return Cause("weight.mismatched", message, COPY, left) if left <= limit else None


def _transposed(path: str, framework: str, axes: Sequence[int]) -> str:
    """The line that undoes a transposition; copying does so too, in any framework."""
    back = [int(axis) for axis in np.argsort(axes)]
    return _overwritten(path, framework, registry.dialect(framework).overwrite_transposed.format(back))


def _picked(path: str, framework: str, found: Arrangement) -> str:
    """The line that puts slices back in order."""
    if all(in_words(found.orders[axis]) == "reversed" for axis in found.moved):
        axes = found.moved[0] if len(found.moved) == 1 else list(found.moved)
        return _overwritten(path, framework, f"flip({axes})")
    axis = found.moved[0]
    back = [int(index) for index in np.argsort(found.orders[axis])]
    if len(found.moved) > 1 or len(back) > LONGEST:
        return COPY
    return _overwritten(path, framework, registry.dialect(framework).overwrite_picked.format(back, axis))


def _overwritten(path: str, framework: str, change: str) -> str:
    around = registry.dialect(framework).overwrite
    if around is None:
        return COPY
    before, after = around
    return before.format(spelled_path(path)) + change + after


def _size(array: Array) -> str:
    return f"{float(np.sqrt(np.mean(np.square(array)))):.3g}"


def _score(observed: Array, expected: Array, floor: Size) -> float:
    return score(error_of(compare_arrays(observed, expected)), floor)
