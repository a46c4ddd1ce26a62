"""Feeding a model what another run recorded, call by call, so that each call's own error shows.

A call that has a counterpart in the other run gets that run's inputs; what it computes is
recorded and then replaced by what the other run's call gave, and going backward its output
gradients are replaced likewise. So an error never travels further than the code around it.

Counterparts are found while the model runs: same kind (or both people's own) and shapes, nearby in
the order of calls, of equal value as far as that can be seen; calls that only one side has are passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend, Call
from parfocal.backends.vocabulary import kinds_of_layers
from parfocal.capture.nested_values import FlatValue
from parfocal.errors import InputError
from parfocal.judge import limits
from parfocal.judge.layouts import SAME, Layout, distance, fit, layouts, same_extents
from parfocal.phrases import phrase
from parfocal.run.reader import Run, load_run
from parfocal.run.records import CallRecord, GradientRecord, TensorValue

BEHIND = limits.pairing.FOLLOWED_BEHIND.value
AHEAD = limits.pairing.FOLLOWED_AHEAD.value
OTHER = limits.pairing.FOLLOWED_OTHER.value

Exchange = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class FollowedCall:
    """The other run's call, and its place in the order of that run's step."""

    place: int
    record: CallRecord


class RunFollower:
    """Finds counterparts in one run and hands out their values."""

    def __init__(self, run: Run | str | PathLike[str], backend: Backend) -> None:
        self._run = run if isinstance(run, Run) else load_run(run)
        self._backend = backend
        if self._run.header.tensors != "full":
            raise InputError(
                phrase(
                    "the run in {path} was recorded with tensors={tensors}: it has no values to follow",
                    path=self._run.path,
                    tensors=repr(self._run.header.tensors),
                ),
                hint=phrase('record it with tensors="full"'),
            )
        rank = min(self._run.ranks, default=0)
        self._steps: dict[int, list[CallRecord]] = {}
        for record in sorted(self._run.calls(rank), key=lambda call: call.order):
            if record.op is None:
                self._steps.setdefault(record.step, []).append(record)
        self._gradients: dict[tuple[int, str], list[GradientRecord]] = {}
        for gradient in self._run.gradients(rank):
            if gradient.side == "output" and gradient.value is not None:
                self._gradients.setdefault((gradient.call, gradient.slot), []).append(gradient)
        if not self._steps:
            raise InputError(phrase("the run in {path} has no calls to follow", path=self._run.path))
        self._found: dict[int, FollowedCall] = {}  # calls under way
        self._step: int | None = None
        self._used: set[int] = set()
        self._last = -1

    def begin(
        self, call: Call, kind: str, inputs: FlatValue, step: int
    ) -> tuple[CallRecord | None, dict[str, Any]]:
        """The counterpart of a call that begins, and its inputs by slot."""
        if step != self._step:
            self._step, self._last = step, -1
            self._used.clear()
            self._found.clear()
        found = self._find(call, kind, inputs)
        if found is None:
            return None, {}
        self._used.add(found.place)
        self._last = found.place
        self._found[call.order] = found
        return found.record, self._exchanged(inputs, found.record.inputs.leaves)

    def end(self, call: Call, outputs: FlatValue) -> tuple[dict[str, Any], dict[str, Exchange]]:
        """What a call that returned is taken to have given, and what to make of its gradients."""
        found = self._found.pop(call.order, None)
        if found is None:
            return {}, {}
        leaves = found.record.outputs.leaves
        exchanges = {
            slot: self._gradient_exchange(tensor, found.record, other)
            for slot, (tensor, other) in self._pairs(outputs, leaves).items()
            if self._gradients.get((found.record.order, other))
        }
        return self._exchanged(outputs, leaves), exchanges

    def arrays(self, flat: FlatValue, leaves: Mapping[str, Any]) -> dict[str, Array]:
        """The recorded values that stand for a call's tensors, laid out as those are, by their slots."""
        return {
            slot: self._side_by_side(tensor, leaves[other])[1]
            for slot, (tensor, other) in self._pairs(flat, leaves).items()
        }

    # Finding the counterpart.

    def _find(self, call: Call, kind: str, inputs: FlatValue) -> FollowedCall | None:
        records = self._steps.get(self._step or 0, [])
        expected = self._last + 1
        name = call.path.rpartition(".")[2]
        candidates = [
            FollowedCall(place, records[place])
            for place in range(max(0, expected - BEHIND), min(len(records), expected + AHEAD))
            if place not in self._used and may_correspond(records[place].kind, kind)
        ]
        candidates.sort(
            key=lambda found: (
                found.record.kind != kind and found.record.path != call.path,
                found.record.path != call.path,
                found.record.path.rpartition(".")[2] != name,
                abs(found.place - expected),
            )
        )
        return self._nearest(candidates, inputs, call.path, expected)

    def _nearest(
        self, candidates: list[FollowedCall], inputs: FlatValue, path: str, expected: int
    ) -> FollowedCall | None:
        """The first candidate of the same inputs; failing that the nearest, if it may be the one."""
        best, nearest = None, np.inf
        for candidate in candidates:
            apart = self._apart(inputs, candidate.record)
            if apart is None:
                continue
            if apart < SAME:
                return candidate
            if best is None or apart < nearest:
                best, nearest = candidate, apart
        if best is None or nearest < OTHER:
            return best
        fits = (each for each in candidates if each.record.path == path or each.place == expected)
        return next((each for each in fits if self._apart(inputs, each.record) is not None), None)

    def _apart(self, inputs: FlatValue, record: CallRecord) -> float | None:
        """Relative distance of the inputs; None when they cannot be those of the same call."""
        own = [leaf for leaf in inputs.leaves.values() if self._backend.is_tensor(leaf)]
        pairs = self._pairs(inputs, record.inputs.leaves)
        if not pairs:
            return None if own else 0.0
        worst = 0.0
        for tensor, other in pairs.values():
            live, arranged = self._side_by_side(tensor, record.inputs.leaves[other])
            worst = max(worst, distance(arranged, live))
        return worst

    # Exchanging values.

    def _pairs(self, flat: FlatValue, leaves: Mapping[str, Any]) -> dict[str, tuple[Any, str]]:
        """Own slot -> its tensor and the slot of the other run's tensor that stands for it.

        The same slot if it fits, else the first one that fits: arguments may be given by
        position on one side and by keyword on the other. Booleans are left alone: whether True
        stands for masked or for kept differs between frameworks.
        """
        free = {slot: leaf for slot, leaf in leaves.items() if isinstance(leaf, TensorValue)}
        found: dict[str, tuple[Any, str]] = {}
        for slot, tensor in flat.leaves.items():
            if not self._backend.is_tensor(tensor):
                continue
            for other in ([slot] if slot in free else []) + list(free):
                if self._fits(tensor, free[other]):
                    found[slot] = (tensor, other)
                    del free[other]
                    break
        return found

    def _fits(self, tensor: Any, value: TensorValue) -> bool:
        own, other = _family(self._backend.dtype(tensor)), _family(value.dtype)
        shape = self._backend.shape(tensor)
        alike = same_extents(shape, value.shape) and bool(layouts(value.shape, shape))
        return own == other != "other" and value.ref is not None and alike

    def _exchanged(self, flat: FlatValue, leaves: Mapping[str, Any]) -> dict[str, Any]:
        exchanged = {}
        for slot, (tensor, other) in self._pairs(flat, leaves).items():
            live, arranged = self._side_by_side(tensor, leaves[other])
            if _family(self._backend.dtype(tensor)) == "floating" or not np.array_equal(arranged, live):
                exchanged[slot] = self._backend.substitute(tensor, arranged)
        return exchanged

    def _gradient_exchange(self, tensor: Any, record: CallRecord, slot: str) -> Exchange:
        """Gives the other run's gradients of an output, one for each backward pass."""
        # The axes of a gradient lie as those of its value do.
        value: Any = record.outputs.leaves[slot]
        layout = _layout(self._run.read(value), self._backend.to_array(tensor, copy=False))
        waiting = iter(self._gradients[record.order, slot])

        def exchange(gradient: Any) -> Any:
            recorded = next(waiting, None)
            if recorded is None or recorded.value is None:
                return None
            return self._backend.substitute(gradient, layout.apply(self._run.read(recorded.value)))

        return exchange

    def _side_by_side(self, tensor: Any, value: Any) -> tuple[Array, Array]:
        """A tensor's values, and the recorded ones laid out alike."""
        live = self._backend.to_array(tensor, copy=False)
        recorded = self._run.read(value)
        return live, _layout(recorded, live).apply(recorded)


def may_correspond(kind: str, other: str) -> bool:
    """Layers of one kind; people's own modules are called by any name."""
    return kind == other or not {kind, other} & kinds_of_layers().keys()


def _layout(recorded: Array, live: Array) -> Layout:
    found = fit(recorded, live)
    assert found is not None  # what has none fits no slot
    return found


def _family(dtype: str) -> str:
    if dtype.startswith(("float", "bfloat")):
        return "floating"
    return "integer" if dtype.startswith(("int", "uint")) else "other"
