"""How alike two tensors are, judged by fingerprints that do not depend on their layout."""

from __future__ import annotations

import math
from collections.abc import Mapping

from parfocal.judge import limits
from parfocal.judge.moments import Fingerprint
from parfocal.replay.observe import FLOATING
from parfocal.replay.trace import Value

SAME = limits.pairing.SAME_VALUES.value
UNLIKE = math.inf
FAR = limits.pairing.FAR_VALUES.value
CLOSE = limits.pairing.ROUNDED_VALUES.value
EQUALLY_NEAR = limits.pairing.EQUALLY_NEAR.value


def distance(x: Fingerprint, y: Fingerprint) -> float:
    """0 for equal values in any order, about the relative difference for close ones."""
    if x.size != y.size:
        return UNLIKE
    scale = max(x.l1, y.l1)
    if not scale > 0.0:
        return 0.0 if x == y else 1.0
    spread = max(x.l2, y.l2)
    low, other_low, high, other_high = x.minimum or 0.0, y.minimum or 0.0, x.maximum or 0.0, y.maximum or 0.0
    peak = max(-low, -other_low, high, other_high, low, other_low, -high, -other_high)
    third = max(abs(x.third), abs(y.third), 1e-3 * spread**3 / math.sqrt(x.size))
    worst = max(
        abs(x.sum - y.sum) / scale,
        abs(x.l1 - y.l1) / scale,
        abs(x.l2 - y.l2) / spread if spread else 0.0,
        abs(x.third - y.third) / third,
        max(abs(low - other_low), abs(high - other_high)) / peak if peak else 0.0,
    )
    return worst if math.isfinite(worst) else 1.0


def nearest(values: Mapping[str, Value], others: Mapping[str, Value]) -> float:
    """The distance of the closest pair of tensors."""
    if len(values) == len(others) == 1:  # as of most calls
        (one,), (other,) = values.values(), others.values()
        return distance(one.data.fingerprint, other.data.fingerprint)
    return min(
        (distance(a.data.fingerprint, b.data.fingerprint) for a in values.values() for b in others.values()),
        default=UNLIKE,
    )


def _may_tie(a: Value, b: Value) -> bool:
    """The same number of elements and both floating, or both not: a mask may be either."""
    return a.data.fingerprint.size == b.data.fingerprint.size and (a.data.dtype in FLOATING) == (
        b.data.dtype in FLOATING
    )


def _telling(apart: float, nearest_apart: float) -> float:
    """How far apart two values are, as far as that tells anything; of equally near ones it is the same."""
    if apart <= CLOSE:
        return 0.0
    return min(nearest_apart if apart <= EQUALLY_NEAR * nearest_apart else apart, FAR)


def tie_slots(port: Mapping[str, Value], reference: Mapping[str, Value]) -> dict[str, Value]:
    """Port slot -> the reference's value there: nearest values first, equal ones by position and name.

    What the port takes in several places (as query, key and value) is the same there in each; what it
    gives twice (a cell its state) stands for one thing rather than for two.
    """
    if len(port) == len(reference) == 1:  # as of most calls
        ((slot, own),), (other,) = port.items(), reference.values()
        return {slot: other} if _may_tie(own, other) else {}
    first: dict[int, str] = {}
    for slot, own in port.items():
        first.setdefault(id(own.data), slot)
    ranks = {slot: rank for rank, slot in enumerate(reference)}
    near = {slot: nearest({slot: own}, reference) for slot, own in port.items()}
    candidates = sorted(
        (
            _telling(distance(own.data.fingerprint, other.data.fingerprint), near[slot]),
            first[id(own.data)] != slot,
            slot != name,
            abs(rank - ranks[name]),
            rank,
            slot,
            name,
        )
        for rank, (slot, own) in enumerate(port.items())
        for name, other in reference.items()
        if _may_tie(own, other)
    )
    tied: dict[str, Value] = {}
    taken: set[str] = set()
    for *_, slot, name in candidates:
        if slot not in tied and name not in taken:
            tied[slot] = reference[name]
            taken.add(name)
    known = {id(port[slot]): value for slot, value in tied.items()}
    for slot, own in port.items():
        if slot not in tied and id(own) in known:
            tied[slot] = known[id(own)]
    return tied
