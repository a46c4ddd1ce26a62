"""Gradients that can no longer be seen because their tensor was changed in place.

A hook on a tensor stays with the value the tensor had. PyTorch makes one exception: when a view is
changed in place, the gradient goes past the view's old value, and a hook there gets none of it, or a
part. Such a gradient was not observed; that does not mean that there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from parfocal.backends.protocol import Backend


@dataclass(slots=True)
class Sight:
    """Whether a hook that was set on a tensor still sees the whole gradient of what the tensor was."""

    count: Callable[[], int] | None  # of changes in place; None: they do not matter
    seen: int = 0

    @property
    def stays(self) -> bool:
        """The hook sees the gradient whatever is done to the tensor."""
        return self.count is None

    @property
    def lost(self) -> bool:
        return self.count is not None and self.count() != self.seen


class Overwrites:
    """Knows the sights of one run, and changes tensors without losing any."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._sights: list[Sight] = []

    def sight(self, count: Callable[[], int] | None) -> Sight:
        """To be asked for when a hook is set on a tensor; ``count``: its ``changes_behind_hooks``."""
        if count is None:
            return Sight(None)
        sight = Sight(count, count())
        self._sights.append(sight)
        return sight

    def assign(self, tensor: Any, value: Any) -> None:
        """Give all of a tensor another value in place, as a step of the graph.

        All uses of the old value were made before and go through the hooks that are set on it.
        """
        clear = [sight for sight in self._sights if not sight.lost]
        self._backend.assign(tensor, value)
        for sight in clear:
            assert sight.count is not None
            sight.seen = sight.count()

    def clear(self) -> None:
        self._sights.clear()
