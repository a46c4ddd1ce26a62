"""Tier 3 for PyTorch: learning rates as an update reads them, and schedules stepped without a trace."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from parfocal.backends.torch.training import Training, rate_of


class Scheduling(Training):
    """What ``SchedulingBackend`` asks for. PyTorch's optimizers do not know their schedulers."""

    def optimizer_rates(self, optimizer: Any) -> list[float]:
        kind = self.optimizer_kind(optimizer)
        return [rate_of(kind, optimizer, group, group["params"][0]) for group in optimizer.param_groups]

    def schedule_rates(self, scheduler: Any) -> list[float]:
        return [float(group["lr"]) for group in scheduler.optimizer.param_groups]

    def scheduler_of(self, optimizer: Any) -> Any | None:
        return None

    def optimizer_of(self, scheduler: Any) -> Any | None:
        return scheduler.optimizer

    def schedule_state(self, scheduler: Any) -> Any:
        groups = [
            copy.deepcopy({key: value for key, value in group.items() if key != "params"})
            for group in scheduler.optimizer.param_groups
        ]
        return copy.deepcopy(scheduler.state_dict()), groups

    def set_schedule_state(self, scheduler: Any, state: Any) -> None:
        own, groups = state
        scheduler.load_state_dict(own)
        for group, values in zip(scheduler.optimizer.param_groups, groups, strict=True):
            group.update(values)

    @contextmanager
    def schedule_kept(self, scheduler: Any) -> Iterator[None]:
        before = self.schedule_state(scheduler)
        try:
            with warnings.catch_warnings():  # about updates that were not made in between
                warnings.filterwarnings("ignore", message=r".*lr_scheduler\.step\(\)")
                warnings.filterwarnings("ignore", message="The epoch parameter in `scheduler.step")  # torch's
                yield
        finally:
            self.set_schedule_state(scheduler, before)
