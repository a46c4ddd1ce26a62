"""Whether the port gives the reference's samples in another order, or other samples of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from parfocal.brief import some
from parfocal.explain.sample_values import apart
from parfocal.judge import limits
from parfocal.judge.floors import NOTHING
from parfocal.judge.verdict import (
    SIDES,
    Cause,
    Claim,
    Divergence,
    Finding,
    Grounds,
    ProvenBy,
    Site,
    side_name,
)
from parfocal.phrases import phrase
from parfocal.workflow.data_reading import DataReading, Streams
from parfocal.workflow.sample_order import find_common, find_order, in_words, signature
from parfocal.workflow.sample_streams import SampleStream

OTHERS = limits.causes.SUBSET_FEWEST.value


def divergence_of(sides: Streams, what: str, cause: Cause | None, score: float, **more: Any) -> Divergence:
    sites = Site("", sides[0].name), Site("", sides[1].name)
    return Divergence("data", *sites, what, more.get("error"), more.get("noise", NOTHING), score, cause=cause)


def judge_order(sides: Streams, reading: DataReading) -> list[Divergence]:
    if not reading.wrong:
        return []
    order = find_order(*reading.signatures)
    if order is None:
        return _subset(sides, reading)
    if order.is_same:
        return []
    how = in_words(order, reading.batch(1))
    shuffled = [_shuffles(side) for side in sides]
    message = phrase("the port gives the reference's samples {how}", how=how)
    if shuffled[0] != shuffled[1]:
        moving, still = SIDES if shuffled[0] else SIDES[::-1]
        message += phrase(
            ": the {moving} shuffles, the {still} does not", moving=side_name(moving), still=side_name(still)
        )
    elif shuffled[0]:
        message += phrase(": both shuffle, each in its own way")
    fix = phrase("feed both sides one list of indices, or switch shuffling off on both")
    wrong = sum(at != index for index, at in enumerate(order.order))
    what = phrase(
        "order: {wrong} of {count} samples are at another place", wrong=wrong, count=len(order.order)
    )
    ours, theirs = (np.stack(each) for each in reading.signatures)
    found = np.asarray(order.order) >= 0
    common = slice(0, min(len(ours), len(theirs)))
    before = apart(ours[common], theirs[common])
    after = apart(ours[np.asarray(order.order)[found]], theirs[found])
    cause = Claim("data.order", message, fix).proven(ProvenBy.RELATED, before, after)
    return [divergence_of(sides, what, cause, np.inf)]


def judge_shuffling(sides: Streams, shuffles: tuple[bool, bool]) -> list[Divergence]:
    """Of loaders whose samples cannot be found again: whether only one of them shuffles."""
    if shuffles[0] == shuffles[1]:
        return []
    moving, still = SIDES if shuffles[0] else SIDES[::-1]
    message = phrase(
        "the {moving} shuffles, the {still} does not", moving=side_name(moving), still=side_name(still)
    )
    fix = phrase("feed both sides one list of indices, or switch shuffling off on both")
    cause = Claim("data.order", message, fix).likely(Grounds.VALUES)
    return [divergence_of(sides, phrase("order: {how}", how=message), cause, np.inf)]


def _subset(sides: Streams, reading: DataReading) -> list[Divergence]:
    """As many samples of the same data: some of the port's are among the reference's, elsewhere."""
    common = find_common(*reading.signatures)
    if common is None:
        return []
    count = len(common.order)
    known = {at: place for place, at in enumerate(common.order) if at >= 0}
    if len(known) != sum(at >= 0 for at in common.order) or not OTHERS <= len(known) < count:
        return []
    if all(at == place for at, place in known.items()):  # the rest was changed, and not exchanged
        return []
    strange = [str(place) for place, at in enumerate(common.order) if at < 0]
    message = phrase(
        "the port gives other samples of the same data: {known} of its {count} are among the reference's, "
        "{strange} are not (samples {numbers})",
        known=len(known),
        count=count,
        strange=len(strange),
        numbers=some(strange),
    )
    fix = phrase("give both sides the same list of files in the same order (another split or subset?)")
    cause = Claim("data.subset", message, fix).likely(Grounds.VALUES)
    return [divergence_of(sides, phrase("samples: another subset"), cause, np.inf)]


def strangers(reading: DataReading, values: Sequence[Divergence]) -> list[Finding]:
    """Every field differs and nothing explains any, labels neither: these may be samples of other files."""
    unexplained = [each for each in values if each.cause is None]
    common = find_common(*reading.signatures)
    if len(reading.fields) < 2 or len(unexplained) < len(reading.fields) or common is None:
        return []
    if any(at >= 0 for at in common.order):
        return []
    message = phrase(
        "none of the port's {count} samples is among the reference's: see that both sides read the same "
        "files and the same split",
        count=len(common.order),
    )
    return [Finding("data.subset", message, diverged=True)]


def _shuffles(side: SampleStream) -> bool:
    """Whether the first samples are others when it is read again."""
    if side.by_index or side.once:
        return False
    passes = [[signature(sample) for _, sample in islice(side.samples(), 16)] for _ in range(2)]
    return any(a.shape != b.shape or not np.array_equal(a, b) for a, b in zip(*passes, strict=False))
