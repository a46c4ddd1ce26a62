"""How much work a run of a model or of one of its calls is.

It is counted, not timed: the same on every machine, and the same when it is busy. One call of a module is
the unit, because for most of them being called and watched costs more than the numbers do.
"""

from __future__ import annotations

from itertools import accumulate
from math import prod

from parfocal.judge import limits
from parfocal.replay.trace import Node, Trace

ELEMENTS = limits.searches.ELEMENTS_OF_A_CALL.value
BACKWARD = limits.searches.BACKWARD_WORK.value
WIDE = limits.searches.WIDE_WORK.value
ALIGNING = limits.searches.ALIGNING_WORK.value
WATCHED = limits.searches.WATCHED_WORK.value


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
    """Of the call itself; the outputs of a container are charged to the calls inside it."""
    if not node.is_leaf:
        return 1.0
    return 1.0 + sum([prod(value.data.shape) for value in node.outputs.values()]) / ELEMENTS
