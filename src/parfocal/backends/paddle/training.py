"""Tier 3 for PaddlePaddle: what an optimizer is, its settings and state by parameter path, schedules.

Facts are tables: common kind -> common name -> paddle's name. A new optimizer is one entry
in ``SETTINGS`` (``optimizers.py``) and one in ``SLOTS``. Paddle files state under internal
parameter names and counts steps only as powers of beta.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import paddle

from parfocal.backends.checks import not_of_model
from parfocal.backends.optimizer_steps import OptimizerSteps
from parfocal.backends.paddle.optimizers import SETTINGS
from parfocal.backends.paddle.watch import Watching
from parfocal.backends.protocol import Array

# What versions without the setting behave as.
BEFORE: dict[str, Any] = {"amsgrad": False}
# What paddle does not offer and always behaves as.
CONSTANT: dict[str, dict[str, Any]] = {
    "Momentum": {"dampening": 0.0},
    "Adagrad": {"lr_decay": 0.0},
    "RMSProp": {"epsilon_place": "inside"},
}

_MOMENTS = {"moment1": "moment1", "moment2": "moment2"}
SLOTS: dict[str, dict[str, str]] = {
    "Momentum": {"momentum": "velocity"},
    "Adam": {**_MOMENTS, "moment2_max": "moment2_max"},
    "AdamW": {**_MOMENTS, "moment2_max": "moment2_max"},
    "Adamax": {"moment1": "moment", "infinity_norm": "inf_norm"},
    "NAdam": {**_MOMENTS, "momentum_product": "mu_product"},
    "RAdam": _MOMENTS,
    "Lamb": _MOMENTS,
    "Adagrad": {"square_sum": "moment"},
    "Adadelta": {
        "average_squared_gradient": "_avg_squared_grad",
        "average_squared_update": "_avg_squared_update",
    },
    # paddle's momentum of RMSProp has the learning rate in it, torch's does not.
    "RMSProp": {
        "average_squared_gradient": "mean_square",
        "average_gradient": "mean_grad",
        "momentum_with_lr": "momentum",
    },
    "Rprop": {"previous_gradient": "prevs", "step_size": "learning_rates"},
    "ASGD": {"gradient_sum": "d", "recent_gradients": "y"},
}
# Allocated always, in use only when the setting is on: slot -> setting.
SLOT_NEEDS = {"average_gradient": "centered", "momentum_with_lr": "momentum", "moment2_max": "amsgrad"}
# Where the step count hides: kind -> accumulator, which of the betas, how many factors it starts with.
STEP_POWERS: dict[str, tuple[str, int, int]] = {
    "Adam": ("beta2_pow_acc", 1, 1),
    "AdamW": ("beta2_pow_acc", 1, 1),
    "Lamb": ("beta2_pow_acc", 1, 1),
    "Adamax": ("beta1_pow_acc", 0, 1),
    "NAdam": ("beta2_pow", 1, 0),
    "RAdam": ("beta2_pow", 1, 0),
}
# Where it is counted plainly.
STEP_COUNTS = {"ASGD": "m"}
SINGLE_NUMBERS = {"momentum_product"}  # kept as a whole tensor of the same number


class Training(Watching, OptimizerSteps):
    """What ``TrainingBackend`` asks for."""

    optimizer_class = paddle.optimizer.Optimizer
    scheduler_class = paddle.optimizer.lr.LRScheduler
    closure_optimizer = paddle.optimizer.LBFGS
    metric_scheduler = paddle.optimizer.lr.ReduceOnPlateau

    def sgd(self, model: Any, learning_rate: float) -> Any:
        return paddle.optimizer.SGD(learning_rate=learning_rate, parameters=model.parameters())

    def optimizer_kind(self, optimizer: Any) -> str:
        for base in type(optimizer).__mro__:
            if base.__module__.startswith("paddle.optimizer.") and base.__name__ in SETTINGS:
                return base.__name__
        return type(optimizer).__name__

    def optimizer_settings(self, optimizer: Any, model: Any) -> dict[str, dict[str, Any]]:
        kind = self.optimizer_kind(optimizer)
        base_rate = _base_rate(optimizer)
        found: dict[str, dict[str, Any]] = {}
        for path, group, parameter in self._parameters(optimizer, model):
            settings = _own_settings(kind, optimizer, group)
            settings["lr"] = base_rate * _rate_factor(optimizer, parameter)
            settings["decay"], settings["weight_decay"] = _weight_decay(kind, optimizer, group, parameter)
            found[path] = settings
        return found

    def optimizer_state(
        self, optimizer: Any, model: Any, *, copy: bool = True
    ) -> dict[str, dict[str, Array]]:
        kind = self.optimizer_kind(optimizer)
        masters = getattr(optimizer, "_master_weights", {})
        found: dict[str, dict[str, Array]] = {}
        for path, group, parameter in self._parameters(optimizer, model):
            settings = _own_settings(kind, optimizer, group)
            slots = {
                name: self._slot(name, accumulators[parameter.name], copy)
                for name, accumulators in _accumulators(kind, optimizer, settings)
                if parameter.name in accumulators
            }
            steps = self._steps(kind, optimizer, settings, parameter.name)
            if steps is not None:
                slots["step"] = np.asarray(steps, dtype="float32")
            if parameter.name in masters:
                slots["master_weight"] = self.to_array(masters[parameter.name], copy=copy)
            found[path] = slots
        return found

    def gradient_clip(self, optimizer: Any) -> dict[str, Any] | None:
        clip = getattr(optimizer, "_grad_clip", None)
        if isinstance(clip, paddle.nn.ClipGradByGlobalNorm):
            return {"kind": "global_norm", "limit": float(clip.clip_norm)}
        if isinstance(clip, paddle.nn.ClipGradByNorm):
            return {"kind": "norm", "limit": float(clip.clip_norm)}
        if isinstance(clip, paddle.nn.ClipGradByValue):
            return {"kind": "value", "limit": float(clip.max), "least": float(clip.min)}
        return None

    def learning_rate(self, optimizer: Any) -> float:
        group = optimizer._param_groups[0]
        factor = group.get("learning_rate", 1.0) if isinstance(group, dict) else 1.0
        return _base_rate(optimizer) * factor

    def _slot(self, name: str, tensor: Any, copy: bool) -> Array:
        values = self.to_array(tensor, copy=copy)
        return np.asarray(values.flat[0]) if name in SINGLE_NUMBERS else values

    def _steps(self, kind: str, optimizer: Any, settings: dict[str, Any], name: str) -> int | None:
        if kind in STEP_COUNTS:
            counts = optimizer._accumulators.get(STEP_COUNTS[kind], {})
            return int(counts[name].item()) if name in counts else None
        if kind not in STEP_POWERS:
            return None
        key, which, factors_at_start = STEP_POWERS[kind]
        accumulator = optimizer._accumulators.get(key, {}).get(name)
        if accumulator is None:
            return None
        power = float(self.to_array(accumulator).flat[0])
        beta = settings["betas"][which]
        # A power that has run down to zero no longer says how often it was multiplied.
        return round(math.log(power) / math.log(beta)) - factors_at_start if power > 0 else None

    def _parameters(self, optimizer: Any, model: Any) -> Iterator[tuple[str, Any, Any]]:
        groups: dict[int, tuple[dict[str, Any], Any]] = {}
        for item in optimizer._param_groups:
            group = item if isinstance(item, dict) else {"params": [item]}
            groups.update({id(parameter): (group, parameter) for parameter in group["params"]})
        known = [
            (entry.path, *groups[id(entry.value)])
            for entry in self.state(model)
            if entry.tied_to is None and entry.role == "parameter" and id(entry.value) in groups
        ]
        if not known:
            raise not_of_model(len(groups), type(model).__name__)
        return iter(known)


def _accumulators(kind: str, optimizer: Any, settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, key in SLOTS.get(kind, {}).items():
        in_use = name not in SLOT_NEEDS or settings[SLOT_NEEDS[name]]
        if in_use and key in optimizer._accumulators:
            yield name, optimizer._accumulators[key]


def _own_settings(kind: str, optimizer: Any, group: dict[str, Any]) -> dict[str, Any]:
    settings = {
        name: tuple(_value(optimizer, group, key) for key in keys)
        if isinstance(keys, tuple)
        else _setting(optimizer, group, name, keys)
        for name, keys in SETTINGS.get(kind, {}).items()
    }
    return {**settings, **CONSTANT.get(kind, {})}


def _setting(optimizer: Any, group: dict[str, Any], name: str, key: str) -> Any:
    value = _value(optimizer, group, key)
    return BEFORE.get(name) if value is None else value


def _value(optimizer: Any, group: dict[str, Any], key: str) -> Any:
    """A group's own value, the optimizer's default, or its attribute (which follows the last group)."""
    defaults = getattr(optimizer, "_default_dict", {})
    for source in (group, defaults):
        if key in source:
            return source[key]
    value = getattr(optimizer, f"_{key}", None)
    if value is None:
        value = getattr(optimizer, key, None)
    if isinstance(value, paddle.Tensor):  # Rprop makes tensors of its pairs at its first step
        return tuple(float(number) for number in value.numpy().reshape(-1))
    return value[0] if isinstance(value, list) else value  # until then they are inside a list


def _base_rate(optimizer: Any) -> float:
    if isinstance(optimizer, paddle.optimizer.LBFGS):
        return float(optimizer.learning_rate)  # what get_lr() tells is 1.0, whatever was asked for
    rate = optimizer._learning_rate
    return float(rate.item()) if isinstance(rate, paddle.Tensor) else float(optimizer.get_lr())


def _rate_factor(optimizer: Any, parameter: Any) -> float:
    factor = (getattr(parameter, "optimize_attr", None) or {}).get("learning_rate", 1.0)
    ratio = getattr(optimizer, "_lr_ratio", None)
    return float(factor) * (float(ratio(parameter)) if ratio is not None else 1.0)


def _weight_decay(kind: str, optimizer: Any, group: dict[str, Any], parameter: Any) -> tuple[str, float]:
    if kind == "AdamW":
        applies = optimizer._apply_decay_param_fun
        decays = applies is None or applies(parameter.name)
        return "decoupled", float(_value(optimizer, group, "weight_decay")) if decays else 0.0
    if kind == "Lamb":
        excluded = optimizer._exclude_from_weight_decay_fn
        keeps = excluded is None or not excluded(parameter)
        return "decoupled", float(_value(optimizer, group, "lamb_weight_decay")) if keeps else 0.0
    # A parameter's own regularizer goes before the optimizer's.
    regularizer = getattr(parameter, "regularizer", None) or optimizer.regularization
    if regularizer is not None:
        form = "l1" if isinstance(regularizer, paddle.regularizer.L1Decay) else "l2"
        return form, float(regularizer._coeff)
    if kind == "Momentum":  # keeps the usual form apart, to compute it together with the update
        return "l2", float(_value(optimizer, group, "regularization_coeff"))
    return "l2", 0.0
