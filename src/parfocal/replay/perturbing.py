"""How far rounding carries through a whole model.

The reference runs again while every layer's output, and every gradient that arrives there, is
moved by as much as two correct implementations of that layer may differ. What then moves at the
end is the noise floor of the whole model: deep networks amplify.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Call
from parfocal.capture.nested_values import flatten, replace
from parfocal.judge.floors import size_of
from parfocal.replay.observe import FLOATING
from parfocal.replay.trace import Trace, Value

_SIGNS = np.random.Generator(np.random.PCG64(20240301)).choice(np.array([-1.0, 1.0], np.float32), 65537)


class Perturber:
    """Callbacks for ``Backend.watch``; ``trace`` is that of the same model on the same inputs.

    ``amounts``: order of a call -> noise relative to the typical size of its output.
    """

    def __init__(self, backend: Backend, trace: Trace, amounts: Mapping[int, float]) -> None:
        self.backend = backend
        self.trace = trace
        self.amounts = amounts

    def on_exit(self, call: Call, output: Any) -> Any:
        amount = self.amounts.get(call.order)
        if amount is None:
            return None
        recorded = self.trace.nodes[call.order].outputs
        moved = {
            slot: self._moved(leaf, recorded[slot], amount)
            for slot, leaf in flatten(output).leaves.items()
            if slot in recorded and recorded[slot].data.dtype in FLOATING
        }
        return replace(output, moved)

    def _moved(self, tensor: Any, value: Value, amount: float) -> Any:
        array = self.backend.to_array(tensor, copy=False)
        shaken = self.backend.substitute(tensor, _shake(array, amount * value.data.size.rms), copy=False)
        if value.gradient is not None:
            self.backend.watch_gradient(shaken, partial(self._moved_gradient, amount))
        return shaken

    def _moved_gradient(self, amount: float, gradient: Any) -> Any:
        array = self.backend.to_array(gradient, copy=False)
        return self.backend.from_array(_shake(array, amount * size_of(array).rms), copy=False)


def _shake(array: Array, noise: float) -> Array:
    """The array with noise of this size and random signs added; the period falls in step with no axis."""
    wide = np.array(
        array, np.result_type(array.dtype, np.float32) if array.dtype.kind in "fc" else np.float32
    )
    flat = wide.reshape(-1)
    step = (_SIGNS * noise).astype(wide.dtype)
    for start in range(0, flat.size, step.size):
        part = flat[start : start + step.size]
        part += step[: part.size]
    return wide.astype(array.dtype, copy=False)
