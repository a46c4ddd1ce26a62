"""How much work runs of a model and of its calls are.

It is counted, not timed: the same on every machine, and the same when it is busy. One call of a module is
the unit, because for most of them being called and watched costs more than the numbers do.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod

from parfocal.replay.trace import Node, Trace

ELEMENTS = 2.0**16  # so many numbers that a call gives are as much work as one more call
BACKWARD = 2.0  # times the work of going forward
WIDE = 2.0  # times the work in float32
ALIGNING = 60.0  # in calls: what an alignment is besides running models (weights, pairs, a report)
WATCHED = 3.0  # times the work of running an op, to look at each


class Effort:
    """What was spent so far, in calls."""

    def __init__(self, spent: float = 0.0) -> None:
        self.spent = spent

    def charge(self, calls: float) -> None:
        self.spent += calls


class Prices:
    """The work of each call of a model, with everything that is called inside."""

    def __init__(self, trace: Trace) -> None:
        self._nodes = trace.nodes
        self._before = [0.0, *accumulate(map(_price, trace.nodes))]

    def of(self, order: int, *, backward: bool, dtype: str | None = None) -> float:
        """Of one run of a call."""
        forward = self._before[self._nodes[order].finished] - self._before[order]
        return forward * (1.0 + BACKWARD * backward) * (WIDE if dtype == "float64" else 1.0)


def _price(node: Node) -> float:
    """Of the call itself; what calls give that make others was counted there."""
    if not node.is_leaf:
        return 1.0
    return 1.0 + sum([prod(value.data.shape) for value in node.outputs.values()]) / ELEMENTS
