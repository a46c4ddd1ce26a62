"""Tier 3 for PyTorch: learning rates as an update reads them, and schedules stepped without a trace."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from parfocal.backends.torch.training import Training


class Scheduling(Training):
    """What ``SchedulingBackend`` asks for. PyTorch's optimizers do not know their schedulers."""

    def optimizer_rates(self, optimizer: Any) -> list[float]:
        return [float(group["lr"]) for group in optimizer.param_groups]

    def schedule_rates(self, scheduler: Any) -> list[float]:
        return self.optimizer_rates(scheduler.optimizer)

    def scheduler_of(self, optimizer: Any) -> Any | None:
        return None

    def optimizer_of(self, scheduler: Any) -> Any | None:
        return scheduler.optimizer

    def needs_metric(self, scheduler: Any) -> bool:
        return isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)

    @contextmanager
    def schedule_kept(self, scheduler: Any) -> Iterator[None]:
        groups = scheduler.optimizer.param_groups
        state = copy.deepcopy(scheduler.state_dict())
        before = [
            copy.deepcopy({key: value for key, value in group.items() if key != "params"}) for group in groups
        ]
        try:
            with warnings.catch_warnings():  # about updates that were not made in between
                warnings.filterwarnings("ignore", message=r".*lr_scheduler\.step\(\)")
                yield
        finally:
            scheduler.load_state_dict(state)
            for group, values in zip(groups, before, strict=True):
                group.update(values)
