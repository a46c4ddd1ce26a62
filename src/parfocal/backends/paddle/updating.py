"""Tier 3 for PaddlePaddle: what an update reads and writes, set from outside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import paddle

from parfocal.backends.copying import cloned
from parfocal.backends.histories import History, Parameters, read_history, write_history
from parfocal.backends.paddle.optimizers import SPELLING
from parfocal.backends.paddle.schedules import Scheduling
from parfocal.backends.paddle.training import SLOTS, STEP_COUNTS
from parfocal.backends.protocol import Array

# Everything that an optimizer keeps from one step to the next.
CREATED = ("_already_create_accumulator", "_already_create_accumulater")  # as 2.6 spells it
KEPT = ("_accumulators", *CREATED, "_master_weights", "state")
# Where the count of steps is kept as a power: kind -> accumulator, which of the betas or what, factors at
# the start.
POWERS: dict[str, tuple[tuple[str, int | float, int], ...]] = {
    **dict.fromkeys(("Adam", "AdamW", "Lamb"), (("beta1_pow_acc", 0, 1), ("beta2_pow_acc", 1, 1))),
    "Adamax": (("beta1_pow_acc", 0, 1),),
    "NAdam": (("beta2_pow", 1, 0), ("momentum_decay_pow", 0.96, 0)),
    "RAdam": (("beta1_pow", 0, 0), ("beta2_pow", 1, 0)),
}
# Where a rate is kept; Rprop begins its step sizes with one of its own.
RATES = ("_learning_rate", "_learning_rate_map", "_initial_learning_rate")
# What LBFGS remembers: common name -> its own.
HISTORY = {
    "direction": "d",
    "gradient": "prev_flat_grad",
    "products": "ro",
    "scale": "H_diag",
    "gradient_changes": "old_yk",
    "weight_changes": "old_sk",
    "rate": "alpha",
    "loss": "prev_loss",
    "iterations": "n_iter",
    "evaluations": "func_evals",
}
CLIPS = {"global_norm": "ClipGradByGlobalNorm", "norm": "ClipGradByNorm", "value": "ClipGradByValue"}


class Updating(Scheduling):
    """What ``UpdatingBackend`` asks for."""

    def address(self, tensor: Any) -> int | None:
        return int(tensor.data_ptr()) if tensor.place.is_cpu_place() else None

    def clear_by_optimizer(self, optimizer: Any) -> None:
        optimizer.clear_grad()

    def write_gradient(self, tensor: Any, array: Array | None) -> None:
        if array is None:
            tensor.clear_gradient(False)
        elif tensor.grad is None or tensor.grad.is_selected_rows():
            tensor.clear_gradient(False)
            tensor.grad = self.from_array(array)
        else:
            self.write(tensor.grad, array)

    def write_optimizer_state(
        self, optimizer: Any, model: Any, state: Mapping[str, Mapping[str, Array]]
    ) -> None:
        kind = self.optimizer_kind(optimizer)
        settings = self.optimizer_settings(optimizer, model)
        for path, _, parameter in self._parameters(optimizer, model):
            for name, values in state.get(path, {}).items():
                if name == "step":
                    self._write_step(kind, optimizer, settings[path], parameter.name, int(values))
                    continue
                accumulator = optimizer._accumulators.get(SLOTS.get(kind, {}).get(name), {}).get(
                    parameter.name
                )
                if accumulator is None:
                    continue
                shape = self.shape(accumulator)
                if values.shape in (shape, ()):
                    whole = np.broadcast_to(values, shape).astype(self.dtype(accumulator), copy=False)
                    self.write(accumulator, whole)

    def copied_optimizer_state(self, optimizer: Any) -> Any:
        accumulators = {
            key: {name: tensor.clone() for name, tensor in own.items()}
            for key, own in optimizer._accumulators.items()
        }
        copied = type(optimizer._accumulators)(dict)
        copied.update(accumulators)
        masters = {name: tensor.clone() for name, tensor in optimizer._master_weights.items()}
        created = (set(vars(optimizer)[name]) if name in vars(optimizer) else None for name in CREATED)
        history = cloned(getattr(optimizer, "state", None), self.is_tensor)  # of LBFGS
        return copied, *created, masters, history

    def exchange_optimizer_state(self, optimizer: Any, state: Any) -> Any:
        before = tuple(getattr(optimizer, name, None) for name in KEPT)
        for name, value in zip(KEPT, state, strict=True):
            if value is not None:
                setattr(optimizer, name, value)
        return before

    def optimizer_history(self, optimizer: Any, model: Any) -> History | None:
        if self.optimizer_kind(optimizer) != "LBFGS":
            return None
        return read_history(optimizer.state, HISTORY, self._joined(optimizer, model), self.to_array)

    def write_optimizer_history(self, optimizer: Any, model: Any, history: History) -> None:
        joined = self._joined(optimizer, model)
        write_history(history, optimizer.state, HISTORY, joined, self.from_array)

    def _joined(self, optimizer: Any, model: Any) -> Parameters:
        """The parameters in the order in which LBFGS joins them."""
        paths = {id(parameter): path for path, _, parameter in self._parameters(optimizer, model)}
        return [(paths[id(each)], self.shape(each)) for each in optimizer._params]

    def clipped_by_optimizer(self, optimizer: Any, model: Any) -> dict[str, Array] | None:
        groups = optimizer._param_groups
        grouped = [
            (group["grad_clip"], group["params"]) for group in (groups if isinstance(groups[0], dict) else [])
        ] or [(optimizer._grad_clip, groups)]
        if all(clip is None for clip, _ in grouped):
            return None
        paths = {id(parameter): path for path, _, parameter in self._parameters(optimizer, model)}
        found: dict[str, Array] = {}
        for clip, parameters in grouped:
            pairs = [
                (each, each.grad) for each in parameters if not each.stop_gradient and each.grad is not None
            ]
            with paddle.no_grad():
                clipped = pairs if clip is None or not pairs else clip(pairs)
            for parameter, gradient in clipped:
                if id(parameter) in paths and gradient is not None:
                    found[paths[id(parameter)]] = self.to_array(gradient)
        return found

    @contextmanager
    def optimizer_clip_off(self, optimizer: Any) -> Iterator[None]:
        holders = [group for group in optimizer._param_groups if isinstance(group, dict)]
        before = optimizer._grad_clip, [group.get("grad_clip") for group in holders]
        try:
            optimizer._grad_clip = None
            for group in holders:
                group["grad_clip"] = None
            yield
        finally:
            optimizer._grad_clip = before[0]
            for group, clip in zip(holders, before[1], strict=True):
                group["grad_clip"] = clip

    @contextmanager
    def learning_rates_set(self, optimizer: Any, model: Any, rates: Mapping[str, float]) -> Iterator[None]:
        ratio = getattr(optimizer, "_lr_ratio", None)
        base = next((rate for rate in rates.values() if rate), 1.0)
        if self.needs_closure(optimizer):  # reads one rate, from a place of its own
            given, optimizer.learning_rate = optimizer.learning_rate, float(base)
            try:
                yield
            finally:
                optimizer.learning_rate = given
            return
        before = {name: getattr(optimizer, name) for name in RATES if hasattr(optimizer, name)}
        factors = []
        for path, _, parameter in self._parameters(optimizer, model):
            factors.append((parameter, parameter.optimize_attr))
            own = float(ratio(parameter)) if ratio is not None else 1.0
            if path in rates and own:
                parameter.optimize_attr = {
                    **(parameter.optimize_attr or {}),
                    "learning_rate": rates[path] / base / own,
                }
        try:
            for name in before:
                setattr(optimizer, name, {} if name == "_learning_rate_map" else float(base))
            yield
        finally:
            for name, value in before.items():
                setattr(optimizer, name, value)
            for parameter, attributes in factors:
                parameter.optimize_attr = attributes

    def optimizer_paths(self, optimizer: Any, model: Any) -> tuple[list[str], int]:
        known = [path for path, _, _ in self._parameters(optimizer, model)]
        tensors = {id(entry.value) for entry in self.state(model)}
        every = [
            parameter
            for item in optimizer._param_groups
            for parameter in (item["params"] if isinstance(item, dict) else [item])
        ]
        return known, sum(id(parameter) not in tensors for parameter in every)

    def written_settings(self, kind: str, settings: Mapping[str, Any]) -> str:
        return SPELLING.written(kind, settings)

    def written_clearing(self) -> str:
        return "optimizer.clear_grad(set_to_zero=False)"

    def written_clip(self, kind: str, limit: float) -> str:
        return f"grad_clip=paddle.nn.{CLIPS[kind]}({limit!r}) in the optimizer"

    def _write_step(
        self, kind: str, optimizer: Any, settings: Mapping[str, Any], name: str, step: int
    ) -> None:
        if self._steps(kind, optimizer, dict(settings), name) in (step, None):
            return
        if kind in STEP_COUNTS:
            counter = optimizer._accumulators[STEP_COUNTS[kind]][name]
            self.write(counter, np.full(self.shape(counter), step, self.dtype(counter)))
        for key, which, factors in POWERS.get(kind, ()):
            accumulator = optimizer._accumulators[key][name]
            base = settings["betas"][which] if isinstance(which, int) else which
            power = base ** (step + factors)
            self.write(accumulator, np.full(self.shape(accumulator), power, self.dtype(accumulator)))
