"""What torch and paddle do differently, as a table: one entry a difference, one file a family.

The facts hold for torch 2.13 and paddle 3.3 on a CPU. No framework is imported. A new difference is one
entry in the file of its family and, where it can be run, one check in ``tests/pairs/gaps``.
"""

from __future__ import annotations

from dataclasses import replace

from parfocal.backends.gaps import (
    activations,
    data,
    initialisation,
    losses,
    normalisation,
    optimizers,
    parameters,
    schedules,
    sequences,
    tensors,
    windows,
)
from parfocal.backends.gaps.entry import Gap, Wording
from parfocal.locale.zh.gaps import GAPS as _CHINESE

_FAMILIES = (
    *(parameters, normalisation, windows, activations, losses, sequences),
    *(initialisation, optimizers, schedules, tensors, data),
)


def _in_both_languages(gap: Gap) -> Gap:
    words = _CHINESE.get(gap.id)
    return gap if words is None else replace(gap, chinese=Wording(*words))


GAPS: tuple[Gap, ...] = tuple(_in_both_languages(gap) for family in _FAMILIES for gap in family.GAPS)


def gaps_of(*names: str) -> list[Gap]:
    """The differences that concern any of these dotted names, in the order of the table."""
    return [gap for gap in GAPS if not set(gap.names).isdisjoint(names)]
