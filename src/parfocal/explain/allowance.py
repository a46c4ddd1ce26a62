"""How long causes are searched for, in multiples of the work of the alignment itself.

Work is counted in calls (``replay.effort``), so that the result does not depend on the machine. Two shares
limit it: past the first, no better fix is sought for a cause that has one; past the second, the search stops.
"""

from __future__ import annotations

from parfocal.judge import limits
from parfocal.replay.effort import Effort

THOROUGH = "thorough"  # says that the search may be as much work as it takes
SHARES = limits.searches.WORK_SHARES.value
SEARCH = limits.searches.READING_WORK.value


class Allowance:
    """The limit for one open alignment, by its counter ``effort``; with ``thorough`` there is none."""

    def __init__(self, effort: Effort, *, thorough: bool = False) -> None:
        self.thorough = thorough
        self.effort = effort
        self.own = effort.spent
        self.left: list[str] = []  # paths whose search was cut off or never begun

    @property
    def share(self) -> float:
        """The work of the search so far, as a multiple of the alignment's own."""
        return (self.effort.spent - self.own) / self.own if self.own else 0.0

    def begin(self, path: str) -> bool:
        """Whether there is room for one more search; where not, it is noted."""
        if self.is_used_up:
            self.cut(path)
            return False
        self.effort.charge(SEARCH)
        return True

    @property
    def has_room(self) -> bool:
        """Whether there is room to look for a better answer than the one found."""
        return self.thorough or self.share < SHARES[0]

    @property
    def is_used_up(self) -> bool:
        """Whether a search that is under way must stop."""
        return not self.thorough and self.share >= SHARES[1]

    def cut(self, path: str) -> None:
        if path not in self.left:
            self.left.append(path)
