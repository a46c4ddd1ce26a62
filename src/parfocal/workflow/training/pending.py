"""The batches of the next steps: read ahead as far as a stretch needs them, within bounds of memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from parfocal.workflow.training.batches import Batch, arrays_of

HELD = 1 << 27  # bytes of batches that are held at most

Group = Sequence[tuple[Batch, Batch]]  # of one step


@dataclass(slots=True)
class Pending:
    """Groups that were read and not used up yet, and where more come from."""

    source: Iterator[Group]
    waiting: list[Group] = field(default_factory=list)
    problem: Exception | None = None  # that reading ended with

    def take(self, count: int) -> list[Group]:
        """So many, or fewer at the end. A problem is raised once all that was read before it is used up."""
        held = sum(map(_bytes, self.waiting))
        while len(self.waiting) < count and self.problem is None and held < HELD:
            try:
                self.waiting.append(next(self.source))
                held += _bytes(self.waiting[-1])
            except StopIteration:
                break
            except Exception as problem:  # noqa: BLE001  raised below
                self.problem = problem
        if not self.waiting and self.problem is not None:
            raise self.problem
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        return taken

    def put_back(self, groups: Sequence[Group]) -> None:
        self.waiting = [*groups, *self.waiting]


def _bytes(group: Group) -> int:
    """What the inputs of one group take."""
    return sum(array.nbytes for pair in group for each in pair for array in arrays_of(each.inputs))
