"""Arrays that repeated calls gave, held for the next question about the same calls.

What was asked for longest ago goes first once a limit is passed, and is computed again if it is
wanted after all: so memory is bounded whatever is asked.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from parfocal.backends.protocol import Array
from parfocal.replay.repeat import Place

What = Place | str  # a place of a call, or the path of a parameter: its gradient


class Repetition(NamedTuple):
    """How calls are repeated."""

    how: str
    port: bool = False  # the port's calls; otherwise the reference's
    trial: int = 0  # which of several


Question = tuple[Repetition, tuple[int, ...]]  # how what calls are repeated


class HeldArrays:
    """``limit``: bytes held at most, but for a single array that was asked for."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._arrays: OrderedDict[Question, dict[What, Array]] = OrderedDict()
        self._sizes: dict[Question, int] = {}  # bytes of each answer
        self._bytes = 0

    def get(self, question: Question) -> dict[What, Array]:
        """What is at hand of an answer; all of it, some of it or nothing."""
        if question not in self._arrays:
            return {}
        self._arrays.move_to_end(question)
        return self._arrays[question]

    def put(self, question: Question, what: What, array: Array, wanted: What) -> None:
        """Hold a copy; one that was not ``wanted`` only where the answer as a whole fits."""
        answer = self._arrays.setdefault(question, {})
        self._arrays.move_to_end(question)
        if what in answer:
            self._count(question, -answer.pop(what).nbytes)
        if self._sizes.get(question, 0) + array.nbytes > self.limit and what != wanted:
            return
        answer[what] = array.copy()
        self._count(question, array.nbytes)
        self._make_room(wanted)

    def _make_room(self, wanted: What) -> None:
        while self._bytes > self.limit and len(self._arrays) > 1:
            oldest, _ = self._arrays.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)
        if self._bytes <= self.limit:
            return
        question, last = next(reversed(self._arrays.items()))
        for what in [each for each in last if each != wanted]:
            if self._bytes <= self.limit:
                break
            self._count(question, -last.pop(what).nbytes)

    def _count(self, question: Question, nbytes: int) -> None:
        self._sizes[question] = self._sizes.get(question, 0) + nbytes
        self._bytes += nbytes
