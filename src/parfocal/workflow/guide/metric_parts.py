"""A metric on parts of the evaluation data: whether it is a mean over samples, and what each gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.capture.nested_values import flatten, rebuild
from parfocal.errors import ParfocalError
from parfocal.judge import limits
from parfocal.workflow.metrics import named_numbers

MOST = limits.searches.METRIC_PARTS.value
SHARES = "shares"  # of the samples, by part; beside them the metrics by name
AS_MEAN = limits.verdicts.SAME_MEAN.value


def metric_parts(
    metric: Callable[[Any, Any], Any], whole: Mapping[str, float], predictions: Any, labels: Any
) -> dict[str, Array]:
    """Every metric that is the mean of what it is on parts, by name; none of these where there is none."""
    count = _length(predictions, labels)
    if not count:
        return {}
    edges = np.linspace(0, count, min(count, MOST) + 1).astype(int)
    shares = np.diff(edges) / count
    rows = []
    for start, stop in pairwise(edges):
        try:
            rows.append(named_numbers(metric(_cut(predictions, start, stop), _cut(labels, start, stop))))
        except (ParfocalError, TypeError, ValueError):
            return {}  # it needs more than one sample, as a ranking does
    found = {
        name: np.asarray([row[name] for row in rows]) for name in whole if all(name in row for row in rows)
    }
    alike = {
        name: values
        for name, values in found.items()
        if np.isclose((shares * values).sum(), whole[name], rtol=AS_MEAN, atol=AS_MEAN * np.abs(values).max())
    }
    return {SHARES: shares, **alike} if alike else {}


def _length(*values: Any) -> int:
    """How many samples all arrays have; 0 where they do not have one number in common."""
    leaves = [np.asarray(leaf) for value in values for leaf in flatten(value).leaves.values()]
    lengths = {len(leaf) if leaf.ndim else 0 for leaf in leaves}
    return lengths.pop() if len(lengths) == 1 else 0


def _cut(value: Any, start: int, stop: int) -> Any:
    flat = flatten(value)
    return rebuild(flat.shape, {slot: leaf[start:stop] for slot, leaf in flat.leaves.items()})
