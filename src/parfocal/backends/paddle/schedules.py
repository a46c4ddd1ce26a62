"""Tier 3 for PaddlePaddle: learning rates as an update reads them, and schedules stepped without a trace."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parfocal.backends.paddle.training import Training


class Scheduling(Training):
    """What ``SchedulingBackend`` asks for. Paddle's schedulers do not know their optimizers."""

    def optimizer_rates(self, optimizer: Any) -> list[float]:
        factors = [
            group.get("learning_rate", 1.0) if isinstance(group, dict) else 1.0
            for group in optimizer._param_groups
        ]
        base = self.learning_rate(optimizer) / (factors[0] if factors[0] else 1.0)
        distinct = factors if isinstance(optimizer._param_groups[0], dict) else factors[:1]
        return [base * float(factor) for factor in distinct]

    def schedule_rates(self, scheduler: Any) -> list[float]:
        return [float(scheduler())]

    def scheduler_of(self, optimizer: Any) -> Any | None:
        rate = optimizer._learning_rate
        return rate if self.is_scheduler(rate) else None

    def optimizer_of(self, scheduler: Any) -> Any | None:
        return None

    def schedule_state(self, scheduler: Any) -> Any:
        chain = [scheduler]
        while self.is_scheduler(inner := getattr(chain[-1], "learning_rate", None)):
            chain.append(inner)  # a warm-up has the schedule that follows inside
        return [(each, self._own_state(each)) for each in chain]

    def _own_state(self, scheduler: Any) -> dict[str, Any]:
        return {
            key: value if self.is_scheduler(value) else copy.deepcopy(value)
            for key, value in vars(scheduler).items()
        }

    def set_schedule_state(self, scheduler: Any, state: Any) -> None:
        for each, values in state:
            vars(each).clear()
            vars(each).update(values)

    @contextmanager
    def schedule_kept(self, scheduler: Any) -> Iterator[None]:
        before = self.schedule_state(scheduler)
        try:
            yield
        finally:
            self.set_schedule_state(scheduler, before)
