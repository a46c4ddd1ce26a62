"""Tensors and the tape: every result knows what it was made of and how a gradient goes back to it."""

from __future__ import annotations

import heapq
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

_numbers = count()


class _Recording(threading.local):
    on = True


_recording = _Recording()
generator = np.random.Generator(np.random.PCG64(0))


def seed(value: int) -> None:
    generator.bit_generator.state = np.random.PCG64(value).state


def recording() -> bool:
    """Whether what is computed now gets onto the tape."""
    return _recording.on


@contextmanager
def _set_recording(on: bool) -> Iterator[None]:
    before, _recording.on = _recording.on, on
    try:
        yield
    finally:
        _recording.on = before


def untracked() -> Any:
    """While inside, nothing gets onto the tape."""
    return _set_recording(False)


def tracked() -> Any:
    return _set_recording(True)


class Origin:
    """Where a value comes from. Hooks belong to the value, not to the tensor that has it now."""

    __slots__ = ("backward", "hooks", "leaf", "number", "parents")

    def __init__(self, parents: Sequence[Origin | None] = (), backward: Any = None, leaf: Any = None) -> None:
        self.number = next(_numbers)
        self.parents = parents
        self.backward = backward
        self.leaf = None if leaf is None else weakref.ref(leaf)
        self.hooks: dict[int, Callable[[Tensor], Any]] = {}


class Changes:
    """How often a piece of memory was changed in place; shared by all views of it."""

    count = 0


class Tensor:
    """An array with a gradient. ``made``: how it was made, as (parents, backward)."""

    def __init__(
        self,
        data: Any,
        requires_grad: bool = False,
        made: tuple[Sequence[Tensor], Callable[[Any], Any]] | None = None,
        changes: Changes | None = None,
    ) -> None:
        self.data = np.asarray(data)
        self.changes = changes or Changes()
        self.grad: Tensor | None = None
        self.origin: Origin | None = None
        if made is not None and recording() and any(parent.origin is not None for parent in made[0]):
            self.origin = Origin([parent.origin for parent in made[0]], made[1])
        elif requires_grad:
            self.origin = Origin(leaf=self)

    @property
    def requires_grad(self) -> bool:
        return self.origin is not None

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if wanted and self.origin is None:
            self.origin = Origin(leaf=self)
        elif not wanted:
            self.origin = None

    @property
    def is_leaf(self) -> bool:
        return self.origin is None or self.origin.leaf is not None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    def detach(self) -> Tensor:
        return Tensor(self.data, changes=self.changes)

    def item(self) -> Any:
        return self.data.item()

    def data_ptr(self) -> int:
        return int(self.data.__array_interface__["data"][0])

    def backward(self, gradient: Tensor | None = None, *, retain_graph: bool = False) -> None:
        backward([self], [gradient], retain_graph=retain_graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError("only tensors that nothing was computed from can be copied with their graph")
        twin = Tensor(self.data.copy(), self.requires_grad)
        memo[id(self)] = twin
        return twin

    def __repr__(self) -> str:
        return f"Tensor({self.data!r})"

    def __len__(self) -> int:
        return len(self.data)

    def __bool__(self) -> bool:
        return bool(self.data)

    def __float__(self) -> float:
        return float(self.data)


class Handle:
    """Takes a hook away."""

    def __init__(self, hooks: dict[int, Any], key: int) -> None:
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        self._hooks.pop(self._key, None)


def hook_on(hooks: dict[int, Any], hook: Any) -> Handle:
    key = next(_numbers)
    hooks[key] = hook
    return Handle(hooks, key)


def keep(tensor: Tensor) -> Callable[[], Any]:
    """A value that a backward needs; refuses to give it when it was changed in place since."""
    data, changes, before = tensor.data, tensor.changes, tensor.changes.count

    def kept() -> Any:
        if changes.count != before:
            raise RuntimeError("a value that the gradient needs was changed in place")
        return data

    return kept


def backward(
    outputs: Sequence[Tensor], gradients: Sequence[Tensor | None], *, retain_graph: bool = False
) -> None:
    """Send gradients back along the tape; leaves add them up."""
    arrived: dict[Origin, Any] = {}
    waiting: list[tuple[int, Origin]] = []

    def arrive(origin: Origin, gradient: Any) -> None:
        if origin in arrived:
            arrived[origin] = arrived[origin] + gradient
        else:
            arrived[origin] = gradient
            heapq.heappush(waiting, (-origin.number, origin))

    for output, gradient in zip(outputs, gradients, strict=True):
        arrive(output.origin, np.ones_like(output.data) if gradient is None else gradient.data)
    while waiting:
        _, origin = heapq.heappop(waiting)
        gradient = _through_hooks(origin, arrived[origin])
        if origin.leaf is not None:
            leaf = origin.leaf()
            if leaf is not None:
                _add_to(leaf, gradient)
            continue
        if origin.backward is None:
            raise RuntimeError("the tape was used up by an earlier pass; keep it with retain_graph=True")
        for parent, sent in zip(origin.parents, origin.backward(gradient), strict=True):
            if parent is not None and sent is not None:
                arrive(parent, sent)
        if not retain_graph:
            origin.backward = None


def _through_hooks(origin: Origin, gradient: Any) -> Any:
    for hook in list(origin.hooks.values()):
        replaced = hook(Tensor(gradient))
        if replaced is not None:
            gradient = replaced.data
    return gradient


def _add_to(leaf: Tensor, gradient: Any) -> None:
    gradient = gradient.astype(leaf.dtype, copy=False)
    leaf.grad = Tensor(gradient.copy() if leaf.grad is None else leaf.grad.data + gradient)
