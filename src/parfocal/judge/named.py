"""Compare two collections of named arrays: pair by name, measure, give each pair a verdict.

This is the framework-free core of ``parfocal diff`` and of the reprod_log report. A name that
stands on one side only, a shape that differs or a NaN is a failure of that row and never keeps
the other rows from being compared; comparing nothing at all is an error.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.errors import EmptyComparisonError, InputError
from parfocal.judge.metrics import Comparison, compare_arrays
from parfocal.phrases import joined, phrase

Name = tuple[str, ...]

# method -> the metric it reads; reprod_log's three plus what it lacks
METHODS: Mapping[str, str] = {
    "mean": "mean_abs",
    "max": "max_abs",
    "min": "min_abs",
    "rmse": "rmse",
    "relative": "rel_l2",
}
ALL_METHODS = ("min", "max", "mean")  # what reprod_log's "all" stands for
_NOT_NUMBERS = "USOMm"  # kinds of dtypes: text, bytes, objects, times; these can only be equal or not


@dataclass(frozen=True, slots=True)
class NamedRow:
    """One name: what was measured and whether it passes, per method."""

    name: Name
    comparison: Comparison | None  # None when one side has no such name
    problem: str  # why there is no number, "" when there is one
    values: Mapping[str, float]
    verdicts: Mapping[str, bool]
    note: str = ""  # how the two were made comparable

    @property
    def passed(self) -> bool:
        return not self.problem and bool(self.verdicts) and all(self.verdicts.values())

    @property
    def remark(self) -> str:
        """What a reader must know although, or because, there is a number."""
        if self.problem or self.comparison is None:
            return self.problem
        return joined("; ", filter(None, (self.note, _nonfinite(self.comparison))))

    @property
    def badness(self) -> float:
        """For sorting, worst first: rows without a number, then by the largest value."""
        if self.problem:
            return math.inf
        return max(self.values.values(), default=0.0)


def _nonfinite(comparison: Comparison) -> str:
    if comparison.nonfinite_disagreeing:
        return phrase(
            "NaN or infinity on one side only at {count} places",
            count=comparison.nonfinite_disagreeing,
        )
    if comparison.nonfinite_agreeing:
        count = comparison.nonfinite_agreeing
        if count == 1:
            return phrase("NaN or infinity on both sides at 1 place")
        return phrase("NaN or infinity on both sides at {count} places", count=count)
    return ""


def methods_of(method: str | Sequence[str]) -> tuple[str, ...]:
    """``"all"``, one name, or several; unknown names are an error."""
    names = (method,) if isinstance(method, str) else tuple(method)
    expanded = tuple(dict.fromkeys(m for name in names for m in (ALL_METHODS if name == "all" else (name,))))
    unknown = [name for name in expanded if name not in METHODS]
    if unknown or not expanded:
        raise InputError(
            phrase(
                "unknown diff method {names}",
                names=joined(", ", map(repr, unknown)) or phrase("(none given)"),
            ),
            hint=phrase("use one or more of {methods}, or all", methods=joined(", ", METHODS)),
        )
    return expanded


def reshaped_alike(first: Array, second: Array) -> Array | None:
    """The second in the first's shape, where the two shapes differ by axes of length 1 alone; else None.

    A scalar may be stored as () or as (1,), a column of labels as (90,) or as (90, 1): no value has
    another place then, and nothing is broadcast.
    """
    if first.shape == second.shape:
        return None
    lengths = [tuple(length for length in array.shape if length != 1) for array in (first, second)]
    return second.reshape(first.shape) if lengths[0] == lengths[1] else None


def shape_note(first: Array, second: Array) -> str:
    """What is said of two such arrays."""
    return phrase(
        "shapes {first} and {second} differ by axes of length 1 only: compared by value",
        first=first.shape,
        second=second.shape,
    )


def flatten(tree: Mapping[str, Any], prefix: Name = ()) -> Iterator[tuple[Name, Any]]:
    """The leaves of nested dictionaries, in order."""
    for key, value in tree.items():
        name = (*prefix, str(key))
        if isinstance(value, Mapping):
            yield from flatten(value, name)
        else:
            yield name, value


def compare_named(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    method: str | Sequence[str] = "mean",
    threshold: float = 1e-6,
) -> tuple[NamedRow, ...]:
    """Compare all names of both sides; a value equal to the threshold passes."""
    methods = methods_of(method)
    if not threshold >= 0:
        raise InputError(
            phrase("the threshold is {threshold}; it must be a number >= 0", threshold=threshold)
        )
    left, right = dict(flatten(first)), dict(flatten(second))
    names = tuple(dict.fromkeys([*left, *right]))
    if not names:
        raise EmptyComparisonError(
            phrase("both sides are empty: there is nothing to compare"),
            hint=phrase("record at least one array under the same name on both sides"),
        )
    return tuple(_row(name, left, right, methods, threshold) for name in names)


def _row(
    name: Name,
    left: Mapping[Name, Any],
    right: Mapping[Name, Any],
    methods: tuple[str, ...],
    threshold: float,
) -> NamedRow:
    for side, lacking in ((left, phrase("missing in the first")), (right, phrase("missing in the second"))):
        if name not in side:
            return NamedRow(name, None, lacking, {}, dict.fromkeys(methods, False))
    ours, theirs = np.asarray(left[name]), np.asarray(right[name])
    if {ours.dtype.kind, theirs.dtype.kind} & set(_NOT_NUMBERS):
        same = bool(np.array_equal(ours, theirs))
        problem = (
            ""
            if same
            else phrase(
                "not numbers: {first} and {second}",
                first=f"{left[name]!r:.40}",
                second=f"{right[name]!r:.40}",
            )
        )
        return NamedRow(name, None, problem, dict.fromkeys(methods, 0.0), dict.fromkeys(methods, same))
    reshaped = reshaped_alike(ours, theirs)
    note = "" if reshaped is None else shape_note(ours, theirs)
    comparison = compare_arrays(ours, theirs if reshaped is None else reshaped)
    if not comparison.comparable:
        return NamedRow(name, comparison, comparison.reason, {}, dict.fromkeys(methods, False))
    values = {method: float(getattr(comparison, METHODS[method])) for method in methods}
    # a NaN or an infinity that meets anything else fails every method, the smallest difference too
    sound = comparison.nonfinite_disagreeing == 0
    verdicts = {method: sound and value <= threshold for method, value in values.items()}
    return NamedRow(name, comparison, "", values, verdicts, note)
