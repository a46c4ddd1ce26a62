"""Tier 3 for PyTorch: what an update reads and writes, set from outside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

from parfocal.backends.copying import cloned
from parfocal.backends.histories import History, Parameters, read_history, write_history
from parfocal.backends.protocol import Array
from parfocal.backends.torch.optimizers import SPELLING
from parfocal.backends.torch.schedules import Scheduling
from parfocal.backends.torch.training import SLOTS

# What LBFGS remembers: common name -> its own.
HISTORY = {
    "direction": "d",
    "gradient": "prev_flat_grad",
    "products": "ro",
    "scale": "H_diag",
    "gradient_changes": "old_dirs",
    "weight_changes": "old_stps",
    "rate": "t",
    "loss": "prev_loss",
    "iterations": "n_iter",
    "evaluations": "func_evals",
}


class Updating(Scheduling):
    """What ``UpdatingBackend`` asks for. PyTorch's optimizers clip nothing by themselves."""

    def address(self, tensor: Any) -> int | None:
        return int(tensor.data_ptr()) if tensor.device.type == "cpu" else None

    def clear_by_optimizer(self, optimizer: Any) -> None:
        optimizer.zero_grad()

    def write_gradient(self, tensor: Any, array: Array | None) -> None:
        if array is None:
            tensor.grad = None
        elif tensor.grad is None or tensor.grad.layout is not torch.strided:
            tensor.grad = self.from_array(array, device=self.device(tensor))
        else:
            self.write(tensor.grad, array)

    def write_optimizer_state(
        self, optimizer: Any, model: Any, state: Mapping[str, Mapping[str, Array]]
    ) -> None:
        slots = SLOTS.get(self.optimizer_kind(optimizer), {})
        for path, _, parameter in self._parameters(optimizer, model):
            own = optimizer.state.get(parameter, {})
            for name, values in state.get(path, {}).items():
                key = slots.get(name)
                if key is None or own.get(key) is None:
                    continue
                if not self.is_tensor(own[key]):
                    own[key] = type(own[key])(values)
                elif self.shape(own[key]) == values.shape:
                    self.write(own[key], values.astype(self.dtype(own[key]), copy=False))

    def copied_optimizer_state(self, optimizer: Any) -> Any:
        copied: Any = defaultdict(dict)
        for parameter, own in optimizer.state.items():
            copied[parameter] = {key: cloned(value, self.is_tensor) for key, value in own.items()}
        return copied, cloned(_counters(optimizer), self.is_tensor)

    def exchange_optimizer_state(self, optimizer: Any, state: Any) -> Any:
        before = optimizer.state, _counters(optimizer)
        optimizer.state, counters = state
        for group, own, kept in zip(optimizer.param_groups, before[1], counters, strict=True):
            for key in own:
                del group[key]
            group.update(kept)
        return before

    def optimizer_history(self, optimizer: Any, model: Any) -> History | None:
        if self.optimizer_kind(optimizer) != "LBFGS":
            return None
        return read_history(
            optimizer.state[optimizer._params[0]], HISTORY, self._joined(optimizer, model), self.to_array
        )

    def write_optimizer_history(self, optimizer: Any, model: Any, history: History) -> None:
        joined = self._joined(optimizer, model)
        write_history(history, optimizer.state[optimizer._params[0]], HISTORY, joined, self.from_array)

    def _joined(self, optimizer: Any, model: Any) -> Parameters:
        """The parameters in the order in which LBFGS joins them."""
        paths = {id(parameter): path for path, _, parameter in self._parameters(optimizer, model)}
        return [(paths[id(each)], self.shape(each)) for each in optimizer._params]

    def clipped_by_optimizer(self, optimizer: Any, model: Any) -> dict[str, Array] | None:
        return None

    def optimizer_clip_off(self, optimizer: Any) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def learning_rates_set(self, optimizer: Any, model: Any, rates: Mapping[str, float]) -> Iterator[None]:
        known = {id(parameter): path for path, _, parameter in self._parameters(optimizer, model)}
        before = optimizer.param_groups
        if self.needs_closure(optimizer):  # has one group, and one rate
            optimizer.param_groups = [{**before[0], "lr": next(iter(rates.values()), before[0]["lr"])}]
            try:
                yield
            finally:
                optimizer.param_groups = before
            return
        optimizer.param_groups = [
            {
                **group,
                "params": [parameter],
                "lr": rates.get(known.get(id(parameter), ""), group["lr"]),
            }
            for group in before
            for parameter in group["params"]
        ]
        try:
            yield
        finally:
            optimizer.param_groups = before

    def optimizer_paths(self, optimizer: Any, model: Any) -> tuple[list[str], int]:
        known = [path for path, _, _ in self._parameters(optimizer, model)]
        tensors = {id(entry.value) for entry in self.state(model)}
        every = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        return known, sum(id(parameter) not in tensors for parameter in every)

    def written_settings(self, kind: str, settings: Mapping[str, Any]) -> str:
        return SPELLING.written(kind, settings)

    def written_clearing(self) -> str:
        return "optimizer.zero_grad()"

    def written_clip(self, kind: str, limit: float) -> str:
        if kind == "value":
            return f"torch.nn.utils.clip_grad_value_(model.parameters(), {limit!r}) before the step"
        if kind == "norm":
            return (
                f"torch.nn.utils.clip_grad_norm_([parameter], {limit!r}) for every parameter before the step"
            )
        return f"torch.nn.utils.clip_grad_norm_(model.parameters(), {limit!r}) before the step"


def _counters(optimizer: Any) -> list[dict[str, Any]]:
    """What an optimizer keeps in a group beside its settings: some count their steps there."""
    known = {"params", *optimizer.defaults}
    return [
        {key: value for key, value in group.items() if key not in known} for group in optimizer.param_groups
    ]
