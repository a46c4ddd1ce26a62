"""Where a recording stands: the step, the backward pass within it, and what the step adds up to."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from parfocal.run.records import StepRecord


@dataclass(slots=True)
class Steps:
    """The step that is under way. ``backward`` is -1 until its first backward pass begins."""

    step: int = 0
    backward: int = -1
    going_back: bool = False  # inside a backward pass
    begun: bool = False  # whether anything happened yet
    loss: float | None = None
    learning_rate: float | None = None
    gradient_norm: float | None = None
    update_norm: float | None = None
    _occurrences: Counter[tuple[str, str | None]] = field(default_factory=Counter)

    def occurrence(self, path: str, op: str | None = None) -> int:
        """Which call of this path this is, counted from 0 in every step."""
        number = self._occurrences[path, op]
        self._occurrences[path, op] = number + 1
        return number

    def begin_backward(self, loss: float | None) -> None:
        """A backward pass begins; the losses of a step's passes add up, as their gradients do."""
        self.backward += 1
        self.going_back = True
        if loss is not None:
            self.loss = loss if self.loss is None else self.loss + loss

    def norm(self, sums_of_squares: list[float]) -> None:
        """The norm of all parameters' gradients after the latest backward pass."""
        self.gradient_norm = math.sqrt(math.fsum(sums_of_squares)) if sums_of_squares else None

    def finish(self, rank: int) -> StepRecord:
        """The record of this step; the next one begins."""
        record = StepRecord(
            self.step, self.loss, self.learning_rate, self.gradient_norm, rank, self.update_norm
        )
        self.step += 1
        self.backward = -1
        self.begun = False
        self.loss = self.learning_rate = self.gradient_norm = self.update_norm = None
        self._occurrences.clear()
        return record
