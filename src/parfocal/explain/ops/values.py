"""Which values of two logs hold the same numbers, in any layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import permutations

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.ops.log import Key
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON
from parfocal.judge.layouts import MAX_AXES, fit

ROUNDING = limits.causes.OP_ROUNDING.value
_SAMPLE = limits.searches.VALUE_SAMPLE.value


@dataclass(slots=True)
class Matches:
    """Which values of the port are which of the reference, both ways."""

    to_reference: dict[Key, Key] = field(default_factory=dict)
    to_port: dict[Key, Key] = field(default_factory=dict)
    pairs: set[tuple[Key, Key]] = field(default_factory=set)  # all; the other two have the first alone

    def are_one(self, port: Key, reference: Key) -> bool:
        """Whether two values are the same numbers; several values of a side may be."""
        if (port, reference) in self.pairs:
            return True
        mine, back = self.to_reference.get(port), self.to_port.get(reference)
        return mine is not None and (
            mine == reference or (back is not None and self.to_reference[back] == mine)
        )


class ComparableValue:
    """A value with what it is compared by, computed when asked for."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.epsilon = EPSILON.get(array.dtype.name, 0.0)

    @cached_property
    def wide(self) -> Array:
        with np.errstate(invalid="ignore"):  # an op may give memory that it never wrote to
            return self.array.astype(np.complex128 if self.array.dtype.kind == "c" else np.float64)

    @cached_property
    def norm(self) -> float:
        return float(np.linalg.norm(self.wide[np.isfinite(self.wide)]))

    @cached_property
    def ordered(self) -> Array:
        return np.sort(self.wide, axis=None)


def match(port: Mapping[Key, Array], reference: Mapping[Key, Array], rounding: float = ROUNDING) -> Matches:
    """Values of the same numbers in the same order, flattened or with axes moved."""
    found = Matches()
    by_size: dict[tuple[int, bool], list[tuple[Key, ComparableValue]]] = {}
    for key, array in reference.items():
        by_size.setdefault(_class(array), []).append((key, ComparableValue(array)))
    for key, array in port.items():
        mine = ComparableValue(array)
        for other, theirs in by_size.get(_class(array), ()):
            if one(mine, theirs, rounding):
                found.to_reference.setdefault(key, other)
                found.to_port.setdefault(other, key)
                found.pairs.add((key, other))
                found.pairs.add((key, other))
    return found


def one(a: ComparableValue, b: ComparableValue, rounding: float = ROUNDING) -> bool:
    """The same numbers in the same order, but for a reshape or a permutation of axes."""
    if abs(a.norm - b.norm) > 1e-3 * max(a.norm, b.norm):
        return False
    # the finer of the two: what was rounded to a coarser type is another value
    tolerance = rounding * min(a.epsilon, b.epsilon)
    if close(a.wide.ravel(), b.wide.ravel(), tolerance):
        return True
    if a.array.ndim != b.array.ndim or not 2 <= a.array.ndim <= MAX_AXES:
        return False
    if not close(a.ordered, b.ordered, tolerance):
        return False
    for order in permutations(range(a.array.ndim)):
        if tuple(b.array.shape[axis] for axis in order) == a.array.shape and close(
            a.wide.ravel(), b.wide.transpose(order).ravel(), tolerance
        ):
            return True
    return False


def rearranged(a: Array, b: Array) -> bool:
    """The same numbers up to rounding, in any order."""
    if a.size != b.size:
        return False
    left, right = ComparableValue(a), ComparableValue(b)
    return close(left.ordered, right.ordered, ROUNDING * min(left.epsilon, right.epsilon))


def same(a: Array, b: Array) -> bool:
    return a.size == b.size and one(ComparableValue(a), ComparableValue(b))


def close(a: Array, b: Array, tolerance: float) -> bool:
    """Equal up to rounding, in relation to the size of all values; infinities must agree exactly."""
    step = max(1, a.size // _SAMPLE)
    if step > 1 and not close(a[::step], b[::step], 64.0 * tolerance):
        return False  # a sample is enough to see that
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return False
    # what is hidden by very low values would make up the size of all
    hidden = finite & (b.real <= MASKED)
    for group in (finite & ~hidden, hidden):
        difference = float(np.linalg.norm(a[group] - b[group]))
        if difference > tolerance * float(np.linalg.norm(b[group])):
            return False
    return True


def laid_out(reference: Array, port_shape: tuple[int, ...], like: Array) -> Array | None:
    """The reference's value in a shape of the port's, in the layout that ``like`` suggests."""
    if reference.shape == port_shape:
        return reference
    layout = fit(reference, like)
    if layout is not None and layout.shape == port_shape:
        return layout.apply(reference)
    return reference.reshape(port_shape) if reference.size == int(np.prod(port_shape)) else None


def is_mask(array: Array) -> bool:
    """Whether an array is a mask: of two values only, or of zeros and very large negative numbers."""
    if array.dtype == np.bool_:
        return True
    if array.dtype.kind not in "fViu" or array.size < 2:
        return False
    wide = array.astype(np.float64)
    if np.isnan(wide).any():
        return False
    return bool(np.all((wide == 0.0) | (wide == 1.0))) or bool(np.all((wide == 0.0) | (wide <= MASKED)))


MASKED = limits.pairing.MASKED_SCORE.value


def covered(mask: Array) -> Array:
    """Where a mask says yes: true, 1, or very low."""
    wide = mask.astype(np.float64)
    return np.asarray((wide <= MASKED) if (wide < 0).any() else wide != 0)


def _class(array: Array) -> tuple[int, bool]:
    return array.size, array.dtype.kind in "fV"
