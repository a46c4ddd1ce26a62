"""Divergences put together by what is to be mended: one mistake, however many places it shows in."""

from __future__ import annotations

from collections.abc import Sequence

from parfocal.judge.verdict import Divergence
from parfocal.report.wording import place_of


def by_mistake(divergences: Sequence[Divergence]) -> list[list[Divergence]]:
    """Together what is the same mistake wherever it is, or the same tensor of a layer in several calls."""
    groups: dict[object, list[Divergence]] = {}
    for each in divergences:
        groups.setdefault(_mistake(each), []).append(each)
    return list(groups.values())


def own_mistakes(divergences: Sequence[Divergence]) -> list[list[Divergence]]:
    """The mistakes that follow from no other."""
    return by_mistake([each for each in divergences if not each.inherited] or divergences[:1])


def _mistake(divergence: Divergence) -> object:
    """What is to be mended. Whatever is wrong with weights, copying them is one thing to do."""
    if divergence.cause is None:
        return divergence.phase, place_of(divergence), divergence.what
    return divergence.cause.fix if divergence.phase == "weights" else divergence.cause.mistake
