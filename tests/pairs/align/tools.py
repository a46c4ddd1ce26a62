"""Aligning a bundled pair, as it is or with something done to its port."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from examples.pairs import PAIRS

from parfocal.report.report import Report
from parfocal.workflow.align import align


def run(name: str, mode: str, seed: int = 0, change: Callable[[Any], object] | None = None) -> Report:
    """The report on a pair whose port was changed before its weights were filled."""
    pair = PAIRS[name]
    port = pair.port(seed)
    if change is not None:
        change(port)
    return align(pair.reference(seed), port, pair.inputs(seed), loss=pair.loss, mode=mode, explain=False)


def blamed(report: Report) -> list[str | None]:
    """The port's layers that are wrong by themselves, in the order in which they are named."""
    own = [each for each in report.divergences if not each.inherited]
    return list(dict.fromkeys(each.port.path if each.port else None for each in own))
