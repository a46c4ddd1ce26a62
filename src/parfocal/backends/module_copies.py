"""Copies of modules to try things on, and recurrent layers that can go backward."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from parfocal.backends.copying import Memo, copied
from parfocal.backends.keeping import tensors_in
from parfocal.backends.module_tree import ModuleTree
from parfocal.errors import UnsupportedError
from parfocal.phrases import phrase

_HOLDING = (dict, list, set, tuple)


class ModuleCopies(ModuleTree):
    """The part of replaying that is the same for every framework."""

    recurrent: ClassVar[tuple[type, ...]] = ()  # layers that go backward in training only

    @abstractmethod
    def is_tensor(self, value: object) -> bool: ...

    @abstractmethod
    def duplicate(self, tensor: Any) -> Any: ...

    @abstractmethod
    def make_bare(self, twin: Any) -> None:
        """Take the hooks of watches and the gradients away from a copy."""

    @abstractmethod
    def convert(self, twin: Any, dtype: str) -> Any:
        """The copy with its floating-point tensors in another dtype."""

    def copy_as(self, module: Any, dtype: str | None) -> Any:
        try:
            twin = copied(module, {}, self._copied)
        except (RuntimeError, TypeError, ValueError) as error:
            raise UnsupportedError(
                phrase("a {kind} cannot be copied: {error}", kind=type(module).__name__, error=error)
            ) from error
        self.make_bare(twin)
        return twin if dtype is None else self.convert(twin, dtype)

    def _copied(self, value: Any, memo: Memo) -> Any:
        """What is no plain object; a tensor of a graph, which no deep copy takes, without the graph."""
        inside = tensors_in((value,), self.is_tensor) if isinstance(value, _HOLDING) else ()
        for tensor in (value,) if self.is_tensor(value) else inside:
            if not tensor.is_leaf and id(tensor) not in memo:
                memo[id(tensor)] = self.duplicate(tensor.detach())
        return copy.deepcopy(value, memo)

    @contextmanager
    def recurrence_in_training(self, model: Any) -> Iterator[None]:
        every: list[Any] = list(self.modules(model).values())
        layers: list[Any] = [layer for layer in every if isinstance(layer, self.recurrent)]
        before = [(layer, layer.training, layer.dropout) for layer in layers]
        try:
            for layer, training, _ in before:
                layer.dropout = layer.dropout if training else 0.0
                layer.training = True
            yield
        finally:
            for layer, training, dropout in before:
                layer.training, layer.dropout = training, dropout
