"""Tier 3 for PyTorch: what an optimizer is, its settings and state by parameter path, schedules.

Facts are tables: common kind -> common name -> PyTorch's name. A new optimizer is one entry
in ``SETTINGS`` (``optimizers.py``) and one in ``SLOTS``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from parfocal.backends.checks import not_of_model
from parfocal.backends.optimizer_steps import OptimizerSteps
from parfocal.backends.protocol import Array
from parfocal.backends.torch.optimizers import DECAYS, SETTINGS
from parfocal.backends.torch.watch import Watching

KINDS = {"RMSprop": "RMSProp"}

# Where an optimizer keeps the rate that takes effect, which a group's rate only begins.
RATES = {"ASGD": "eta"}

# What PyTorch does not offer and always behaves as.
CONSTANT: dict[str, dict[str, Any]] = {"RMSProp": {"epsilon_place": "outside"}}

_MOMENTS = {"moment1": "exp_avg", "moment2": "exp_avg_sq", "step": "step"}
SLOTS: dict[str, dict[str, str]] = {
    "Momentum": {"momentum": "momentum_buffer"},
    "Adam": {**_MOMENTS, "moment2_max": "max_exp_avg_sq"},
    "AdamW": {**_MOMENTS, "moment2_max": "max_exp_avg_sq"},
    "Adamax": {"moment1": "exp_avg", "infinity_norm": "exp_inf", "step": "step"},
    "NAdam": {**_MOMENTS, "momentum_product": "mu_product"},
    "RAdam": _MOMENTS,
    "Adagrad": {"square_sum": "sum", "step": "step"},
    "Adadelta": {
        "average_squared_gradient": "square_avg",
        "average_squared_update": "acc_delta",
        "step": "step",
    },
    "RMSProp": {
        "average_squared_gradient": "square_avg",
        "average_gradient": "grad_avg",
        "momentum": "momentum_buffer",
        "step": "step",
    },
    "Rprop": {"previous_gradient": "prev", "step_size": "step_size", "step": "step"},
    "ASGD": {"average": "ax", "step_length": "eta", "averaging_weight": "mu", "step": "step"},
}


class Training(Watching, OptimizerSteps):
    """What ``TrainingBackend`` asks for."""

    optimizer_class = torch.optim.Optimizer
    # the second is not one of the first in older versions
    scheduler_class = (torch.optim.lr_scheduler.LRScheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
    closure_optimizer = torch.optim.LBFGS
    metric_scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau

    def sgd(self, model: Any, learning_rate: float) -> Any:
        return torch.optim.SGD(model.parameters(), lr=learning_rate)

    def optimizer_kind(self, optimizer: Any) -> str:
        for base in type(optimizer).__mro__:
            if base.__module__.startswith("torch.optim."):
                kind = KINDS.get(base.__name__, base.__name__)
                if kind == "SGD" and any(group["momentum"] for group in optimizer.param_groups):
                    return "Momentum"
                if kind in SETTINGS:
                    return kind
        return type(optimizer).__name__

    def optimizer_settings(self, optimizer: Any, model: Any) -> dict[str, dict[str, Any]]:
        kind = self.optimizer_kind(optimizer)
        found: dict[str, dict[str, Any]] = {}
        for path, group, parameter in self._parameters(optimizer, model):
            settings = {name: group[key] for name, key in SETTINGS.get(kind, {}).items() if key in group}
            settings.update(CONSTANT.get(kind, {}))
            settings["lr"] = rate_of(kind, optimizer, group, parameter)
            settings["weight_decay"] = float(
                group.get("weight_decay", 0.0) + group.get(DECAYS.get(kind), 0.0)
            )
            decoupled = kind == "AdamW" or group.get("decoupled_weight_decay", False)
            if kind in SETTINGS or decoupled:  # of an optimizer from elsewhere nobody knows it
                settings["decay"] = "decoupled" if decoupled else "l2"
            found[path] = settings
        return found

    def optimizer_state(
        self, optimizer: Any, model: Any, *, copy: bool = True
    ) -> dict[str, dict[str, Array]]:
        slots = SLOTS.get(self.optimizer_kind(optimizer), {})
        found: dict[str, dict[str, Array]] = {}
        for path, _, parameter in self._parameters(optimizer, model):
            state = optimizer.state.get(parameter, {})
            found[path] = {
                name: self._slot(state[key], copy)
                for name, key in slots.items()
                if state.get(key) is not None
            }
        return found

    def gradient_clip(self, optimizer: Any) -> dict[str, Any] | None:
        return None  # PyTorch clips by a function of its own, before the step

    def learning_rate(self, optimizer: Any) -> float:
        group = optimizer.param_groups[0]
        return rate_of(self.optimizer_kind(optimizer), optimizer, group, group["params"][0])

    def _slot(self, value: Any, copy: bool) -> Array:
        return (
            self.to_array(value, copy=copy) if self.is_tensor(value) else np.asarray(value, dtype="float32")
        )

    def _parameters(self, optimizer: Any, model: Any) -> Iterator[tuple[str, Any, Any]]:
        groups = {
            id(parameter): (group, parameter)
            for group in optimizer.param_groups
            for parameter in group["params"]
        }
        known = [
            (entry.path, *groups[id(entry.value)])
            for entry in self.state(model)
            if entry.tied_to is None and id(entry.value) in groups
        ]
        if not known:
            raise not_of_model(len(groups), type(model).__name__)
        return iter(known)


def rate_of(kind: str, optimizer: Any, group: dict[str, Any], parameter: Any) -> float:
    """The rate that the next update of a parameter takes."""
    kept = optimizer.state.get(parameter, {}).get(RATES[kind]) if kind in RATES else None
    return float(group["lr"] if kept is None else kept)
