"""The noise floor of recorded calls, by running them again.

A call of the reference is repeated by a twin of its module on the recorded inputs and output
gradients. With everything moved by one unit in the last place: how far does that carry? In
float64: how far is the reference's own result from the exact one? The twin is led along the
recorded values inside as well, so that the code of a container is measured apart from the layers
in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array, Backend
from parfocal.capture.tree import flatten, replace_call
from parfocal.errors import ParfocalError
from parfocal.judge.floors import EPSILON, NOTHING, Size, difference
from parfocal.replay.follow import Direction, Follower, Side, Sighting, Supply, Tie
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import FLOATING
from parfocal.replay.trace import Data, Node, Trace

Place = tuple[int, Side, str, Direction]  # order of the reference's call, side, slot, direction
_SIGNS = np.random.Generator(np.random.PCG64(20240229)).choice(np.array([-1.0, 1.0]), 65537)


@dataclass(frozen=True, slots=True)
class Floors:
    """What could not be avoided, at each place of a call and for each parameter's gradient."""

    places: Mapping[Place, Size] = field(default_factory=dict)
    parameters: Mapping[str, Size] = field(default_factory=dict)


@dataclass(slots=True)
class _Observed:
    places: dict[Place, Array] = field(default_factory=dict)
    parameters: dict[str, Array] = field(default_factory=dict)


class Precise:
    """Repeats calls of one recorded reference; ``problems`` names those that could not be."""

    def __init__(
        self, backend: Backend, model: Any, trace: Trace, gradients: Mapping[str, Array], ledger: Ledger
    ) -> None:
        self.backend = backend
        self.modules = backend.modules(model)
        self.trace = trace
        self.gradients = gradients
        self.ledger = ledger
        self.problems: list[str] = []
        self._known: dict[tuple[tuple[int, ...], bool], Floors] = {}

    def floors(self, calls: Iterable[int], *, exact: bool) -> Floors:
        """Of one or several calls of the same module (their parameter gradients add up).

        ``exact`` repeats in float64, as recorded and moved; otherwise once, in the model's own dtype.
        """
        key = (tuple(calls), exact)
        if key not in self._known:
            self._known[key] = self._measured(list(key[0]), exact)
        return self._known[key]

    def parameter_floor(self, path: str, *, exact: bool) -> Size:
        """Of one parameter's gradient, over all calls of the module that owns it."""
        owner = path.rpartition(".")[0]
        calls = [node.order for node in self.trace.nodes if node.path == owner]
        while not calls and owner:  # a module that is never called itself: its user is
            owner = owner.rpartition(".")[0]
            calls = [node.order for node in self.trace.nodes if node.path == owner]
        return self.floors(calls, exact=exact).parameters.get(path, NOTHING) if calls else NOTHING

    def _measured(self, calls: list[int], exact: bool) -> Floors:
        try:
            if exact:
                return self._floors_in_float64(calls)
            return self._floors_in_own_dtype(calls)
        except ParfocalError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001  whatever the framework raises for a missing kernel
            reason = next(iter(str(error).strip().splitlines()), repr(error))
        problem = f"{self.trace.nodes[calls[0]].path or 'the model'}: {reason}"
        if problem not in self.problems:
            self.problems.append(problem)
        return Floors()

    def _floors_in_own_dtype(self, calls: list[int]) -> Floors:
        moved = self._repeat(calls, None, self._moved)
        return Floors(
            {place: difference(array, self._at(place)) for place, array in moved.places.items()},
            {
                path: difference(array, self.gradients[path])
                for path, array in moved.parameters.items()
                if path in self.gradients
            },
        )

    def _floors_in_float64(self, calls: list[int]) -> Floors:
        plain = self._repeat(calls, "float64", self._recorded)
        moved = self._repeat(calls, "float64", self._moved)
        return Floors(
            {
                place: difference(self._at(place), array) | _moved_by(moved.places.get(place), array)
                for place, array in plain.places.items()
            },
            {
                path: difference(self.gradients[path], array) | _moved_by(moved.parameters.get(path), array)
                for path, array in plain.parameters.items()
                if path in self.gradients
            },
        )

    def _repeat(
        self, calls: list[int], dtype: str | None, values: Callable[[Data, str | None], Array]
    ) -> _Observed:
        observed = _Observed()
        first = self.trace.nodes[calls[0]]
        twin = self.backend.copy_as(self.modules[first.path], dtype)
        state = self.backend.rng_state()
        try:
            for order in calls:
                self._follow(twin, self.trace.nodes[order], lambda data: values(data, dtype), observed)
                self._add_parameter_gradients(twin, first.path, observed)
        finally:
            self.backend.set_rng_state(state)
        return observed

    def _follow(self, twin: Any, node: Node, supply: Supply, observed: _Observed) -> None:
        script = {
            index: Tie(call.inputs, call.outputs, call.in_place)
            for index, call in enumerate(self.trace.subtree(node.order))
        }

        def report(sighting: Sighting) -> None:
            if sighting.observed is not None:
                place = (node.order + sighting.order, sighting.side, sighting.slot, sighting.direction)
                observed.places[place] = sighting.observed.copy()

        gradients = any(value.gradient is not None for value in node.outputs.values())
        follower = Follower(self.backend, script, supply, report, gradients=gradients)
        args, kwargs = self._arguments(node, supply, gradients)
        follower.run(twin, args, kwargs, self._driver(node, supply, gradients))

    def _arguments(
        self, node: Node, supply: Supply, gradients: bool
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        tensors = {}
        for slot, value in node.inputs.items():
            wanted = gradients and value.differentiable
            tensor = self.backend.from_array(supply(value.data), requires_grad=wanted)
            # a leaf cannot be changed in place, its alias can
            tensors[slot] = self.backend.alias(tensor) if wanted else tensor
        args, kwargs = node.arguments
        return replace_call(args, kwargs, tensors)

    def _driver(self, node: Node, supply: Supply, gradients: bool) -> Callable[[Any], None]:
        def drive(output: Any) -> None:
            if not gradients:
                return
            leaves = flatten(output).leaves
            wanted = {
                slot: value.gradient for slot, value in node.outputs.items() if value.gradient is not None
            }
            seeds = [self.backend.from_array(supply(gradient)) for gradient in wanted.values()]
            self.backend.backward([leaves[slot] for slot in wanted], seeds)

        return drive

    def _add_parameter_gradients(self, twin: Any, path: str, observed: _Observed) -> None:
        for entry in self.backend.state(twin):
            if entry.role != "parameter":
                continue
            array = self.backend.gradient(entry.value)
            if array is not None:
                whole = f"{path}.{entry.path}" if path else entry.path
                observed.parameters[whole] = observed.parameters.get(whole, 0) + array

    def _at(self, place: Place) -> Array:
        order, side, slot, direction = place
        node = self.trace.nodes[order]
        value = (node.inputs if side == "input" else node.outputs)[slot]
        data = value.data if direction == "forward" else value.gradient
        assert data is not None
        return self._recorded(data, None)

    def _recorded(self, data: Data, dtype: str | None) -> Array:
        assert data.stored is not None
        array = self.ledger.get(data.stored)
        return array.astype(dtype) if dtype and data.dtype in FLOATING else array

    def _moved(self, data: Data, dtype: str | None) -> Array:
        array = self._recorded(data, None)
        if data.dtype not in FLOATING:
            return array
        wide = array.astype(np.float64)
        wide *= 1.0 + EPSILON[data.dtype] * np.resize(_SIGNS, array.size).reshape(array.shape)
        return wide.astype(dtype or array.dtype)


def _moved_by(moved: Array | None, exact: Array) -> Size:
    return NOTHING if moved is None else difference(moved, exact)
