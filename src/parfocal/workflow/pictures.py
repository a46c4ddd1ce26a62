"""Pictures of errors in a report: few enough that it stays small, however much is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from parfocal.judge.verdict import Divergence

PICTURES = 16  # of errors that a report keeps


def with_few_pictures(divergences: Iterable[Divergence]) -> tuple[Divergence, ...]:
    """The first of them keep the picture of their error."""
    kept, told = 0, []
    for each in divergences:
        if each.error is not None and each.error.picture is not None:
            kept += 1
            if kept > PICTURES:
                each = replace(each, error=replace(each.error, picture=None))
        told.append(each)
    return tuple(told)
