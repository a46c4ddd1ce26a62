"""The noise floor of recorded calls, in three questions of rising cost.

*Moved*: the call again with everything moved by one unit in the last place; how far does that
carry? *Exact*: the call again in float64; how far was the side's own result from it? Of a correct
call the error is at most what those two, the reference's and the port's, add up to.
*Vanishes*: both calls again in float64; a mistake stays, rounding is gone.

A repeated call is measured while it runs, and only the sizes are kept; where it is asked about what it
gives, it runs forward only. The few arrays that must be at hand are held within a share of the budget.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from parfocal.backends.protocol import Array
from parfocal.brief import told
from parfocal.errors import ParfocalError
from parfocal.judge import limits
from parfocal.judge.floors import EPSILON, NOTHING, Size, difference, typical
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Place, Repeater, RepeatResult, See
from parfocal.replay.trace import TensorData

LEFT_OVER = limits.verdicts.ROUNDING_LEFT.value
STAYS = limits.verdicts.MISTAKE_STAYS.value
TRIALS = limits.verdicts.FLOOR_TRIALS.value
FEW = limits.verdicts.FEW_NUMBERS.value
HELD_SHARE = 4  # of the ledger's budget, one part in so many for arrays that must be at hand
_SIGNS = np.random.Generator(np.random.PCG64(20240229)).choice(np.array([-1.0, 1.0]), 65537 * TRIALS)

What = Place | str  # a place of a call, or the path of a parameter: its gradient
Change = Callable[[Array, str, int], Array]  # of recorded values, by their dtype and the trial


def _as_recorded(array: Array, dtype: str, trial: int) -> Array:
    return array


def _in_float64(array: Array, dtype: str, trial: int) -> Array:
    return _wide(array) if dtype in FLOATING else array


def _moved(array: Array, dtype: str, trial: int) -> Array:
    """By one unit in the last place, up or down."""
    if dtype not in FLOATING or _is_exact(array):
        return array
    signs = _signs(array.size, trial).reshape(array.shape)
    return (_wide(array) * (1.0 + EPSILON[dtype] * signs)).astype(array.dtype)


def _moved_alike(array: Array, dtype: str, trial: int) -> Array:
    """As above, but the sign hangs on the value instead of on the place."""
    if dtype not in FLOATING or array.dtype.kind == "c" or _is_exact(array):
        return _moved(array, dtype, trial)
    wide = array.astype(np.float64)
    mixed = wide.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40 + trial)
    signs = np.where(mixed & np.uint64(1), 1.0, -1.0)
    return (wide * (1.0 + EPSILON[dtype] * signs)).astype(array.dtype)


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


class Repetition(NamedTuple):
    """How calls are repeated."""

    change: Change  # of the values that they are given
    port: bool = False  # the port's calls; otherwise the reference's
    trial: int = 0  # which of several
    dtype: str | None = None  # that of the model, where it is not its own
    inside: bool = True  # led along recorded values inside as well
    seeded: bool = False  # the random generator, by the trial


Question = tuple[Repetition, tuple[int, ...]]  # how what calls are repeated

STILL, PORT_STILL = Repetition(_as_recorded), Repetition(_as_recorded, port=True)
SEEDED = Repetition(_as_recorded, seeded=True)
MOVED, PORT_MOVED = Repetition(_moved), Repetition(_moved, port=True)
MOVED_ALIKE, PORT_MOVED_ALIKE = Repetition(_moved_alike), Repetition(_moved_alike, port=True)
EXACT = Repetition(_in_float64, dtype="float64")
PORT_EXACT, EXACT_FREELY = EXACT._replace(port=True), EXACT._replace(inside=False)

Calls = Sequence[int]
View = Callable[[Array], Array]


class Remainder(Enum):
    """What is left of an error in float64."""

    GONE = "it was rounding"
    STAYS = "it is a mistake"
    UNCLEAR = "neither, or a side does not compute in float64"


class HeldArrays:
    """Arrays that answer a question, each under what it is, held for the next time it is asked.

    ``limit``: bytes held at most, but for a single array that was asked for. Once that is passed, what was
    asked for longest ago goes first, and is to be computed again if it is wanted after all.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._arrays: OrderedDict[Question, dict[What, Array]] = OrderedDict()
        self._sizes: dict[Question, int] = {}  # bytes of each answer
        self._bytes = 0

    def get(self, question: Question) -> dict[What, Array]:
        """What is at hand of an answer; all of it, some of it or nothing."""
        if question not in self._arrays:
            return {}
        self._arrays.move_to_end(question)
        return self._arrays[question]

    def put(self, question: Question, what: What, array: Array, wanted: What) -> None:
        """Hold a copy; one that was not ``wanted`` only where the answer as a whole fits."""
        answer = self._arrays.setdefault(question, {})
        self._arrays.move_to_end(question)
        if what in answer:
            self._count(question, -answer.pop(what).nbytes)
        if self._sizes.get(question, 0) + array.nbytes > self.limit and what != wanted:
            return
        answer[what] = array.copy()
        self._count(question, array.nbytes)
        self._make_room(wanted)

    def _make_room(self, wanted: What) -> None:
        while self._bytes > self.limit and len(self._arrays) > 1:
            oldest, _ = self._arrays.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)
        if self._bytes <= self.limit:
            return
        question, last = next(reversed(self._arrays.items()))
        for what in [each for each in last if each != wanted]:
            if self._bytes <= self.limit:
                break
            self._count(question, -last.pop(what).nbytes)

    def _count(self, question: Question, nbytes: int) -> None:
        self._sizes[question] = self._sizes.get(question, 0) + nbytes
        self._bytes += nbytes


class NoiseFloors:
    """Asks these questions of a recorded reference and its port; ``problems``: what cannot be asked.

    They are asked about ``What``: a place of a call, or the path of a parameter, meaning its gradient.
    """

    def __init__(
        self, reference: Repeater, port: Repeater, gradients: Mapping[str, Array], ledger: Ledger
    ) -> None:
        self.reference = reference
        self.port = port
        self.effort = port.effort
        self.gradients = gradients  # of the reference's parameters, as recorded
        self.ledger = ledger
        self.recorded = ledger.supply
        self.problems: list[str] = []
        self._sizes: dict[Question, dict[What, Size]] = {}
        self._measured: dict[Question, bool] = {}  # and whether with gradients
        self._held = HeldArrays(ledger.budget // HELD_SHARE)
        self._refused: set[Question] = set()
        self._missing: set[tuple[Question, What]] = set()  # what a call does not give
        self._left: dict[tuple[Question, Question, What], Size | None] = {}

    def with_port(self, port: Repeater) -> NoiseFloors:
        """The same questions where the port is led along other values."""
        other = NoiseFloors(self.reference, port, self.gradients, self.ledger)
        other.problems = self.problems
        return other

    def moved(self, calls: Calls, what: What, *, once: bool = False) -> Size:
        """Few numbers are moved several times, unless ``once`` will do."""
        recorded = self._recorded_at(what)
        few = recorded is not None and recorded.size < FEW
        trials = [
            self._size(MOVED._replace(trial=trial), calls, what)
            for trial in range(TRIALS if few and not once else 1)
        ]
        return typical([size for size in trials if size is not None])

    def still(self, calls: Calls, what: What) -> Size:
        """How far the call, repeated as it was, is from what was recorded: more than itself may make it."""
        return self._size(STILL, calls, what, hold=True) or NOTHING

    def draws(self, calls: Calls, place: Place) -> bool:
        """Whether what the call gives hangs on the state of the random generator."""
        one, other = (self._array(SEEDED._replace(trial=seed), calls, place) for seed in range(2))
        return one is not None and other is not None and not np.array_equal(one, other, equal_nan=True)

    def result(self, calls: Calls, what: What) -> Array | None:
        """What the reference's call, repeated as it was, gives."""
        return self._array(STILL, calls, what)

    def moved_alike(self, calls: Calls, place: Place, port_calls: Calls, port_place: Place) -> Size:
        """The larger of *moved* of both sides, with equal values moved alike: what was a tie stays one."""
        size = NOTHING
        for as_it_was, moved, orders, at in (
            (STILL, MOVED_ALIKE, calls, place),
            (PORT_STILL, PORT_MOVED_ALIKE, port_calls, port_place),
        ):
            still = self._array(as_it_was, orders, at)
            if still is None:
                continue
            trials = [
                self._array(moved._replace(trial=trial), orders, at)
                for trial in range(TRIALS if still.size < FEW else 2)
            ]
            size |= typical([difference(each, still) for each in trials if each is not None])
        return size

    def exact(self, calls: Calls, what: What) -> Size:
        return self._size(EXACT, calls, what, hold=True) or NOTHING

    def exact_freely(self, calls: Calls, place: Place) -> Size:
        """The same with nothing led along inside: what rounding adds up to from one end to the other."""
        return self._size(EXACT_FREELY, calls, place) or NOTHING

    def port_result(self, calls: Calls, what: What) -> Array | None:
        """What the port's call gives on the reference's values."""
        return self._array(PORT_STILL, calls, what)

    def port_exact(self, calls: Calls, what: What) -> Size:
        """How far the port's own result is from what it gives in float64: it may sum in a worse order."""
        still = self.port_result(calls, what)
        exact = self._array(PORT_EXACT, calls, what)
        return NOTHING if still is None or exact is None else difference(still, exact)

    def port_made(self, order: int | None, place: Place) -> Array | None:
        """What the port's own code makes there: the next call around that can be repeated shows it."""
        while order is not None:
            made = self._made_exactly(order, place)
            if made is None:
                made = self.port_result([order], place)
            if made is not None:
                return made
            order = self.port.trace.nodes[order].parent
        return None

    def _made_exactly(self, order: int, place: Place) -> Array | None:
        """What is at hand of it from float64, rounded; None where float32 does not hold such numbers."""
        exact = self._held.get((PORT_EXACT, (order,))).get(place)
        dtype = self._dtype_at(place)
        if exact is None or dtype is None or exact.dtype.kind != "f":
            return None
        with np.errstate(over="ignore"):
            rounded: Array = exact.astype(dtype)
        return rounded if np.array_equal(np.isfinite(rounded), np.isfinite(exact)) else None

    def _dtype_at(self, place: Place) -> str | None:
        """Of what the port had there, where NumPy has it."""
        node = self.port.trace.nodes[place[0]]
        value = (node.inputs if place[1] == "input" else node.outputs).get(place[2])
        known = value is not None and value.data.dtype in ("float16", "float32")
        return value.data.dtype if value is not None and known else None

    def port_moved(self, calls: Calls, what: What) -> Size:
        """How far the port's own result moves, where a flip (a ReLU inside the call) may hang on one unit."""
        sizes = self._sizes.setdefault((PORT_MOVED, tuple(calls)), {})
        if what not in sizes and self.port_result(calls, what) is not None:
            still = self._held.get((PORT_STILL, tuple(calls)))
            moves: dict[What, list[Size]] = {}

            def see(seen: What, array: Array) -> None:
                if seen in still:
                    moves.setdefault(seen, []).append(difference(array, still[seen]))

            for trial in range(TRIALS):
                self._ask((PORT_MOVED._replace(trial=trial), tuple(calls)), see, _is_backward(what))
            sizes.update({seen: typical(each) for seen, each in moves.items()})
        return sizes.setdefault(what, NOTHING)

    def port_floor(self, calls: Calls, what: What) -> Size:
        """What rounding does to the port's own result."""
        return self.port_exact(calls, what) | self.port_moved(calls, what)

    def remainder(
        self, calls: Calls, place: Place, port_calls: Calls, port_place: Place, error: Size
    ) -> Remainder:
        layout = self.port.script.layouts.get(port_place[:3])
        views: tuple[View, View] = (_as_it_lies if layout is None else layout.apply, _as_it_lies)
        return self.remainder_seen(calls, place, port_calls, port_place, views, error)

    def remainder_seen(
        self,
        calls: Calls,
        what: What,
        port_calls: Calls,
        port_what: What,
        views: tuple[View, View],
        error: Size,
    ) -> Remainder:
        """``views``: how the reference's array and the port's are laid beside one another."""
        questions = (EXACT, tuple(calls)), (PORT_EXACT, tuple(port_calls))
        key = (*questions, port_what)
        if key not in self._left:
            ours = self._array(EXACT, calls, what)
            if ours is None and not _is_backward(what):
                ours = self._recorded_at(what)  # handed on as it was recorded: the call's code adds nothing
            theirs = self._array(PORT_EXACT, port_calls, port_what)
            known = ours is not None and theirs is not None
            self._left[key] = difference(views[1](theirs), views[0](ours)) if known else None  # type: ignore[arg-type]
        left = self._left[key]
        if left is None:
            return Remainder.UNCLEAR
        if is_gone(left, error):
            return Remainder.GONE
        return Remainder.STAYS if left.rms >= STAYS * error.rms else Remainder.UNCLEAR

    def _size(self, repetition: Repetition, calls: Calls, what: What, *, hold: bool = False) -> Size | None:
        """How far the calls are from what was recorded; they are repeated once for all their places.

        ``hold``: the arrays, too, are likely to be asked for.
        """
        key = repetition, tuple(calls)
        sizes = self._sizes.setdefault(key, {})
        backward = _is_backward(what)
        if not (key in self._measured and self._measured[key] >= backward):
            self._measured[key] = backward

            def see(seen: What, array: Array) -> None:
                recorded = self._recorded_at(seen)
                if recorded is not None:
                    sizes[seen] = difference(array, recorded)
                if hold:
                    self._held.put(key, seen, array, what)

            self._ask(key, see, backward)
            if hold and what not in sizes:
                self._missing.add((key, what))
        return sizes.get(what)

    def _array(self, repetition: Repetition, calls: Calls, what: What) -> Array | None:
        """What the calls give there; they are repeated again where it is no longer at hand."""
        key = repetition, tuple(calls)
        if what not in self._held.get(key) and (key, what) not in self._missing:
            self._ask(key, lambda seen, array: self._held.put(key, seen, array, what), _is_backward(what))
            if what not in self._held.get(key):
                self._missing.add((key, what))
        return self._held.get(key).get(what)

    def _ask(self, question: Question, see: Callable[[What, Array], None], backward: bool) -> None:
        """What a framework refuses to repeat is noted, and not asked again, nor for another trial."""
        repetition, calls = question
        kind = repetition._replace(trial=0), calls
        if kind in self._refused:
            return
        try:
            repeated = self._repeat(repetition, calls, see, backward)
            for path, array in repeated.parameters.items():
                see(path, array)
        except ParfocalError as error:
            self._note(kind, error.message)
        except Exception as error:  # noqa: BLE001  whatever a framework raises for a missing kernel
            self._note(kind, told(error))

    def _note(self, question: Question, reason: str) -> None:
        self._refused.add(question)
        repetition, calls = question
        node = self._repeater(repetition).trace.nodes[calls[0]]
        problem = f"{node.path or 'the model'}: {reason}"
        if problem not in self.problems:
            self.problems.append(problem)

    def _repeater(self, repetition: Repetition) -> Repeater:
        return self.port if repetition.port else self.reference

    def _repeat(self, repetition: Repetition, calls: Calls, see: See, backward: bool) -> RepeatResult:
        change, trial = repetition.change, repetition.trial
        repeater = self._repeater(repetition)
        return repeater.repeat(
            calls,
            repetition.dtype,
            lambda data: change(self.recorded(data), data.dtype, trial),
            # the generator's state is restored as the twin is done
            (lambda twin: repeater.backend.seed(trial)) if repetition.seeded else None,
            inside=repetition.inside,
            backward=backward,
            see=see,
        )

    def _recorded_at(self, what: What) -> Array | None:
        """What the reference had there; None where it had nothing."""
        if isinstance(what, str):
            return self.gradients.get(what)
        data = self._data_at(what)
        return None if data is None else self.recorded(data)

    def _data_at(self, place: Place) -> TensorData | None:
        order, side, slot, direction = place
        node = self.reference.trace.nodes[order]
        value = (node.inputs if side == "input" else node.outputs)[slot]
        return value.data if direction == "forward" else value.gradient

    def at(self, place: Place) -> Array:
        data = self._data_at(place)
        assert data is not None
        return self.recorded(data)


def _is_backward(what: What) -> bool:
    return isinstance(what, str) or what[3] == "backward"


def _as_it_lies(array: Array) -> Array:
    return array


def is_gone(left: Size, error: Size) -> bool:
    """Whether next to nothing of an error is left in float64."""
    return left.rms <= LEFT_OVER * error.rms and left.peak <= LEFT_OVER * error.peak
