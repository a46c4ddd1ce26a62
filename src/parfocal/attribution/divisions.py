"""Where the two sides divide the same work differently between a module and the code around it.

Examples: one side clamps a value at the end of a layer, the other in the code that calls the layer. One
applies an activation once, before many blocks, the other inside each block. Then the values at the module's
border differ, and nothing is wrong. Such a border is left open: the port keeps its own value there. If all
places that the value reaches next are correct, so is the module. If not, the mistake is in the moved work.

A border is left open only on evidence, because the next layers may hide a mistake of the module. Evidence is
either of two. The other side's code computes the same value shortly before or after the border. Or the port
is wrong behind the border when it is given the reference's value there, and correct when it is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from parfocal.attribution.experiment import NEAR
from parfocal.attribution.measures import LIMIT, Measure, Remark
from parfocal.attribution.reach import Reach, Spot, ValueMatch, WantedValue
from parfocal.backends.protocol import Array
from parfocal.brief import words_of
from parfocal.judge import limits
from parfocal.matching.pairing import Pairing
from parfocal.matching.values import CLOSE, distance
from parfocal.replay.follow import Binding
from parfocal.replay.noise_floors import NoiseFloors
from parfocal.replay.observe import FLOATING
from parfocal.replay.repeat import Repeater, ReplayScript
from parfocal.replay.trace import Node, TensorData

CLEARLY = limits.pairing.DIVIDED_CLEARLY.value
ALMOST = limits.pairing.DIVIDED_ALMOST.value
NEARER = limits.pairing.DIVIDED_NEARER.value
RESOLVED = limits.pairing.DIVIDED_RESOLVED.value
ALONE = limits.pairing.BORDERS_ALONE.value
FEW = limits.pairing.AGREE_BY_CHANCE.value
_BOTH, _GIVEN = ("input", "output"), ("output",)


@dataclass(frozen=True, slots=True)
class Division:
    """A value at a module's border that one side makes there and the other elsewhere.

    ``spots``: every place of the port where it is taken or given, the first one first. ``meeting`` is the
    value of the other side's code that it equals, with the side whose code that is; None when the two
    sides only come to the same behind the border.
    """

    spots: tuple[Spot, ...]
    references: tuple[int, ...]  # the reference's calls there
    around: int = 0  # the port's call whose code does the rest
    meeting: ValueMatch | None = None
    made_by_port: bool = False
    is_right: bool = (
        False  # what is behind the border; otherwise something is wrong with the work that was moved
    )

    @property
    def is_given(self) -> bool:
        """Whether it is what a module gives; otherwise what modules take."""
        return any(side == "output" for _, side, _ in self.spots)


class DividedWork(NamedTuple):
    """Calls that divide their work otherwise with the code around them.

    What ``giving`` calls of the reference and of the port give is made into the same by that code; what
    ``taking`` calls of the port are given is not yet the same.
    """

    reference_giving: frozenset[int] = frozenset()
    giving: frozenset[int] = frozenset()
    taking: frozenset[int] = frozenset()


NOT_DIVIDED = DividedWork()


def divisions(pairing: Pairing, measures: Sequence[Measure], precise: NoiseFloors) -> list[Division]:
    """All of them."""
    search = _Search(pairing, measures, precise)
    for given in (True, False):  # what a module gives is often what the next one takes
        search.decide([each for each in search.borders() if each.is_given == given])
    return search.found


class _Search:
    def __init__(self, pairing: Pairing, measures: Sequence[Measure], precise: NoiseFloors) -> None:
        self.precise = precise
        self.found: list[Division] = []
        self.references = {pair.port: (pair.reference, pair.gives) for pair in pairing.pairs}
        self.before: dict[Spot, Measure] = {
            (m.port, m.side, m.slot): m for m in measures if m.direction == "forward"
        }
        self.now: dict[Spot, float] = {}  # scores with the borders left that are found so far
        self.backward = {m.port for m in measures if m.direction == "backward" and m.score > LIMIT}

    def borders(self) -> list[Division]:
        """Borders with clearly different values; places that share a value are one border."""
        found: list[Division] = []
        taken = {spot for each in self.found for spot in each.spots}
        for spot, measure in self.before.items():
            if spot not in taken and self._is_suspect(spot, measure):
                border = Division(*self._everywhere(spot, taken))
                taken |= set(border.spots)
                found.append(border)
        return found

    def _is_suspect(self, spot: Spot, measure: Measure) -> bool:
        if measure.given or measure.relative is None or self.now.get(spot, LIMIT + 1.0) <= LIMIT:
            return False
        wrong = measure.score > LIMIT or (measure.remark is Remark.SPELLING and measure.port in self.backward)
        own, other = self._nodes(spot)
        return wrong and measure.relative > CLEARLY and not (_is_fixed(own) and _is_fixed(other))

    def _nodes(self, spot: Spot) -> tuple[Node, Node]:
        order, side, _ = spot
        reference, gives = self.references[order]
        other = gives if side == "output" and gives is not None else reference
        return self.precise.port.trace.nodes[order], self.precise.reference.trace.nodes[other]

    def _everywhere(self, spot: Spot, taken: Collection[Spot]) -> tuple[tuple[Spot, ...], tuple[int, ...]]:
        """All places with the same two values: a tensor is handed on as it is, and to many."""
        first = self._data(spot)
        spots = [spot]
        for order, binding in self.precise.port.script.ties.items():
            for each in _spots_of(order, binding):
                if each == spot or each in taken or order == 0:
                    continue
                if all(_are_one(a, b) for a, b in zip(first, self._data(each), strict=True)):
                    spots.append(each)
        spots.sort(key=lambda each: (each[0], each[1] == "output"))
        return tuple(spots), tuple(dict.fromkeys(self._nodes(each)[1].order for each in spots))

    def _data(self, spot: Spot) -> tuple[TensorData, TensorData]:
        """What is there in the port when it runs by itself, and in the reference."""
        order, side, slot = spot
        node, binding = self.precise.port.trace.nodes[order], self.precise.port.script.ties[order]
        if side == "input":
            return node.inputs[slot].data, binding.inputs[slot].data
        return node.outputs[slot].data, binding.outputs[slot].data

    def decide(self, borders: Iterable[Division]) -> None:
        """Try all borders inside of one call together, and alone those that this does not settle."""
        groups: dict[int, list[Division]] = {}
        for border in borders:
            around = self._around(border)
            if around is not None and self._is_telling(border):
                groups.setdefault(around, []).append(border)
        for around, group in sorted(groups.items(), reverse=True):  # the innermost first
            left = self._tried(around, group)
            for border in left[:ALONE] if len(group) > 1 else ():
                self._tried(around, [border])

    def _around(self, border: Division) -> int | None:
        """The innermost call that has all of these places inside and can be repeated and judged."""
        nodes = self.precise.port.trace.nodes
        bindings = left_apart(
            self.precise.port.script.ties, {spot for each in self.found for spot in each.spots}
        )
        first, last = border.spots[0][0], max(order for order, _, _ in border.spots)
        around = nodes[first].parent
        while around is not None and not (
            last < nodes[around].finished
            and around in self.references
            and bindings[around].outputs
            and all(slot in bindings[around].inputs for slot in nodes[around].inputs)
        ):
            around = nodes[around].parent
        return around

    def _is_telling(self, border: Division) -> bool:
        own, other = self._data(border.spots[0])
        return own.fingerprint.size >= FEW and own.dtype in FLOATING and other.dtype in FLOATING

    def _tried(self, around: int, group: list[Division]) -> list[Division]:
        """Takes over the borders that are shown to divide the work; returns the others."""
        trial = self._port_trial(around, group)
        if trial is None:
            return group
        may_be = [n for n in range(len(group)) if self._may_be(trial, n)]
        meetings = _by_group(trial, made_by_port=True)
        unmet = {n: trial.values[n] for n in may_be if not any(_is_met(each) for each, _ in meetings[n])}
        if unmet:
            for n, met in _by_group(self._reference_trial(around, group, unmet), made_by_port=False).items():
                meetings[n] += met
        left: list[Division] = []
        behind: set[Spot] = set()
        for n, border in enumerate(group):
            told = self._told(trial, n, border, meetings[n], alone=len(group) == 1) if n in may_be else None
            if told is None:
                left.append(border)
            else:
                self.found.append(replace(told, around=around))
                behind |= trial.reached[n]
        self.now.update((spot, trial.scores.get(spot, 0.0)) for spot in behind)
        return left

    def _port_trial(self, around: int, group: list[Division]) -> Reach | None:
        """The port's call with the borders left as the port makes them."""
        apart = {spot for each in (*self.found, *group) for spot in each.spots}
        script, trace = self.precise.port.script, self.precise.port.trace
        bindings = left_apart(script.ties, apart)
        wanted = {
            n: WantedValue(
                self.precise.recorded(self._data(border.spots[0])[1]),
                frozenset({around, *(order for order, _, _ in border.spots)}),
            )
            for n, border in enumerate(group)
        }
        spots = {spot: n for n, border in enumerate(group) for spot in border.spots}
        reach = Reach(
            self.precise.port.backend,
            trace.nodes,
            around,
            bindings,
            spots,
            wanted,
            self.precise.recorded,
            layouts=script.layouts,
        )
        return self._watched(self.precise.port.led_by(ReplayScript(bindings, script.layouts)), around, reach)

    def _reference_trial(
        self, around: int, group: list[Division], values: Mapping[int, Array]
    ) -> Reach | None:
        """The reference's call, and its values that the port's values equal."""
        reference, repeater = self.references[around][0], self.precise.reference
        wanted = {
            n: WantedValue(value, frozenset({reference, *group[n].references})) for n, value in values.items()
        }
        spots = {spot: n for n in values for spot in self._reference_spots(group[n])}
        script = repeater.script
        inner = left_apart(script.ties if script.inner is None else script.inner, spots)
        reach = Reach(
            repeater.backend, repeater.trace.nodes, reference, inner, spots, wanted, self.precise.recorded
        )
        return self._watched(repeater.led_by(replace(script, inner=inner)), reference, reach)

    def _reference_spots(self, border: Division) -> Iterator[Spot]:
        for spot in border.spots:
            data, node = self._data(spot)[1], self._nodes(spot)[1]
            values = node.inputs if spot[1] == "input" else node.outputs
            yield from ((node.order, spot[1], slot) for slot, v in values.items() if v.data is data)

    def _watched(self, repeater: Repeater, order: int, reach: Reach) -> Reach | None:
        """None when the call cannot be repeated."""
        try:
            repeater.repeat(
                [order],
                None,
                self.precise.recorded,
                on_op=reach,
                backward=False,
                listener=reach,
                see=reach.see,
            )
        except Exception as error:  # noqa: BLE001  whatever a framework raises for a trial
            self._refused(repeater.trace.nodes[order], error)
            return None
        return reach

    def _refused(self, node: Node, error: Exception) -> None:
        reason = next(iter(words_of(error).strip().splitlines()), repr(error))
        problem = f"{node.path or 'the model'}: {reason}"
        if problem not in self.precise.problems:
            self.precise.problems.append(problem)

    def _may_be(self, trial: Reach, number: int) -> bool:
        """Whether nothing behind the border got wrong that was right before."""
        behind = trial.reached.get(number, set())
        wrong = trial.wrong(number, NEAR)
        return number in trial.values and bool(behind) and wrong <= self._wrong_before(behind)

    def _wrong_before(self, spots: Iterable[Spot]) -> set[Spot]:
        """Where the port is wrong when it is given the reference's value at the border."""
        return {
            spot
            for spot in spots
            if spot in self.before and self.now.get(spot, self.before[spot].score) > LIMIT
        }

    def _told(
        self, trial: Reach, number: int, border: Division, meetings: list[Met], *, alone: bool
    ) -> Division | None:
        """The border with what is known of it, if there is evidence."""
        were = self._wrong_before(trial.reached[number])
        if trial.wrong(number, NEAR):
            # two mistakes with the border, one without: the work was moved, and something is wrong with it
            almost = max(ALMOST, NEARER * self._apart(border))
            near = [(meeting, by) for meeting, by in meetings if meeting.relative <= almost]
            return _with(border, near[0], is_right=False) if were and near else None
        met = next((each for each in meetings if _is_met(each[0])), None)
        if met is not None:
            return _with(border, met, is_right=True)
        apart = self._apart(border)
        resolved = any((self.before[spot].relative or 0.0) > RESOLVED * apart for spot in were)
        return replace(border, is_right=True) if alone and resolved else None

    def _apart(self, border: Division) -> float:
        """How far the two values at the border are from each other."""
        return max(self.before[spot].relative or 0.0 for spot in border.spots if spot in self.before)


Met = tuple[ValueMatch, bool]  # and whether the port's code makes it


def _by_group(trial: Reach | None, *, made_by_port: bool) -> defaultdict[int, list[Met]]:
    """What was met, the nearest first."""
    found: defaultdict[int, list[Met]] = defaultdict(list)
    for (group, _), meeting in sorted(
        ({} if trial is None else trial.met).items(), key=lambda each: each[1].score
    ):
        found[group].append((meeting, made_by_port))
    return found


def _with(border: Division, met: Met, *, is_right: bool) -> Division:
    return replace(border, meeting=met[0], made_by_port=met[1], is_right=is_right)


def places_of(divided: Iterable[Division]) -> frozenset[Spot]:
    return frozenset(spot for each in divided for spot in each.spots)


def calls_of(divided: Iterable[Division]) -> DividedWork:
    """The calls at such borders."""
    divided = list(divided)
    given = [each for each in divided if each.is_given]
    return DividedWork(
        frozenset(order for each in given for order in each.references),
        *(
            frozenset(order for order, side, _ in places_of(divided) if side == wanted)
            for wanted in ("output", "input")
        ),
    )


def pieces_of(divided: Iterable[Division]) -> dict[int, frozenset[int]]:
    """The port's calls whose code is one piece, each with all the others."""
    pieces: dict[int, frozenset[int]] = {}
    for each in divided:
        piece = frozenset({each.around, *(order for order, _, _ in each.spots)})
        for order in piece:
            pieces[order] = pieces.get(order, frozenset()) | piece
    return pieces


def left_open(pairing: Pairing, divided: Sequence[Division]) -> Pairing:
    """The pairing where these calls do parts of the work: what one gives may be given by the code after it.

    So may a share of the gradient that the partner's input gets.
    """
    places = places_of(divided)
    calls, given = ({order for order, side, _ in places if side in sides} for sides in (_BOTH, _GIVEN))
    return replace(
        pairing,
        pairs=tuple(
            replace(pair, gives=None if pair.port in given else pair.gives, whole=False)
            if pair.port in calls
            else pair
            for pair in pairing.pairs
        ),
    )


def _is_met(meeting: ValueMatch) -> bool:
    """Whether the value of one side is what becomes of the other side's: what was left out is done there."""
    return meeting.later and meeting.score <= NEAR


def _is_fixed(node: Node) -> bool:
    """A layer of the framework does what it does; the user says what one after the other does."""
    return node.framework_layer and node.kind != "Sequential"


def _spots_of(order: int, binding: Binding) -> Iterator[Spot]:
    for slot in binding.inputs:
        yield order, "input", slot
    for slot in binding.outputs:
        yield order, "output", slot


def _are_one(one: TensorData, other: TensorData) -> bool:
    return one is other or distance(one.fingerprint, other.fingerprint) <= CLOSE


def left_apart(bindings: Mapping[int, Binding], apart: Collection[Spot]) -> dict[int, Binding]:
    """The same ties without these places."""
    orders = {order for order, _, _ in apart}
    return {
        order: replace(
            binding,
            inputs={slot: v for slot, v in binding.inputs.items() if (order, "input", slot) not in apart},
            outputs={slot: v for slot, v in binding.outputs.items() if (order, "output", slot) not in apart},
        )
        if order in orders
        else binding
        for order, binding in bindings.items()
    }
