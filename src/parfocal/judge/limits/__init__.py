"""The register of numbers: every one that decides a verdict or a cause.

A number that bounds, accepts or ends something is an entry here and nowhere else; the module that uses it
takes its value (``LIMIT = limits.verdicts.CALL.value``). Why it is that number, and where that was measured,
stands under the same names in ``parfocal/data/limits.toml``. ``docs/limits.md`` is made from both.
"""

from __future__ import annotations

from collections.abc import Mapping

from parfocal.judge.limits import causes, pairing, recorded, searches, transfer, verdicts
from parfocal.judge.limits.entry import Limit

__all__ = ["Limit", "causes", "pairing", "recorded", "searches", "tables", "transfer", "verdicts"]


def tables() -> Mapping[str, Mapping[str, Limit[float] | Limit[tuple[float, ...]]]]:
    """The numbers of every table by name, in the order they are written."""
    modules = (verdicts, pairing, causes, searches, recorded, transfer)
    return {
        module.__name__.rpartition(".")[2]: {
            name: value for name, value in vars(module).items() if isinstance(value, Limit)
        }
        for module in modules
    }
