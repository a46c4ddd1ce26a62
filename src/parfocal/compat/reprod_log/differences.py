"""Two nested dicts of arrays, paired by key, and how far the two of each pair are apart.

A pair that cannot be compared (a key on one side only, another shape, no numbers) says so in its
``problem`` and keeps its place in the nesting, so that all other pairs are still told.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.compat.reprod_log.values import absolute_difference, to_array
from parfocal.errors import InputError
from parfocal.judge.floors import rounding_score
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.named import reshaped_alike, shape_note

PairTree = dict[str, Any]  # key -> Pair or PairTree
DifferenceTree = dict[str, Any]  # key -> Difference or DifferenceTree
_NOTHING = np.zeros(0)


@dataclass(frozen=True, slots=True)
class Pair:
    """What stands under one key on both sides, or the ``problem`` why there is no such pair."""

    first: Array
    second: Array
    problem: str = ""
    note: str = ""  # how the two were made comparable


class Difference(dict[str, float]):
    """The "mean", "max" and "min" of a difference; NaN, with a ``problem``, where there is none.

    ``note`` is said of it in any case; ``score`` is the difference in units of the values' rounding,
    None where nothing is rounded.
    """

    def __init__(
        self,
        mean: float,
        max: float,
        min: float,
        problem: str = "",
        note: str = "",
        score: float | None = None,
    ) -> None:
        super().__init__(mean=mean, max=max, min=min)
        self.problem = problem
        self.note = note
        self.score = score


def pair_up(first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str]) -> PairTree:
    """Every key of either side, in the first's order; ``names`` are what problems call the sides."""
    return {key: _pair(key, first, second, names) for key in dict.fromkeys([*first, *second])}


def map_pairs(pairs: PairTree, function: Callable[[Pair], Any]) -> dict[str, Any]:
    """The same nesting with ``function(pair)`` in every pair's place."""
    return {
        key: function(below) if isinstance(below, Pair) else map_pairs(below, function)
        for key, below in pairs.items()
    }


def problems(pairs: PairTree) -> list[str]:
    """Every problem of the nesting, in order."""
    return [
        problem
        for below in pairs.values()
        for problem in ([below.problem] if isinstance(below, Pair) else problems(below))
        if problem
    ]


def figures(pair: Pair) -> Difference:
    """Mean, largest and smallest absolute difference of a pair."""
    if pair.problem:
        return _no_difference(pair.problem)
    comparison = compare_arrays(pair.first, pair.second)
    if not comparison.comparable:
        return _no_difference(comparison.reason)
    if not comparison.size:
        return _no_difference(f"no elements: the shape is {comparison.a.shape}")
    if comparison.a.nan or comparison.b.nan:
        return _no_difference(f"NaN: {comparison.a.nan} against {comparison.b.nan} of {comparison.size}")
    difference = absolute_difference(pair.first, pair.second)
    with np.errstate(over="ignore"):
        reduced = (difference.mean(), difference.max(), difference.min())
    mean, largest, smallest = (np.asarray(one).item() for one in reduced)
    if not comparison.same_nonfinite_places:
        return Difference(mean, largest, smallest, note=pair.note)
    return Difference(
        mean=_familiar(mean, comparison.mean_abs),
        max=_familiar(largest, comparison.max_abs),
        min=_familiar(smallest, comparison.min_abs),
        note=pair.note,
        score=rounding_score(pair.first, pair.second) if largest else 0.0,
    )


def _no_difference(problem: str) -> Difference:
    return Difference(math.nan, math.nan, math.nan, problem)


def _familiar(figure: float, exact: float) -> float:
    """The figure as the original computes it, in the arrays' own precision, as long as it is true.

    Its digits are those in the logs people keep. Where that precision overflows or vanishes, the
    exact one is told.
    """
    return figure if math.isclose(figure, exact, rel_tol=1e-5) else exact


def absolute(pair: Pair) -> Array:
    """``|first - second|``, infinite wherever it is no number."""
    if pair.problem or pair.first.shape != pair.second.shape:
        return np.array(np.inf)
    difference = absolute_difference(pair.first, pair.second)
    if difference.dtype.kind == "f":
        difference[np.isnan(difference)] = np.inf
    return difference


def _pair(key: str, first: Mapping[str, Any], second: Mapping[str, Any], names: tuple[str, str]) -> Any:
    if key not in second:
        return _unpaired(f"{key} in {names[0]} but not found in {names[1]}")
    if key not in first:
        return _unpaired(f"{key} in {names[1]} but not found in {names[0]}")
    values = (first[key], second[key])
    nested = [isinstance(value, Mapping) for value in values]
    if all(nested):
        return pair_up(*values, names=names) or _unpaired(f"{key} is empty in {names[0]} and {names[1]}")
    if any(nested):
        dict_side, array_side = names if nested[0] else names[::-1]
        return _unpaired(f"{key} is a dict in {dict_side} but not in {array_side}")
    try:
        left, right = (to_array(value, key) for value in values)
    except InputError as error:
        return _unpaired(error.message)
    reshaped = reshaped_alike(left, right)
    return Pair(left, right) if reshaped is None else Pair(left, reshaped, note=shape_note(left, right))


def _unpaired(problem: str) -> Pair:
    return Pair(_NOTHING, _NOTHING, problem)
