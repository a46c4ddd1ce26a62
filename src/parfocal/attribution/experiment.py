"""One experiment: repeat a call with a change, and see whether it is right now.

Repairs of the pairing, excuses and causes are proven by it. A call of one side is repeated on recorded
values with one change, and what it computes is held against the reference's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parfocal.attribution.measures import LIMIT
from parfocal.backends.protocol import Array, OnOp
from parfocal.brief import told
from parfocal.errors import ParfocalError
from parfocal.judge import limits
from parfocal.judge.floors import Size, difference, judge_arrays, score
from parfocal.replay.follow import Listener, Supply
from parfocal.replay.repeat import Place, Repeater, RepeatResult

NEAR = limits.pairing.REPAIR_NEAR.value * LIMIT

Prepare = Callable[[Any], Any]
Expected = Callable[[Array], Array | None]  # what is right, laid out as the observed; None: cannot be
Refused = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Change:
    """What is different when a call is repeated; as it is, nothing."""

    prepare: Prepare | None = None  # changes a copy of the module, or gives another one to run instead
    supply: Supply | None = None  # gives other values than those recorded
    dtype: str | None = None
    on_op: OnOp | None = None  # sees the ops, and may replace what they give
    listener: Listener | None = None
    inside: bool = True  # calls inside are led along too
    backward: bool = True


UNCHANGED = Change()


def repeated(
    repeater: Repeater,
    calls: Sequence[int],
    recorded: Supply,
    change: Change = UNCHANGED,
    refused: Refused | None = None,
) -> RepeatResult | None:
    """The calls with a change; None when the framework refuses to compute that: ``refused`` hears why."""
    try:
        return repeater.repeat(
            calls,
            change.dtype,
            change.supply or recorded,
            change.prepare,
            on_op=change.on_op,
            inside=change.inside,
            backward=change.backward,
            listener=change.listener,
        )
    except ParfocalError as error:
        reason = error.message
    except Exception as error:  # noqa: BLE001  whatever a framework raises for a trial that cannot be
        reason = told(error)
    if refused is not None:
        refused(reason)
    return None


def is_accepted(observed: Array, expected: Array | None, floor: Size | None = None) -> bool:
    """Whether a result is right: within the limit of a call.

    Without a ``floor`` only the cheapest is known, and more is allowed: what is accepted so is measured
    properly afterwards.
    """
    if expected is None or observed.shape != expected.shape:
        return False
    if floor is not None:
        return score(difference(observed, expected), floor) <= LIMIT
    judged = judge_arrays(observed, expected, None)
    return score(judged.error, judged.floor) <= NEAR


@dataclass(frozen=True, slots=True)
class Experiment:
    """Calls to repeat with a change, and what must be right then, by place."""

    repeater: Repeater
    calls: Sequence[int]
    change: Change
    expected: Mapping[Place, Expected]
    floor: Size | None = None  # of the one place, where it is known
    partial: bool = False  # places that are not there when the calls are repeated do not count

    def is_right(self, recorded: Supply, refused: Refused | None = None) -> bool:
        """Repeat the calls with the change: are they right now?"""
        result = repeated(self.repeater, self.calls, recorded, self.change, refused)
        if result is None or not (self.partial or self.expected.keys() <= result.places.keys()):
            return False
        there = [place for place in self.expected if place in result.places]
        return bool(there) and all(
            is_accepted(result.places[place], self.expected[place](result.places[place]), self.floor)
            for place in there
        )
