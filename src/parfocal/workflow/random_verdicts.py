"""Whether samples that change when they are read again do so alike on both sides, and if not, why.

Given the same random numbers both sides must give the same samples: then nothing is left to chance. Where
their numbers cannot be had from one source, or are used in another order, the distributions of what the
changes did are compared by a permutation test. What differs is explained from the draws and from pictures
that show the same part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.capture.shared_draws import Draw, Keyed
from parfocal.explain.draw_statistics import (
    WORDS,
    as_table,
    channel_claims,
    plane_without_colours,
    words_of_statistic,
)
from parfocal.explain.sample_values import Pairs, apart
from parfocal.explain.samples import cause_of
from parfocal.judge import limits
from parfocal.judge.exchangeable import ExchangeTest, exchange_test
from parfocal.judge.verdict import SIDES, Cause, Claim, Grounds, side_name
from parfocal.phrases import joined, phrase
from parfocal.workflow.random_samples import FLIPS, Coin, RandomSide, flipped
from parfocal.workflow.step_settings import leaves_open, setting_causes

LIMIT = limits.verdicts.COMPUTED_ONCE.value
SHARED = limits.verdicts.SHARED_ALIKE.value
SAME_PICTURE = limits.causes.ALIKE_PICTURES.value
LIKELY = limits.verdicts.RANDOM_EXPLAINED.value
SAME_SHARE = limits.verdicts.SAME_PROBABILITY.value
Sides = tuple[RandomSide, RandomSide]

STEPS: dict[str, str] = {
    "across": phrase("left and right are exchanged"),
    "down": phrase("top and bottom are exchanged"),
    "both": phrase("the picture is turned by 180 degrees"),
    "": phrase("a step is taken"),
}


@dataclass(frozen=True, slots=True)
class RandomVerdict:
    """What is said of one field whose samples change."""

    name: str
    said: str  # of the change itself
    causes: tuple[Cause | None, ...] = ()  # one for each divergence; none: all is well
    what: str = ""
    score: float = 0.0  # how much more unlikely than what is allowed


def judge_random(sides: Sides, name: str) -> RandomVerdict:
    by = [
        phrase("{side}: {steps}", side=side_name(each), steps=some(side.by))
        for each, side in zip(SIDES, sides, strict=True)
        if side.by
    ]
    drawn = phrase(" (drawn by {steps})", steps=joined("; ", by)) if by else ""
    shared = _shared_samples(sides, name)
    if shared is not None and shared.alike >= SHARED:
        said = phrase(
            "field {name} is random{drawn}: given the same random numbers, {alike} of {count} samples are "
            "the same on both sides",
            name=name,
            drawn=drawn,
            alike=round(shared.alike * len(shared.pairs)),
            count=len(shared.pairs),
        )
        return RandomVerdict(name, said)
    still = [side for side in (0, 1) if name not in sides[side].changing]
    if still:
        return _one_sided(sides, name, still[0])
    names, tables = _tables(sides, name)
    test = exchange_test(*tables)
    causes = tuple(_causes(sides, shared, test, names, tables))
    if (causes or test.differ) and all(leaves_open(each) for each in causes):
        causes = tuple(setting_causes(sides[0].settings, sides[1].settings)) or causes
    said = phrase(
        "field {name} is random{drawn}: its distribution over {draws} draws of {count} samples each is "
        "compared, by {statistics} statistics together (chance {chance} that equal sides differ so)",
        name=name,
        drawn=drawn,
        draws=tables[0].shape[1],
        count=tables[0].shape[0],
        statistics=len(names),
        chance=f"{test.probability:.2g}",
    )
    what = phrase("field {name}: random changes differ", name=name)
    if test.differ:
        what = phrase(
            "field {name}: the distributions differ: {which}", name=name, which=_figures(test, names, tables)
        )
    told: tuple[Cause | None, ...] = causes or ((None,) if test.differ else ())
    return RandomVerdict(name, said, told, what, np.inf if told else 0.0)


def _tables(sides: Sides, name: str) -> tuple[list[str], tuple[Array, Array]]:
    tables = [as_table(side.statistics[name]) for side in sides]
    names = [each for each in tables[0][0] if each in tables[1][0]]
    count = min(len(values) for _, values in tables)
    ours, theirs = (
        values[:count][..., [all_names.index(each) for each in names]] for all_names, values in tables
    )
    return names, (ours, theirs)


@dataclass(frozen=True, slots=True)
class SharedSamples:
    """Samples of both sides that were given the same random numbers."""

    pairs: Pairs
    alike: float  # share of them that are equal
    turned: tuple[str | None, ...]  # how the reference's must be mirrored to be the port's; None: unlike
    draws: tuple[list[list[Draw]], list[list[Draw]]]

    @property
    def same_part(self) -> Pairs | None:
        """The pairs, the reference's mirrored as the port's; None unless nearly all show the same part."""
        known = [
            (flipped(ours, how), theirs)
            for (ours, theirs), how in zip(self.pairs, self.turned, strict=True)
            if how is not None
        ]
        return known if known and len(known) >= SHARED * len(self.pairs) else None


def _shared_samples(sides: Sides, name: str) -> SharedSamples | None:
    """Of the ways of sharing numbers that which makes the most samples equal, or at least like each other."""
    found = []
    for keyed in Keyed:
        each = [side.shared.get(keyed.value, []) for side in sides]
        pairs = [(a[name], b[name]) for a, b in zip(*each, strict=False) if name in a and name in b]
        ours, theirs = (side.draws.get(keyed.value, []) for side in sides)
        if pairs and any(ours) and any(theirs):
            alike = float(np.mean([apart(a, b) <= LIMIT for a, b in pairs]))
            found.append(SharedSamples(pairs, alike, tuple(_turned(*pair) for pair in pairs), (ours, theirs)))
    return max(found, key=lambda each: (each.alike, -each.turned.count(None)), default=None)


def _one_sided(sides: Sides, name: str, still: int) -> RandomVerdict:
    moving = 1 - still
    message = phrase(
        "field {name} changes when the samples of the {moving} are read again, and never in the {still}",
        name=name,
        moving=side_name(SIDES[moving]),
        still=side_name(SIDES[still]),
    )
    steps = some(sides[moving].by) if sides[moving].by else phrase("what draws at random")
    fix = (
        phrase("apply the reference's random steps in the port: {steps}", steps=steps)
        if still
        else phrase("take the random steps out of the port: {steps}", steps=steps)
    )
    cause = Claim("data.random", message, fix).likely(Grounds.VALUES)
    return RandomVerdict(
        name, message, (cause,), phrase("field {name}: random on one side", name=name), np.inf
    )


def _figures(test: ExchangeTest, names: Sequence[str], tables: tuple[Array, Array]) -> str:
    """The statistics that differ most, with where most of their values lie."""
    told: dict[str, str] = {}
    count = len(names)
    order = list(WORDS.values())
    unlike = {at % count for at in test.unlike or test.worst[:1]}
    for at in sorted(unlike, key=lambda each: order.index(words_of_statistic(names[each]))):
        ranges = [
            " .. ".join(f"{each:.3g}" for each in np.quantile(table[..., at], (0.05, 0.95)))
            for table in tables
        ]
        told.setdefault(
            words_of_statistic(names[at]),
            phrase(
                "{statistic} lies in {reference} in the reference, in {port} in the port",
                statistic=words_of_statistic(names[at]),
                reference=ranges[0],
                port=ranges[1],
            ),
        )
    return some(list(told.values()), 3)


def _causes(
    sides: Sides,
    shared: SharedSamples | None,
    test: ExchangeTest,
    names: Sequence[str],
    tables: tuple[Array, Array],
) -> Iterator[Cause]:
    oriented = None if shared is None else shared.same_part
    values = None
    if oriented is not None:
        unequal = [each for each in oriented if apart(*each) > LIMIT]
        equal = [each for each in oriented if apart(*each) <= LIMIT]
        values = cause_of(unequal, LIMIT, equal) if unequal else None
    coins = [] if shared is None else list(_coin_claims(sides, shared))
    steps = [] if shared is None else list(_step_claims(sides, test.differ and not coins))
    if values is not None and (values.proof is not None or (not steps and _draw_alike(sides))):
        yield values
    for claim in dict.fromkeys((*coins, *steps)):
        yield claim.likely(Grounds.VALUES)
    if values is None and test.differ and not (oriented is not None and (coins or steps)):
        explained = (
            each.claim.likely(Grounds.VALUES)
            for each in channel_claims(names, *tables)
            if exchange_test(each.ours, each.theirs).probability > LIKELY
        )
        yield from islice(explained, 1)


def _draw_alike(sides: Sides) -> bool:
    """Whether both sides draw single numbers from the same ranges: samples of equal numbers differ for
    another reason then. Arrays of noise may lie otherwise, and make their samples differ by themselves.
    """
    draws = [side.draws[Keyed.TURN.value] for side in sides]
    ours, theirs = (sorted(_steady(of)) for of in draws)
    noise = any(not draw.single and draw.kind != "order" for of in draws for each in of for draw in each)
    return ours == theirs and not noise


def _turned(ours: Array, theirs: Array) -> str | None:
    """How the reference's picture must be mirrored to be the port's; None: they show different things."""
    mine, other = (plane_without_colours(each) for each in (ours, theirs))
    if mine.shape != other.shape or mine.size < 2:
        return None
    for effect in ("", *FLIPS):
        axes = FLIPS.get(effect, ())
        a, b = np.flip(mine, axes).reshape(-1), other.reshape(-1)
        if a.std() > 0 and b.std() > 0 and abs(float(np.corrcoef(a, b)[0, 1])) > SAME_PICTURE:
            return effect
    return None


def _step_claims(sides: Sides, differ: bool) -> Iterator[Claim]:
    """What the draws themselves say: other ranges and, if the distributions differ, other steps."""
    draws = [side.draws[Keyed.TURN.value] for side in sides]
    steady = [_steady(of) for of in draws]
    only = [[each for each in mine if each not in other] for mine, other in (steady, steady[::-1])]
    if len(only[0]) == len(only[1]) > 0:
        for ours, theirs in zip(
            *(_with_names(of, each) for of, each in zip(draws, only, strict=True)), strict=True
        ):
            yield _other_range(ours, theirs)
        return
    if not differ:
        return
    missing = [list((Counter(mine) - Counter(other)).elements()) for mine, other in (steady, steady[::-1])]
    for side, of in enumerate(missing):
        for by in dict.fromkeys(each.by for each in _with_names(draws[side], of)):
            yield _missing_step(side, by)
    if not any(missing) and steady[0] != steady[1] and not any(each[0] == "order" for each in steady[0]):
        orders = [
            some([each.by for each in _with_names(of, mine)]) for of, mine in zip(draws, steady, strict=True)
        ]
        message = phrase(
            "random steps come in another order: {reference} in the reference, {port} in the port",
            reference=orders[0],
            port=orders[1],
        )
        yield Claim("data.random", message, phrase("put the port's steps in the reference's order"))


def _steady(draws: Sequence[Sequence[Draw]]) -> list[tuple[str, float, float]]:
    """The ranges that are drawn from in every sample, in order, as often as in the sample with the fewest."""
    counts = [Counter(draw.range for draw in of) for of in draws]
    least = {each: min(count[each] for count in counts) for each in counts[0]}
    found: list[tuple[str, float, float]] = []
    for draw in draws[0]:
        if found.count(draw.range) < least[draw.range]:
            found.append(draw.range)
    return found


def _with_names(draws: Sequence[Sequence[Draw]], ranges: Sequence[tuple[str, float, float]]) -> list[Draw]:
    """Draws of the first sample that have these ranges."""
    left, found = Counter(ranges), []
    for draw in draws[0]:
        if left[draw.range] > 0:
            left[draw.range] -= 1
            found.append(draw)
    return found


def _range_words(draw: Draw) -> str:
    if draw.kind == "normal":
        return phrase(
            "normal numbers of mean {mean} and spread {spread}", mean=draw.range[1], spread=draw.range[2]
        )
    if draw.kind == "whole":
        return phrase("whole numbers from {low} to {high}", low=int(draw.low), high=int(draw.high) - 1)
    if draw.kind == "order":
        return phrase("an order of {count}", count=int(draw.high))
    return phrase("numbers from {low} to {high}", low=f"{draw.low:.4g}", high=f"{draw.high:.4g}")


def _other_range(ours: Draw, theirs: Draw) -> Claim:
    message = phrase(
        "{reference_step} of the reference draws {reference}, {port_step} of the port {port}",
        reference_step=ours.by,
        reference=_range_words(ours),
        port_step=theirs.by,
        port=_range_words(theirs),
    )
    fix = phrase("let {step} of the port draw {range}", step=theirs.by, range=_range_words(ours))
    return Claim("data.random", message, fix)


def _missing_step(side: int, by: str) -> Claim:
    message = phrase(
        "{step} of the {side} draws random numbers that the {other} does not draw",
        step=by,
        side=side_name(SIDES[side]),
        other=side_name(SIDES[1 - side]),
    )
    fix = (
        phrase("give the port a step like {step}", step=by)
        if side == 0
        else phrase("take {step} out of the port", step=by)
    )
    return Claim("data.random", message, fix)


def _coin_claims(sides: Sides, shared: SharedSamples) -> Iterator[Claim]:
    """Steps that are taken with another probability; one that is always or never taken is no coin."""
    for effect in STEPS:
        coins = [[each for each in side.coins if each.effect == effect] for side in sides]
        for at in range(max(map(len, coins))):
            ours, theirs = (of[at] if at < len(of) else None for of in coins)
            shares = [
                _share_without(shared, other, side) if coin is None else coin.share
                for side, coin, other in ((0, ours, theirs), (1, theirs, ours))
            ]
            if shares[0] is not None and shares[1] is not None and abs(shares[0] - shares[1]) > SAME_SHARE:
                coin = ours or theirs
                assert coin is not None
                yield _other_share((shares[0], shares[1]), coin)


def _share_without(shared: SharedSamples, coin: Coin | None, side: int) -> float | None:
    """How often a side flips that does so by no coin: against the other, of which each flip is known."""
    if coin is None or not coin.effect or None in shared.turned:
        return None
    numbers = [coin.number(of) for of in shared.draws[1 - side]]
    if None in numbers:
        return None
    flips = [
        (number < coin.share) != (how in (coin.effect, "both"))
        for number, how in zip(numbers, shared.turned, strict=True)
        if number is not None
    ]
    return float(np.mean(flips))


def _other_share(shares: tuple[float, float], coin: Coin) -> Claim:
    message = phrase(
        "{step} in {reference} of the reference's samples and in {port} of the port's ({by})",
        step=STEPS[coin.effect],
        reference=f"{shares[0]:.0%}",
        port=f"{shares[1]:.0%}",
        by=coin.by,
    )
    fix = phrase("let the port do so with probability {share}, as the reference", share=f"{shares[0]:.3g}")
    return Claim("data.random", message, fix)
