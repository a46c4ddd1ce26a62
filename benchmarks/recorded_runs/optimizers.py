"""Optimizers and clipping of either framework, from a ``Rule``."""

from __future__ import annotations

from typing import Any

import paddle
import torch

from benchmarks.recorded_runs.kits import Kit
from benchmarks.recorded_runs.pairs import Rule


def build_optimizer(kit: Kit, model: Any, rule: Rule) -> Any:
    parameters = [
        parameter
        for name, parameter in kit.parameters(model).items()
        if not (rule.without and name.startswith(f"{rule.without}."))
    ]
    build = BUILDERS[kit.name, "SGD" if rule.kind == "SGD" else "Adam"]
    return build(parameters, rule)


def _torch_descent(parameters: list[Any], rule: Rule) -> Any:
    return torch.optim.SGD(
        parameters, lr=rule.rate, momentum=rule.momentum, nesterov=rule.nesterov, weight_decay=rule.decay
    )


def _torch_adam(parameters: list[Any], rule: Rule) -> Any:
    return getattr(torch.optim, rule.kind)(
        parameters, lr=rule.rate, betas=rule.betas, eps=rule.epsilon, weight_decay=rule.decay
    )


def _paddle_descent(parameters: list[Any], rule: Rule) -> Any:
    decay = rule.decay or None
    if not rule.momentum:
        return paddle.optimizer.SGD(rule.rate, parameters=parameters, weight_decay=decay)
    return paddle.optimizer.Momentum(
        rule.rate, rule.momentum, parameters=parameters, use_nesterov=rule.nesterov, weight_decay=decay
    )


def _paddle_adam(parameters: list[Any], rule: Rule) -> Any:
    options = {"beta1": rule.betas[0], "beta2": rule.betas[1], "epsilon": rule.epsilon}
    decay = rule.decay if rule.kind == "AdamW" else rule.decay or None
    return getattr(paddle.optimizer, rule.kind)(
        rule.rate, parameters=parameters, weight_decay=decay, **options
    )


BUILDERS = {
    ("torch", "SGD"): _torch_descent,
    ("torch", "Adam"): _torch_adam,
    ("paddle", "SGD"): _paddle_descent,
    ("paddle", "Adam"): _paddle_adam,
}


def set_rate(kit: Kit, optimizer: Any, rate: float) -> None:
    if kit.square:
        optimizer.set_lr(rate)
        return
    for group in optimizer.param_groups:
        group["lr"] = rate


def forget_state(kit: Kit, optimizer: Any) -> None:
    if not kit.square:
        optimizer.state.clear()
        return
    for slots in optimizer._accumulators.values():
        for slot in slots.values():
            slot.set_value(paddle.zeros_like(slot))


def clip_gradients(kit: Kit, model: Any, kind: str, limit: float) -> None:
    utilities = kit.nn.utils
    clip = utilities.clip_grad_norm_ if kind == "norm" else utilities.clip_grad_value_
    clip(list(kit.parameters(model).values()), limit)
