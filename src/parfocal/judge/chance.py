"""How far the means of several trainings may be apart by chance alone.

A training is a draw: other seeds give another result. Two things are known of the draw: how far repeated
trainings of one side lie apart, and, of a metric that is a mean over samples, how many samples answer
otherwise from training to training. What they allow is held at a rate of false alarms: the share of correct
ports that are farther apart all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy  # loads its parts when they are first used

from parfocal.backends.protocol import Array
from parfocal.judge import limits

MOST_RUNS = limits.searches.RUNS_TRIED.value
SPREADS = 2  # of both sides together, and of the reference alone: a port that varies more hides nothing


@dataclass(frozen=True, slots=True)
class Parts:
    """A metric on parts of the evaluation data, one row a training: their mean, by shares, is the metric."""

    shares: Array  # [part], which add up to 1
    reference: Array  # [training, part]
    port: Array


@dataclass(frozen=True, slots=True)
class Chance:
    """What chance explains of a difference of two means."""

    allowed: float | None  # None: nothing is known of it
    spread: float  # the standard deviation of one training, as far as it is known
    from_runs: bool  # whether trainings were repeated; else it is what the samples alone make


def chance_of(
    reference: Sequence[float], port: Sequence[float], parts: Parts | None, *, published: bool, alarms: float
) -> Chance:
    """``published``: the port is held against one published training; the reference shows the spread only."""
    flips = 0.0 if parts is None else _flips(parts)
    share = math.sqrt(1 / len(port) + (1.0 if published else 1 / len(reference)))
    grain = 0.0 if parts is None else _grain(parts) / len(port)
    found = [(max(spread, flips), freedom) for spread, freedom in _spreads(reference, port, alarms)]
    if not found:
        allowed = float(scipy.stats.norm.isf(alarms / 2)) * flips * share + grain if flips else None
        return Chance(allowed, flips, False)
    bounds = [_quantile(alarms, freedom) * spread for spread, freedom in found]
    return Chance(min(bounds) * share + grain, found[0][0], True)


def _spreads(reference: Sequence[float], port: Sequence[float], alarms: float) -> Iterator[tuple[float, int]]:
    """Standard deviations of one training, and their degrees of freedom: of both sides, of the reference.

    Results that are all the same say nothing of a coarse metric, unless dealing them so to two sides is as
    rare as an alarm.
    """
    squares = [
        float(np.square(np.asarray(side) - np.mean(side)).sum()) if np.ptp(side) else 0.0
        for side in (reference, port)
    ]
    freedoms = [len(side) - 1 for side in (reference, port)]
    deals = math.comb(len(reference) + len(port), len(port))
    if sum(freedoms) and (any(squares) or 2 / deals <= alarms):
        yield math.sqrt(sum(squares) / sum(freedoms)), sum(freedoms)
    if freedoms[0] and squares[0]:
        yield math.sqrt(squares[0] / freedoms[0]), freedoms[0]


@cache
def _quantile(alarms: float, freedom: int) -> float:
    """Student's, for each of the tests that are made at once and on both ends."""
    return float(scipy.stats.t.isf(alarms / (2 * SPREADS), freedom))


def _flips(parts: Parts) -> float:
    """The standard deviation of one training's metric, were samples to answer each for itself.

    Of repeated trainings of a side; of single ones as far as both sides differ (as McNemar's test has it).
    """
    sides = [side for side in (parts.reference, parts.port) if len(side) > 1]
    if sides:
        squares = sum(np.square(side - side.mean(0)).sum(0) for side in sides) / sum(
            len(side) - 1 for side in sides
        )
    else:
        squares = np.square(parts.reference[0] - parts.port[0]) / 2
    return float(math.sqrt((np.square(parts.shares) * squares).sum()))


def _grain(parts: Parts) -> float:
    """What the answer of one part more or less makes of the metric: no difference is finer."""
    values = np.concatenate([parts.reference, parts.port])
    return float(((values.max(0) - values.min(0)) * parts.shares).max())


def runs_that_decide(difference: float, spread: float, alarms: float, made: int = 1) -> int | None:
    """How many trainings a side, more than were made, show such a difference; None: none that is tried."""
    for runs in range(made + 1, MOST_RUNS + 1):
        if _quantile(alarms, 2 * runs - 2) * spread * math.sqrt(2 / runs) < abs(difference):
            return runs
    return None
