"""A buffer with an exponential average whose momentum differs from the reference's.

Both sides move from the same old values towards the same new ones, so one side's change is a constant
multiple of the other's. The momentum is a number that the module holds: the weight of the new or of the
old value.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.explain.case import Case
from parfocal.explain.causes import PortLine, ProvenChange, number, place, rounded
from parfocal.explain.kept import path_of
from parfocal.explain.layers.relations import factor_between
from parfocal.judge import limits
from parfocal.phrases import phrase

ROUNDED = limits.causes.RATE_ROUNDED.value
MOST_SHARES = limits.searches.RATES_OF_A_MODULE.value


def other_share(case: Case) -> Iterator[ProvenChange]:
    """The buffers are right with another number among those that the port's module keeps."""
    ratio = update_ratio(case)
    if ratio is None:
        return
    shares = {
        name: value for name, value in vars(case.module).items() if type(value) is float and 0.0 < value < 1.0
    }
    for name, value in list(shares.items())[:MOST_SHARES]:
        for right in (rounded(value / ratio), rounded(1.0 - (1.0 - value) / ratio)):
            if not 0.0 <= right <= 1.0:
                continue
            score = case.tried(partial(_set, name, right))
            if score <= case.limit:
                message = phrase(
                    "what is new counts {ratio} times as much in {buffer} as in the reference: {name} of "
                    "{place} is {port} in the port and would have to be {right}",
                    ratio=number(ratio),
                    buffer=_buffer(case),
                    name=name,
                    place=place(case.node),
                    port=number(value),
                    right=number(right),
                )
                fix = PortLine.attribute(case.node.path, name, number(right))
                facts = (name, number(value), number(right))
                yield ProvenChange("buffer.momentum", message, fix, score, facts=facts)
                return


def update_ratio(case: Case) -> float | None:
    """The ratio of the port's change to the reference's, if it is the same for every element."""
    check = case.checks[0]
    before = case.buffers[0].get(path_of(check.reference, case.precise.reference.trace))
    observed, expected = case.observed(), case.recorded(check.reference)
    if before is None or observed is None or len({observed.shape, expected.shape, before.shape}) > 1:
        return None
    moved, wanted = (_wide(after) - _wide(before) for after in (observed, expected))
    ratio = factor_between(moved, wanted)
    if ratio is None or np.linalg.norm(moved - ratio * wanted) > ROUNDED * np.linalg.norm(moved):
        return None
    return rounded(ratio)


def _wide(array: Array) -> Array:
    return array.astype(np.float64)


def _set(name: str, value: float, twin: Any) -> None:
    setattr(twin, name, value)


def _buffer(case: Case) -> str:
    return path_of(case.checks[0].port, case.precise.port.trace)
