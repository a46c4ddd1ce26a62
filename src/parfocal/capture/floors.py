"""How far each call of a model that follows another run moves by rounding alone.

When a call of the whole model is over, it is made once more without gradients: every call inside is fed
the same recorded values, each moved by one unit in the last place, and what it gives is compared with
what it gave before. The difference is the noise of that call's own code; it is recorded beside the values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.keeping import attributes_kept
from parfocal.backends.protocol import Array, Call
from parfocal.capture.follow import RunFollower
from parfocal.capture.nested_values import FlatValue, flatten, flatten_call, replace, replace_call
from parfocal.capture.session import Session
from parfocal.judge.floors import EPSILON, difference
from parfocal.run.records import CallRecord, FloorRecord


@dataclass(frozen=True, slots=True)
class _Made:
    """A call of the first time: its counterpart in the other run, what it was to take and what it gave."""

    path: str
    order: int
    counterpart: CallRecord | None
    inputs: dict[str, Array]
    outputs: dict[str, Array] = field(default_factory=dict)


class FloorPass:
    """Remembers the calls of one call of the model, and makes them once more."""

    def __init__(self, session: Session, follower: RunFollower) -> None:
        self._session = session
        self._follower = follower
        self._begun: dict[int, int] = {}  # the watch's number of a call -> its place
        self._made: dict[int, _Made] = {}  # by the place in the order in which calls began
        self._count = 0
        self._under_way: list[int] | None = None  # places of the calls of the second time
        self._random = np.random.default_rng(0)

    @property
    def running(self) -> bool:
        return self._under_way is not None

    def skip(self, call: Call) -> None:
        """A call that is not recorded has its place in the order all the same."""
        if call.depth == 0:
            self._forget()
        self._count += 1

    def _forget(self) -> None:
        self._made.clear()
        self._begun.clear()
        self._count = 0

    def note_begin(self, call: Call, order: int, inputs: FlatValue, counterpart: CallRecord | None) -> None:
        if call.depth == 0:
            self._forget()
        self._begun[call.order] = self._count
        self._made[self._count] = _Made(call.path, order, counterpart, self._arrays(inputs))
        self._count += 1

    def _arrays(self, flat: FlatValue) -> dict[str, Array]:
        backend = self._session.backend
        return {
            slot: backend.to_array(leaf)
            for slot, leaf in flat.leaves.items()
            if backend.is_tensor(leaf) and backend.dtype(leaf) in EPSILON
        }

    def note_end(self, call: Call, outputs: FlatValue) -> None:
        """A call returned what its own code gives; of the outermost one the second time follows."""
        place = self._begun.pop(call.order, None)
        if place is None:
            return
        self._made[place].outputs.update(self._arrays(outputs))
        if call.depth == 0:
            self._repeat(call)
            self._forget()

    def enter(self, call: Call) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """A call begins for the second time: it is fed the same values, moved."""
        assert self._under_way is not None
        place = self._count
        self._count += 1
        self._under_way.append(place)
        made = self._made.get(place)
        if made is None or made.path != call.path or made.counterpart is None:
            return None
        inputs = flatten_call(call.args, call.kwargs)
        self._record(made.order, "input", made.inputs, inputs)
        fed = self._moved(inputs, made.counterpart.inputs.leaves)
        return replace_call(call.args, call.kwargs, fed) if fed else None

    def leave(self, call: Call, output: Any) -> Any:
        """It returned: what rounding changed is recorded, and the recorded values, moved, go on."""
        assert self._under_way is not None
        made = self._made.get(self._under_way.pop())
        if made is None or made.path != call.path:
            return None
        outputs = flatten(output)
        self._record(made.order, "output", made.outputs, outputs)
        if made.counterpart is None:
            return None
        fed = self._moved(outputs, made.counterpart.outputs.leaves)
        return replace(output, fed) if fed else None

    def _record(self, order: int, side: str, arrays: dict[str, Array], flat: FlatValue) -> None:
        session = self._session
        for slot, first in arrays.items():
            leaf = flat.leaves.get(slot)
            if leaf is None or not session.backend.is_tensor(leaf):
                continue
            second = session.backend.to_array(leaf, copy=False)
            if second.shape == first.shape:
                size = difference(second, first)
                session.writer.append(
                    FloorRecord(order, side, slot, size.rms, size.peak, session.steps.step, session.rank)
                )

    def _moved(self, flat: FlatValue, leaves: Any) -> dict[str, Any]:
        """The recorded values of a call's tensors, each moved by one unit in the last place."""
        backend = self._session.backend
        return {
            slot: backend.substitute(flat.leaves[slot], self._shaken(array))
            for slot, array in self._follower.arrays(flat, leaves).items()
            if backend.dtype(flat.leaves[slot]) in EPSILON
        }

    def _shaken(self, array: Array) -> Array:
        step = EPSILON[array.dtype.name] * (2.0 * self._random.integers(0, 2, size=array.shape) - 1.0)
        return (array.astype(np.float64) * (1.0 + step)).astype(array.dtype)

    def _repeat(self, call: Call) -> None:
        """The outermost call once more; the model and its random numbers are left as they are."""
        backend, model = self._session.backend, self._session.model
        buffers = [(each.value, backend.to_array(each.value)) for each in _buffers(backend, model)]
        random = backend.rng_state()
        self._under_way, self._count = [], 0
        try:
            with backend.no_grad(), attributes_kept(backend, model):
                call.module(*call.args, **call.kwargs)
        finally:
            self._under_way = None
            backend.set_rng_state(random)
            for tensor, array in buffers:
                backend.write(tensor, array)


def _buffers(backend: Any, model: Any) -> list[Any]:
    return [each for each in backend.state(model) if each.role == "buffer" and each.tied_to is None]
