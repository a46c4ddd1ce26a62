"""The register of numbers: every one that decides a verdict or a cause, with its reason.

A number that bounds, accepts or ends something is an entry here and nowhere else; the module that uses it
takes its value (``LIMIT = limits.verdicts.CALL.value``). ``docs/limits.md`` is made from these tables.
"""

from __future__ import annotations

from types import ModuleType

from parfocal.judge.limits import causes, pairing, recorded, searches, transfer, verdicts
from parfocal.judge.limits.entry import Limit

__all__ = ["TABLES", "Limit", "causes", "entries", "pairing", "recorded", "searches", "transfer", "verdicts"]

TABLES = (verdicts, pairing, causes, searches, recorded, transfer)


def entries(table: ModuleType) -> dict[str, Limit[float] | Limit[tuple[float, ...]]]:
    """The numbers of one table by name, in the order they are written."""
    return {name: value for name, value in vars(table).items() if isinstance(value, Limit)}
