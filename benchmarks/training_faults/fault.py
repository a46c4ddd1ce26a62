"""A planted mistake: the wrong comparison, the right one, and what is to be said of the wrong one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from parfocal.report.report import Report

Compare = Callable[[int], Report]  # from a seed


@dataclass(frozen=True)
class Fault:
    """``codes``: any of them is right. ``phase`` and ``step``: of the first difference."""

    family: str
    name: str
    wrong: Compare
    right: tuple[str, Compare]  # the clean twin, by its name: faults share twins
    codes: tuple[str, ...]
    phase: str
    step: int = 0
