"""The noise floor of recorded calls, in three questions of rising cost.

*Moved*: the call again with everything moved by one unit in the last place; how far does that
carry? *Exact*: the call again in float64; how far was the reference's own result from it?
*Vanishes*: both calls again in float64; a mistake stays, rounding is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import told
from parfocal.errors import ParfocalError
from parfocal.judge.floors import EPSILON, NOTHING, Size, difference
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Place, Repeated, Repeater
from parfocal.replay.trace import Data, Trace

# Of a rounding error less than this share is left when both sides compute in float64.
LEFT_OVER = 0.02
TRIALS = 4  # a few numbers need several random trials before their spread is known
FEW = 64
_SIGNS = np.random.Generator(np.random.PCG64(20240229)).choice(np.array([-1.0, 1.0]), 65537 * TRIALS)


class Precise:
    """Asks these questions of a recorded reference and its port; ``problems``: what cannot be asked."""

    def __init__(
        self, reference: Repeater, port: Repeater, gradients: Mapping[str, Array], ledger: Ledger
    ) -> None:
        self.reference = reference
        self.port = port
        self.gradients = gradients  # of the reference's parameters, as recorded
        self.ledger = ledger
        self.problems: list[str] = []
        self._known: dict[tuple[str, tuple[int, ...]], Any] = {}

    def moved(self, calls: Sequence[int], place: Place) -> Size:
        trials = self._trials(calls, lambda trial: trial.places.get(place))
        return _typical([difference(array, self.at(place)) for array in trials])

    def moved_parameter(self, calls: Sequence[int], path: str) -> Size:
        trials = self._trials(calls, lambda trial: trial.parameters.get(path))
        return _typical([difference(array, self.gradients[path]) for array in trials])

    def still(self, calls: Sequence[int], place: Place) -> Size:
        """How far the call, repeated as it was, is from what was recorded: more than itself may make it."""
        found = self._once("still", calls, self._unmoved)
        return difference(found.places[place], self.at(place)) if place in found.places else NOTHING

    def draws(self, calls: Sequence[int], place: Place) -> bool:
        """Whether what the call gives hangs on the state of the random generator."""
        found = [self._once(f"seeded {seed}", calls, partial(self._seeded, seed=seed)) for seed in range(2)]
        one, other = (each.places.get(place) for each in found)
        return one is not None and other is not None and not np.array_equal(one, other, equal_nan=True)

    def result_parameter(self, calls: Sequence[int], path: str) -> Array | None:
        """The gradient of a parameter by the call, repeated as it was."""
        found: Repeated = self._once("still", calls, self._unmoved)
        return found.parameters.get(path)

    def still_parameter(self, calls: Sequence[int], path: str) -> Size:
        """The same of a parameter's gradient: code around its layer may use it too."""
        found = self.result_parameter(calls, path)
        return NOTHING if found is None else difference(found, self.gradients[path])

    def moved_alike(
        self, calls: Sequence[int], place: Place, port_calls: Sequence[int], port_place: Place
    ) -> Size:
        """The larger of *moved* of both sides, with equal values moved alike: what was a tie stays one."""
        ours = self._once("alike moved", calls, lambda calls: self._alike(self.reference, calls))
        theirs = self._once("port alike moved", port_calls, lambda calls: self._alike(self.port, calls))
        size = NOTHING
        for trials, at in ((ours, place), (theirs, port_place)):
            if trials and at in trials[0].places:
                still = trials[0].places[at]
                size |= _typical([difference(t.places[at], still) for t in trials[1:] if at in t.places])
        return size

    def exact(self, calls: Sequence[int], place: Place) -> Size:
        found = self._once("exact", calls, self._in_float64)
        return difference(self.at(place), found.places[place]) if place in found.places else NOTHING

    def exact_freely(self, calls: Sequence[int], place: Place) -> Size:
        """The same with nothing led along inside: what rounding adds up to from one end to the other."""
        found = self._once("exact freely", calls, self._freely_in_float64)
        return difference(self.at(place), found.places[place]) if place in found.places else NOTHING

    def exact_parameter(self, calls: Sequence[int], path: str) -> Size:
        found = self._once("exact", calls, self._in_float64)
        return (
            difference(self.gradients[path], found.parameters[path]) if path in found.parameters else NOTHING
        )

    def port_result(self, calls: Sequence[int], place: Place) -> Array | None:
        """What the port's call gives on the reference's values."""
        found: Repeated = self._once("port still", calls, self._port_unmoved)
        return found.places.get(place)

    def port_made(self, order: int | None, place: Place) -> Array | None:
        """What the port's own code makes there: the next call around that can be repeated shows it."""
        while order is not None:
            made = self.port_result([order], place)
            if made is not None:
                return made
            order = self.port.trace.nodes[order].parent
        return None

    def port_moved(self, calls: Sequence[int], place: Place) -> Size:
        """How far the port's own result moves, where a flip (a ReLU inside the call) may hang on one unit."""
        still = self.port_result(calls, place)
        if still is None:
            return NOTHING
        trials = self._once("port moved", calls, self._port_trials)
        return _typical([difference(t.places[place], still) for t in trials if place in t.places])

    def port_result_parameter(self, calls: Sequence[int], path: str) -> Array | None:
        found: Repeated = self._once("port still", calls, self._port_unmoved)
        return found.parameters.get(path)

    def port_moved_parameter(self, calls: Sequence[int], path: str) -> Size:
        still = self.port_result_parameter(calls, path)
        if still is None:
            return NOTHING
        trials = self._once("port moved", calls, self._port_trials)
        return _typical([difference(t.parameters[path], still) for t in trials if path in t.parameters])

    def vanishes(
        self, calls: Sequence[int], place: Place, port_calls: Sequence[int], port_place: Place, error: Size
    ) -> bool:
        ours = self._once("exact", calls, self._in_float64).places.get(place)
        theirs = self._once("port", port_calls, self._port_in_float64).places.get(port_place)
        if ours is None or theirs is None:
            return False
        layout = self.port.script.layouts.get(port_place[:3])
        return is_gone(difference(theirs, ours if layout is None else layout.apply(ours)), error)

    def vanishes_parameter(
        self,
        calls: Sequence[int],
        path: str,
        port_calls: Sequence[int],
        port_path: str,
        views: tuple[Callable[[Array], Array], Callable[[Array], Array]],
        error: Size,
    ) -> bool:
        ours = self._once("exact", calls, self._in_float64).parameters.get(path)
        theirs = self._once("port", port_calls, self._port_in_float64).parameters.get(port_path)
        if ours is None or theirs is None:
            return False
        return is_gone(difference(views[1](theirs), views[0](ours)), error)

    def _once(self, question: str, calls: Sequence[int], ask: Callable[[Sequence[int]], Any]) -> Any:
        """Each question about each call is asked once; what the framework refuses is noted."""
        key = (question, tuple(calls))
        if key not in self._known:
            try:
                self._known[key] = ask(calls)
            except ParfocalError as error:
                self._refused(key, calls, error.message)
            except Exception as error:  # noqa: BLE001  whatever a framework raises for a missing kernel
                self._refused(key, calls, told(error))
        return self._known[key]

    def _refused(self, key: tuple[str, tuple[int, ...]], calls: Sequence[int], reason: str) -> None:
        trace = self.port.trace if key[0].startswith("port") else self.reference.trace
        self._known[key] = [] if key[0].endswith("moved") else Repeated()
        problem = f"{trace.nodes[calls[0]].path or 'the model'}: {reason}"
        if problem not in self.problems:
            self.problems.append(problem)

    def _unmoved(self, calls: Sequence[int]) -> Repeated:
        return self.reference.repeat(calls, None, self.recorded)

    def _seeded(self, calls: Sequence[int], seed: int) -> Repeated:
        backend = self.reference.backend
        state = backend.rng_state()
        try:
            backend.seed(seed)
            return self._unmoved(calls)
        finally:
            backend.set_rng_state(state)

    def _alike(self, repeater: Repeater, calls: Sequence[int]) -> list[Repeated]:
        return [
            repeater.repeat(calls, None, self.recorded),
            *(
                repeater.repeat(calls, None, lambda data, trial=trial: self._moved_by_value(data, trial))  # type: ignore[misc]
                for trial in range(TRIALS)
            ),
        ]

    def _trials(self, calls: Sequence[int], of: Callable[[Repeated], Array | None]) -> list[Array]:
        """One array of the call with everything moved; several times, if it has few numbers."""
        trials = self._once("moved", calls, lambda calls: self._moved_trials(calls, range(1)))
        found = [array for array in map(of, trials) if array is not None]
        if not found or found[0].size >= FEW:
            return found
        further = self._once(
            "further moved", calls, lambda calls: self._moved_trials(calls, range(1, TRIALS))
        )
        return [*found, *(array for array in map(of, further) if array is not None)]

    def _moved_trials(self, calls: Sequence[int], trials: range) -> list[Repeated]:
        return [
            self.reference.repeat(calls, None, lambda data, trial=trial: self._moved(data, trial))  # type: ignore[misc]
            for trial in trials
        ]

    def _port_trials(self, calls: Sequence[int]) -> list[Repeated]:
        return [
            self.port.repeat(calls, None, lambda data, trial=trial: self._moved(data, trial))  # type: ignore[misc]
            for trial in range(TRIALS)
        ]

    def _port_unmoved(self, calls: Sequence[int]) -> Repeated:
        return self.port.repeat(calls, None, self.recorded)

    def _in_float64(self, calls: Sequence[int]) -> Repeated:
        return self.reference.repeat(calls, "float64", self._float64)

    def _freely_in_float64(self, calls: Sequence[int]) -> Repeated:
        return self.reference.repeat(calls, "float64", self._float64, inside=False, backward=False)

    def _port_in_float64(self, calls: Sequence[int]) -> Repeated:
        return self.port.repeat(calls, "float64", self._float64)

    def at(self, place: Place) -> Array:
        order, side, slot, direction = place
        node = self.reference.trace.nodes[order]
        value = (node.inputs if side == "input" else node.outputs)[slot]
        data = value.data if direction == "forward" else value.gradient
        assert data is not None
        return self.recorded(data)

    def recorded(self, data: Data) -> Array:
        assert data.stored is not None
        return self.ledger.get(data.stored)

    def _float64(self, data: Data) -> Array:
        array = self.recorded(data)
        return _wide(array) if data.dtype in FLOATING else array

    def _moved(self, data: Data, trial: int) -> Array:
        array = self.recorded(data)
        if data.dtype not in FLOATING or _is_exact(array):
            return array
        signs = _signs(array.size, trial).reshape(array.shape)
        return (_wide(array) * (1.0 + EPSILON[data.dtype] * signs)).astype(array.dtype)

    def _moved_by_value(self, data: Data, trial: int) -> Array:
        """As above, but the sign hangs on the value instead of on the place."""
        array = self.recorded(data)
        if data.dtype not in FLOATING or array.dtype.kind == "c" or _is_exact(array):
            return self._moved(data, trial)
        wide = array.astype(np.float64)
        mixed = wide.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40 + trial)
        signs = np.where(mixed & np.uint64(1), 1.0, -1.0)
        return (wide * (1.0 + EPSILON[data.dtype] * signs)).astype(array.dtype)


def _wide(array: Array) -> Array:
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _signs(count: int, trial: int) -> Array:
    """As many signs as wanted, from another place on for every trial; a short row is taken as it lies."""
    start = 65537 * trial % _SIGNS.size
    if start + count <= _SIGNS.size:
        return _SIGNS[start : start + count]
    return np.resize(np.roll(_SIGNS, -start), count)


def _is_exact(array: Array) -> bool:
    """Labels and masks are what they are, whatever dtype they come in."""
    return bool(np.array_equal(array, np.rint(array)))


def calls_of_owner(trace: Trace, path: str) -> list[int]:
    """The calls that make a parameter's gradient: of its module, or of the next one around that is called."""
    owner = path.rpartition(".")[0]
    while True:
        calls = [node.order for node in trace.nodes if node.path == owner]
        if calls or not owner:
            return calls
        owner = owner.rpartition(".")[0]


def _typical(sizes: list[Size]) -> Size:
    if not sizes:
        return NOTHING
    rms = float(np.sqrt(np.mean([size.rms**2 for size in sizes])))
    return Size(rms, max(size.peak for size in sizes))


def is_gone(left: Size, error: Size) -> bool:
    """Whether next to nothing of an error is left in float64."""
    return left.rms <= LEFT_OVER * error.rms and left.peak <= LEFT_OVER * error.peak
