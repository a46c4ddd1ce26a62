"""What every framework answers in the same way about a step of an optimizer or a scheduler.

A backend names the classes; which of them need a closure or a metric for a step follows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from parfocal.backends.checks import check_closure, check_plateau


class OptimizerSteps:
    """The part of ``TrainingBackend`` that needs no more than these classes."""

    optimizer_class: ClassVar[Any]
    scheduler_class: ClassVar[Any]
    closure_optimizer: ClassVar[Any]  # computes the loss itself, several times a step
    metric_scheduler: ClassVar[Any]  # goes on by what a metric does

    def is_optimizer(self, value: object) -> bool:
        return isinstance(value, self.optimizer_class)

    def is_scheduler(self, value: object) -> bool:
        return isinstance(value, self.scheduler_class)

    def optimizer_step(self, optimizer: Any, closure: Callable[[], Any] | None = None) -> None:
        if self.needs_closure(optimizer):
            optimizer.step(check_closure(closure))
        else:
            optimizer.step()

    def needs_closure(self, optimizer: Any) -> bool:
        return isinstance(optimizer, self.closure_optimizer)

    def scheduler_step(self, scheduler: Any, metric: float | None = None) -> None:
        if self.needs_metric(scheduler):
            scheduler.step(check_plateau(metric))
        else:
            scheduler.step()

    def needs_metric(self, scheduler: Any) -> bool:
        return isinstance(scheduler, self.metric_scheduler)
