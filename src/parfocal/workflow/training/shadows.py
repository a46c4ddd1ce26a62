"""How exact an update is that computes its loss several times: the reference's own, begun a little beside.

Such an update (LBFGS) follows no rule that could be computed again from one gradient. Its rounding is
measured instead: the reference makes the same step from weights moved by one unit in the last place. Where
the port cannot be given what the reference's optimizer remembers, it remembers its own steps, and so do they.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.judge import limits
from parfocal.workflow.training.judging import moved
from parfocal.workflow.training.sides import Arrays, TrainingSide

COUNT = limits.verdicts.SHADOWS.value
SEED = 20240305


@dataclass(slots=True)
class ShadowUpdates:
    """The reference's updates from moved weights."""

    side: TrainingSide
    states: list[Any] = field(default_factory=list)  # of the optimizer, one for every shadow
    counters: list[dict[str, Any]] = field(default_factory=list)
    generator: np.random.Generator = field(default_factory=lambda: np.random.default_rng(SEED))

    def run(self, *, led: bool) -> list[Arrays]:
        """Weights after the present step, one set for every shadow; the reference is as it was.

        ``led``: every step begins with what the reference remembers.
        """
        side, backend = self.side, self.side.backend
        if led or not self.states:
            self.states = [backend.copied_optimizer_state(side.optimizer) for _ in range(COUNT)]
            self.counters = [side.counters() for _ in range(COUNT)]
        weights, buffers = side.arrays("parameter", copy=True), side.arrays("buffer", copy=True)
        found = []
        for number in range(COUNT):
            before = backend.exchange_optimizer_state(side.optimizer, self.states[number])
            own = side.counters()
            side.set_counters(self.counters[number])
            try:
                with backend.gradients_kept(side.model):
                    self._write(
                        {path: moved(each, self.generator) for path, each in weights.items()}, buffers
                    )
                    side.update()
                    found.append(side.arrays("parameter", copy=True))
            finally:
                self.states[number] = backend.exchange_optimizer_state(side.optimizer, before)
                self.counters[number] = side.counters()
                side.set_counters(own)
                self._write(weights, buffers)
        return found

    def _write(self, weights: Arrays, buffers: Arrays) -> None:
        for role, arrays in (("parameter", weights), ("buffer", buffers)):
            for path, tensor in self.side.tensors(role).items():
                self.side.backend.write(tensor, arrays[path])
