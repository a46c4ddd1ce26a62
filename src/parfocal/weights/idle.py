"""Weights without a counterpart that have no part in the run: an auxiliary head that only training uses.

They are shown to be idle by running their own model with them made unusable: what it gives stays the
same. Nothing is concluded from calls alone, because code may use a layer's weight without calling it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from parfocal.inputs import Arguments
from parfocal.judge.floors import EPSILON
from parfocal.weights.observe import ObservedRun, run
from parfocal.weights.plan import Leftover, Plan
from parfocal.weights.verify import agree
from parfocal.weights.writer import WritableModel


def set_idle_apart(
    plan: Plan,
    sides: tuple[WritableModel, WritableModel],
    runs: tuple[ObservedRun, ObservedRun],
    given: Sequence[Arguments],
) -> Plan:
    """The plan with tensors that change nothing on these inputs listed as idle, no longer as unmatched."""
    unmatched = plan.unmatched_reference, plan.unmatched_port
    idle = [
        _idle(items, side, seen, arguments)
        for items, side, seen, arguments in zip(unmatched, sides, runs, given, strict=True)
    ]
    left = [
        tuple(item for item in items if item not in found)
        for items, found in zip(unmatched, idle, strict=True)
    ]
    return replace(
        plan,
        unmatched_reference=left[0],
        unmatched_port=left[1],
        idle_reference=tuple(idle[0]),
        idle_port=tuple(idle[1]),
    )


def _idle(
    items: Sequence[Leftover], side: WritableModel, seen: ObservedRun, arguments: Arguments
) -> list[Leftover]:
    """All of them, else those of modules that are not called, else none."""
    uncalled = [item for item in items if side.tensors[item.path].module not in seen.by_path]
    for some in (list(items), uncalled):
        if some and _changes_nothing(some, side, arguments):
            return some
    return []


def _changes_nothing(items: Sequence[Leftover], side: WritableModel, arguments: Arguments) -> bool:
    """Whether the model gives the same when these hold no numbers; they hold what they did afterwards."""
    paths = [side.tensors[item.path].tied_to or item.path for item in items]
    before = side.snapshot(paths)
    if any(array.dtype.name not in EPSILON for array in before.values()):
        return False  # whole numbers cannot be made unusable
    expected = run(side, arguments)
    try:
        side.restore({path: np.full_like(array, np.nan) for path, array in before.items()})
        got = run(side, arguments)
    except (Exception, SystemExit):  # noqa: BLE001  # whatever the user's model raises: it looks at them
        return False
    finally:
        side.restore(before)
    return agree(expected, got)
