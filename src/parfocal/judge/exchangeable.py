"""Whether two sides draw from the same distributions, of whose shape nothing is known.

Each source is drawn several times by each side and every draw is measured by several statistics. If the
sides are alike, the draws of one source could change sides: a permutation test within the sources, of all
statistics together by the largest of them, so that their number costs no false alarm. Only ranks count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.judge import limits

ALIKE = limits.verdicts.RANDOM_ALIKE.value
UNLIKELY = limits.verdicts.RANDOM_DATA.value
FIRST, LAST = limits.searches.DRAW_PERMUTATIONS.value
PLAIN = limits.verdicts.RANDOM_PLAIN.value


@dataclass(frozen=True, slots=True)
class ExchangeTest:
    """``probability``: that draws of one distribution look so different or more, in whatever statistic."""

    probability: float
    worst: tuple[int, ...]  # the statistics, beginning with the one that differs most
    unlike: tuple[int, ...]  # those that differ more than any may by chance

    @property
    def differ(self) -> bool:
        return self.probability <= UNLIKELY


def exchange_test(ours: Array, theirs: Array, seed: int = 0) -> ExchangeTest:
    """Of arrays ``[source, draw, statistic]`` of the two sides."""
    scores = _scores(np.concatenate((ours, theirs), axis=1))
    count = ours.shape[1]
    generator = np.random.default_rng(seed)
    for permutations in (int(FIRST), int(LAST)):
        observed, drawn = _statistics(scores, count, permutations, generator)
        largest = drawn.max(axis=1, initial=-np.inf)
        chance = float(1 + (largest >= observed.max(initial=-np.inf)).sum()) / (1 + permutations)
        if chance > PLAIN:
            break
    limit = float(np.quantile(largest, 1 - UNLIKELY))
    by_statistic = observed.reshape(4, -1).max(axis=0)
    order = np.argsort(-by_statistic, kind="stable")
    unlike = tuple(int(at) for at in order if by_statistic[at] > limit)
    return ExchangeTest(chance, tuple(int(at) for at in order), unlike)


def _scores(pooled: Array) -> Array:
    """Ranks within each source about their middle, and how far from the middle: place and spread."""
    place = np.empty(pooled.shape)
    for source, draws in enumerate(pooled):
        for statistic in range(pooled.shape[2]):
            place[source, :, statistic] = _ranks(draws[:, statistic])
    place -= place.mean(axis=1, keepdims=True)
    spread = np.abs(place)
    return np.concatenate((place, spread - spread.mean(axis=1, keepdims=True)), axis=2)


def _ranks(values: Array) -> Array:
    """Those that lie closer than rounding tells apart share a rank."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    near = ALIKE * max(float(np.abs(values).max(initial=0.0)), 1e-12)
    groups = np.concatenate(([0], np.cumsum(np.diff(ordered) > near)))
    positions = np.arange(len(values), dtype=np.float64)
    means = np.bincount(groups, positions) / np.bincount(groups)
    found = np.empty(len(values))
    found[order] = means[groups]
    return found


def _statistics(
    scores: Array, count: int, permutations: int, generator: np.random.Generator
) -> tuple[Array, Array]:
    """As observed, and for draws dealt out at random: of each score, whether it is off in one direction
    over all sources, or in any direction in each.
    """
    pooled = scores.shape[1]
    along = np.zeros((permutations + 1, scores.shape[2]))
    any_way = np.zeros_like(along)
    variance = np.zeros(scores.shape[2])
    sources = np.zeros(scores.shape[2])
    for each in scores:
        chosen = np.zeros((permutations + 1, pooled))
        places = np.argsort(generator.random((permutations, pooled)), axis=1)[:, :count]
        np.put_along_axis(chosen[1:], places, 1.0, axis=1)
        chosen[0, :count] = 1.0
        sums = chosen @ each
        known = count * (pooled - count) / (pooled * (pooled - 1)) * (each**2).sum(axis=0)
        varies = known > 0
        along += sums
        any_way += sums**2 * np.where(varies, 1 / np.where(varies, known, 1.0), 0.0)
        variance += known
        sources += varies
    seen = sources > 0
    sources = np.where(seen, sources, 1.0)
    one_way = np.where(seen, np.abs(along) / np.sqrt(np.where(seen, variance, 1.0)), 0.0)
    # Wilson and Hilferty: the cube root of a chi-squared number is as good as normal
    spread = 2 / (9 * sources)
    every_way = np.where(seen, (np.cbrt(any_way / sources) - (1 - spread)) / np.sqrt(spread), 0.0)
    both = np.concatenate((one_way, every_way), axis=1)
    return both[0], both[1:]
