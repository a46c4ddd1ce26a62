"""Why corresponding weights differ before anything runs: transposed, in another order, or others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import ml_dtypes
import numpy as np

from parfocal.backends import registry
from parfocal.backends.protocol import Array
from parfocal.explain.causes import PortChange, PortCode, number, rounded, spelled_path
from parfocal.explain.layers.rearranging import (
    Rearrangement,
    find_arrangement,
    in_words,
    is_reversed,
    same_numbers,
)
from parfocal.explain.layers.relations import factor_between
from parfocal.judge import limits
from parfocal.judge.floors import Size, error_of, score
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Grounds, ProvenBy
from parfocal.phrases import joined, phrase

LONGEST = limits.searches.WEIGHT_OF_A_LINE.value


COPY = PortCode("parfocal.transfer(reference, port)", PortChange.ALL_WEIGHTS)
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
            before = _score(wide, other, floor)
            return _arranged(path, framework, observed.shape, found).proven(
                ProvenBy.RELATED, before, measured
            )
    elif same_numbers(wide, other, 4.0 * floor.peak):
        message = phrase(
            "{path} {shape} of the port has the reference's numbers in another order",
            path=path,
            shape=list(observed.shape),
        )
        measured = _score(np.sort(wide, axis=None), np.sort(other, axis=None), floor)
        return Claim("weight.permuted", message, COPY).proven(
            ProvenBy.RELATED, _score(wide, other, floor), measured
        )
    found_cause = _related(path, observed, expected, floor, limit, others)
    if found_cause is not None:
        return found_cause
    copied = expected.astype(observed.dtype)  # as far as the port's type can hold it
    before, after = (_score(each.astype(np.float64), other, floor) for each in (observed, copied))
    return _mismatched(path, wide, other).judged(ProvenBy.RECOMPUTED, before, after, limit, Grounds.VALUES)


def tied_cause(path: str, right: str, source: str, before: float, after: float) -> Cause:
    """``path`` and ``right`` of the port are one tensor in the reference, and only ``right`` is like it.

    ``before``, ``after``: the error of ``path``, and that of ``right``, which would stand for both.
    """
    message = phrase(
        "{path} and {right} are one tensor in the reference ({source}) and two in the port: "
        "{right} has its values, {path} has others",
        path=path,
        right=right,
        source=source,
    )
    return Claim("weight.tied", message, COPY).proven(ProvenBy.RELATED, before, after)


def _arranged(path: str, framework: str, shape: Sequence[int], found: Rearrangement) -> Claim:
    if not found.moved:
        message = phrase(
            "{path} {shape} of the port is the reference's with its axes swapped",
            path=path,
            shape=list(shape),
        )
        return Claim("weight.transposed", message, _transposed(path, framework, found.axes))
    where = joined(
        "; ",
        (
            phrase(
                "along axis {axis} in another order: {in_words}",
                axis=axis,
                in_words=in_words(found.orders[axis]),
            )
            for axis in found.moved
        ),
    )
    swapped = phrase("the reference's axes {axes}, then ", axes=list(found.axes)) if found.swaps_axes else ""
    message = phrase(
        "{path} has {swapped}the reference's slices {where}", path=path, swapped=swapped, where=where
    )
    fix = COPY if found.swaps_axes else _picked(path, framework, found)
    return Claim("weight.permuted", message, fix)


def _mismatched(path: str, observed: Array, expected: Array) -> Claim:
    """All numbers differ, or some: copying the weights mends both."""
    apart = int(np.count_nonzero(observed != expected))
    cosine = float(observed.ravel() @ expected.ravel())
    sizes = float(np.linalg.norm(observed) * np.linalg.norm(expected))
    likeness = cosine / sizes if sizes else 0.0
    message = phrase(
        "{path} differs in {apart} of {size} values (cosine {round}; size {reference} in the "
        "reference, {port} in the port)",
        path=path,
        apart=apart,
        size=observed.size,
        round=number(round(likeness, 4)),
        reference=_size(expected),
        port=_size(observed),
    )
    return Claim("weight.mismatched", message, COPY)


def _related(
    path: str, observed: Array, expected: Array, floor: Size, limit: float, others: Others
) -> Cause | None:
    """What the port's numbers are to the reference's, where they are not merely others."""
    before = _score(observed.astype(np.float64), expected.astype(np.float64), floor)

    def related(claim: Claim, made: Array) -> Cause:
        after = _score(observed.astype(np.float64), made.astype(np.float64), floor)
        return claim.proven(ProvenBy.RELATED, before, after)

    for name, dtype in NARROW.items():
        with np.errstate(over="ignore"):
            short = expected.astype(dtype).astype(expected.dtype)
        if np.array_equal(observed, short):
            message = phrase("{path} has the reference's values rounded to {name}", path=path, name=name)
            return related(Claim("dtype.precision", message, COPY), short)
    if observed.size > 1 and bool((observed == observed.flat[0]).all()):
        constant = number(float(observed.flat[0]))
        message = phrase(
            "every value of {path} is {port} in the port (size {reference} in the reference)",
            path=path,
            port=constant,
            reference=_size(expected),
        )
        return Claim("weight.mismatched", message, COPY).likely(Grounds.VALUES)
    for name, other in others:
        if other.shape == observed.shape and np.array_equal(observed, other):
            message = phrase("{path} has the values that belong to {name}", path=path, name=name)
            return related(Claim("weight.mismatched", message, COPY), other)
    factor = factor_between(observed, expected)
    if factor is None:
        return None
    factor = rounded(factor)
    left = _score(observed.astype(np.float64) / factor, expected.astype(np.float64), floor)
    message = phrase("{path} is {factor} times the reference's", path=path, factor=number(factor))
    return (
        Claim("weight.mismatched", message, COPY).proven(ProvenBy.RELATED, before, left)
        if left <= limit
        else None
    )


def _transposed(path: str, framework: str, axes: Sequence[int]) -> PortCode:
    """The line that undoes a transposition; copying does so too, in any framework."""
    back = [int(axis) for axis in np.argsort(axes)]
    return _overwritten(path, framework, registry.dialect(framework).overwrite_transposed.format(back))


def _picked(path: str, framework: str, found: Rearrangement) -> PortCode:
    """The line that puts slices back in order."""
    if all(is_reversed(found.orders[axis]) for axis in found.moved):
        axes = found.moved[0] if len(found.moved) == 1 else list(found.moved)
        return _overwritten(path, framework, f"flip({axes})")
    axis = found.moved[0]
    back = [int(index) for index in np.argsort(found.orders[axis])]
    if len(found.moved) > 1 or len(back) > LONGEST:
        return COPY
    return _overwritten(path, framework, registry.dialect(framework).overwrite_picked.format(back, axis))


def _overwritten(path: str, framework: str, change: str) -> PortCode:
    around = registry.dialect(framework).overwrite
    if around is None:
        return COPY
    before, after = around
    return PortCode(before.format(spelled_path(path)) + change + after, PortChange.WEIGHT)


def _size(array: Array) -> str:
    return f"{float(np.sqrt(np.mean(np.square(array)))):.3g}"


def _score(observed: Array, expected: Array, floor: Size) -> float:
    return score(error_of(compare_arrays(observed, expected)), floor)
