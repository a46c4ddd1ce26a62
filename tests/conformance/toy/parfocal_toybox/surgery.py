"""Tier 2, replaying: tensors with other values on the same tape, layers in another dtype."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import toybox
from parfocal_toybox.models import Models
from parfocal_toybox.ops import listening
from parfocal_toybox.tensors import DTYPES
from toybox import functions, tape

from parfocal.backends.calls import drop_own_hooks
from parfocal.backends.module_copies import ModuleCopies
from parfocal.backends.muting import rate_of


class Surgery(Models, ModuleCopies):
    leaves_gradients_alone = True

    def alias(self, tensor: Any) -> Any:
        return toybox.Tensor(tensor.data, made=((tensor,), lambda g: (g,)), changes=tensor.changes)

    def duplicate(self, tensor: Any) -> Any:
        copied = toybox.Tensor(tensor.data.copy(), tensor.requires_grad)
        return copied if tensor.is_leaf else copied.clone()

    def substitute(self, tensor: Any, array: Any, *, copy: bool = True) -> Any:
        new = self.from_array(array.astype(tensor.dtype, copy=False), copy=copy)
        shape, dtype = tensor.shape, tensor.dtype

        def back(gradient: Any) -> tuple[Any]:
            return (gradient if gradient.shape == shape else np.zeros(shape, dtype),)

        return toybox.Tensor(new.data, made=((tensor,), back)) if tensor.requires_grad else new

    def overwrite(self, tensor: Any, array: Any) -> None:
        np.copyto(tensor.data, array.astype(tensor.dtype, copy=False))

    def assign(self, tensor: Any, value: Any) -> None:
        if np.shares_memory(value.data, tensor.data):
            # The value would count as changed too, and the tape may need it.
            changes = tape.Changes()
            changes.count = tensor.changes.count
            tensor.data, tensor.changes = tensor.data.copy(), changes
        tensor.assign_(value)

    def version(self, tensor: Any) -> int:
        return tensor.changes.count

    def changes_behind_hooks(self, tensor: Any) -> Callable[[], int] | None:
        return None  # hooks stay with the value

    def no_functional_dropout(self) -> AbstractContextManager[None]:
        def undropped(function: Any, name: str, *args: Any, **kwargs: Any) -> Any:
            return args[0] if name == "dropout" else function(*args, **kwargs)

        return listening(undropped)

    def watch_dropout(self, on_drop: Callable[[float], None]) -> AbstractContextManager[None]:
        def heard(function: Any, name: str, x: Any, *args: Any, **kwargs: Any) -> Any:
            if name == "dropout":
                given = {**dict(zip(("p", "training"), args, strict=False)), **kwargs}
                rate = rate_of(given.get("p", 0.5))
                if rate > 0 and given.get("training", True):
                    on_drop(rate)
            return function(x, *args, **kwargs)

        return listening(heard)

    @contextmanager
    def widened(self) -> Iterator[None]:
        before = functions.dtype_of

        def wider(name: Any) -> Any:
            dtype = before(name)
            return np.dtype(np.float64) if dtype == np.float32 else dtype

        functions.dtype_of = wider
        try:
            yield
        finally:
            functions.dtype_of = before

    @contextmanager
    def gradients_kept(self, model: Any) -> Iterator[None]:
        kept = [(parameter, parameter.grad) for parameter in model.parameters()]
        try:
            for parameter, _ in kept:
                parameter.grad = None
            yield
        finally:
            for parameter, gradient in kept:
                parameter.grad = gradient

    def make_bare(self, twin: Any) -> None:
        for part in twin.layers():
            drop_own_hooks(part._surrounding_hooks)
        for parameter in twin.parameters():
            parameter.grad = None

    def convert(self, twin: Any, dtype: str) -> Any:
        for entry in self.state(twin):
            if entry.value.dtype.kind in "fV":
                entry.value.data = entry.value.data.astype(DTYPES[dtype])
        return twin
