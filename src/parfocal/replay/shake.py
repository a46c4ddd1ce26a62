"""How far rounding carries through a whole model.

The reference runs again while every layer's output, and every gradient that arrives there, is
moved by as much as two correct implementations of that layer may differ. What then moves at the
end is the noise floor of the whole model: deep networks amplify.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Call
from parfocal.capture.tree import flatten, replace
from parfocal.judge.floors import EPSILON

_SIGNS = np.random.Generator(np.random.PCG64(20240301)).choice(np.array([-1.0, 1.0], np.float32), 65537)


class Shaker:
    """Callbacks for ``Backend.watch``. ``amounts``: order of a call -> relative noise of its output."""

    def __init__(self, backend: Backend, amounts: Mapping[int, float], *, gradients: bool) -> None:
        self.backend = backend
        self.amounts = amounts
        self.gradients = gradients

    def on_exit(self, call: Call, output: Any) -> Any:
        amount = self.amounts.get(call.order)
        if amount is None:
            return None
        moved = {
            slot: self._moved(leaf, amount)
            for slot, leaf in flatten(output).leaves.items()
            if self.backend.is_tensor(leaf) and self.backend.dtype(leaf) in EPSILON
        }
        return replace(output, moved)

    def _moved(self, tensor: Any, amount: float) -> Any:
        shaken = self.backend.substitute(tensor, _shake(self.backend.to_array(tensor, copy=False), amount))
        if self.gradients:
            self.backend.watch_gradient(shaken, lambda gradient: self._moved_gradient(gradient, amount))
        return shaken

    def _moved_gradient(self, gradient: Any, amount: float) -> Any:
        return self.backend.from_array(_shake(self.backend.to_array(gradient, copy=False), amount))


def _shake(array: Array, amount: float) -> Array:
    """Relative noise of the elements' own size and of the typical size, with random signs."""
    if not array.size:
        return array
    wide = array.astype(np.float32 if array.dtype.itemsize <= 4 else array.dtype, copy=False)
    typical = float(np.sqrt(np.mean(np.square(np.abs(wide), dtype=np.float64))))
    signs = np.resize(_SIGNS, array.size).reshape(array.shape)
    return (wide + signs * (amount * typical)).astype(array.dtype)
