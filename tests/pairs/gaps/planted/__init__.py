"""Every difference of losses, initial values, optimizers, schedules, data and metrics, as a port has it.

One file a family, one entry or several a row: the difference planted, what is to be found, and the twin.
"""

from __future__ import annotations

from tests.pairs.gaps.planted import data, initialisation, losses, optimizers, schedules
from tests.pairs.gaps.planted.row import Planted

ROWS: dict[str, Planted] = {
    name: row
    for family in (losses, initialisation, optimizers, schedules, data)
    for name, row in family.ROWS.items()
}
