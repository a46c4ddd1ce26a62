"""Learning rates of all steps: the same for every parameter, and if not, why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import some
from parfocal.explain.causes import number
from parfocal.explain.rates import RatePair, cause_of, distance, rounding
from parfocal.judge import limits
from parfocal.judge.floors import Size
from parfocal.judge.metrics import compare_arrays
from parfocal.judge.verdict import Cause, Claim, Divergence, Grounds, ProvenBy, Site
from parfocal.phrases import phrase
from parfocal.report.report import Curve

LIMIT = limits.verdicts.COMPUTED_ONCE.value
NAMED = 3  # parameters of a group
Noted = Sequence[tuple[dict[str, float], dict[str, float]]]  # by step: the reference's and the port's rates


def rate_differences(
    noted: Noted, names: tuple[str, str], *, given_number: bool, explain: bool
) -> Iterator[Divergence]:
    """One for each way in which rates of parameters part; the first step is where they do."""
    groups = _groups(noted)
    wrong = [(paths, ours, theirs) for paths, ours, theirs in groups if distance(theirs, ours) > LIMIT]
    total = sum(len(paths) for paths, _, _ in groups)
    everywhere = sum(len(paths) for paths, _, _ in wrong) == total and _uniform(wrong)
    for paths, ours, theirs in wrong[:1] if everywhere else wrong:
        floor = rounding(ours)
        apart = np.flatnonzero(~(np.abs(theirs - ours) <= LIMIT * floor))
        first = int(apart[0])
        where = "" if everywhere else phrase(" of {paths}", paths=some(paths, NAMED))
        cause = None
        if explain:
            cause = (
                cause_of(RatePair(ours, theirs, given_number), LIMIT) or _other(ours, theirs, first)
                if everywhere
                else _of_group(paths, ours, theirs, first)
            )
        yield Divergence(
            "lr",
            Site("" if everywhere else paths[0], names[0]),
            Site("" if everywhere else paths[0], names[1]),
            phrase(
                "learning rate{where}: {reference} in the reference, {port} in the port; {wrong} of "
                "{count} steps differ",
                where=where,
                reference=f"{ours[first]:.7g}",
                port=f"{theirs[first]:.7g}",
                wrong=len(apart),
                count=len(ours),
            ),
            compare_arrays(theirs, ours),
            Size(float(floor.mean()), float(floor.max())),
            distance(theirs, ours),
            cause=cause,
            step=first,
        )


def rate_curves(noted: Noted) -> tuple[Curve, ...]:
    groups = _groups(noted)
    return tuple(
        Curve(
            "learning rate" if len(groups) == 1 else f"learning rate of {some(paths, NAMED)}",
            tuple(map(float, ours)),
            tuple(map(float, theirs)),
        )
        for paths, ours, theirs in groups
    )


def _groups(noted: Noted) -> list[tuple[list[str], Array, Array]]:
    """Parameters that have the same two curves, together."""
    found: dict[tuple[bytes, bytes], tuple[list[str], Array, Array]] = {}
    paths = [path for path in (noted[0][0] if noted else {}) if all(path in ours for ours, _ in noted)]
    for path in paths:
        curves = [np.array([sides[at][path] for sides in noted]) for at in (0, 1)]
        key = curves[0].tobytes(), curves[1].tobytes()
        found.setdefault(key, ([], curves[0], curves[1]))[0].append(path)
    return list(found.values())


def _uniform(wrong: Sequence[tuple[list[str], Array, Array]]) -> bool:
    """Whether all rates part by the same factor, step by step: that is the rate, and no group of its own."""
    if len(wrong) == 1:
        return True
    ratios = [theirs / np.where(ours == 0, 1.0, ours) for _, ours, theirs in wrong]
    return all(np.allclose(each, ratios[0], rtol=1e-5) for each in ratios[1:])


def _of_group(paths: Sequence[str], ours: Array, theirs: Array, first: int) -> Cause:
    right, wrong = float(ours[first]), float(theirs[first])
    message = phrase(
        "the learning rate of {paths} is {reference} in the reference and {port} in the port; "
        "that of other parameters agrees",
        paths=some(list(paths), NAMED),
        reference=number(right),
        port=number(wrong),
    )
    factor = phrase(", {right} times what it is", right=number(right / wrong)) if wrong else ""
    fix = phrase(
        "give these parameters a rate of {port} in the port{factor}: a group's rate may be a "
        "factor on the optimizer's own, not a rate",
        port=number(right),
        factor=factor,
    )
    claim = Claim("optim.lr_group", message, fix)
    after = distance(theirs, ours * (wrong / right)) if right else np.inf
    return claim.judged(ProvenBy.RELATED, distance(theirs, ours), after, LIMIT, Grounds.VALUES)


def _other(ours: Array, theirs: Array, first: int) -> Cause:
    message = phrase(
        "from step {first} on the learning rate is {reference} in the reference and {port} in the port",
        first=first,
        reference=number(float(ours[first])),
        port=number(float(theirs[first])),
    )
    fix = phrase("make the port's learning rate {ours} there", ours=number(float(ours[first])))
    return Claim("lr.value", message, fix).likely(Grounds.VALUES)
