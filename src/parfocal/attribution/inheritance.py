"""Why a difference is inherited: the ladder of reasons for which a call is not to blame.

The rungs are tried in order for every measure above the limit, in order of execution; the first that
holds is the reason. A measure for which none holds is the call's own.

Going backward, a gradient that is cut off somewhere is missing everywhere before it: the last place in order
of execution where it is missing is where it was cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from parfocal.attribution.divisions import pieces_of
from parfocal.attribution.measures import Measure
from parfocal.attribution.observation import Observation
from parfocal.judge.verdict import InheritanceReason
from parfocal.matching.spans import starts_of_runs
from parfocal.replay.trace import Node, Trace

Excused = Callable[[Measure], bool]


class Ladder:
    """What is known to be wrong so far (``paths``: modules of the port), and what follows from it."""

    def __init__(
        self,
        observation: Observation,
        traces: tuple[Trace, Trace],
        limits: tuple[float, float],
        guilty: Iterable[str],
        excused: Excused | None,
    ) -> None:
        """``excused`` says whether a difference follows from weights that differ."""
        reference, port = traces
        measures = observation.measures
        self.port = port
        self.paths = set(guilty)
        self.starts = starts_of_runs(observation.pairing)
        self.starved = starved_calls(measures)
        self.by_the_loss = loss_differs_first(observation, limits)
        self._unfed = observation.unfed
        self._silent = silent_calls(measures)
        self._idle = idle_calls(measures, reference)
        self._pieces = pieces_of(observation.divided)
        self._users = TensorUsers(port)
        self._paired = {pair.port for pair in observation.pairing.pairs}
        wrong = (m for m in measures if m.direction == "forward" and m.score > limits[0])
        self._unlike = set(_unlike_layers(wrong, reference, port))
        self._excused = excused

    def guilty(self, measure: Measure) -> str:
        """The port's module that made the error; of a run of calls that do one work the first."""
        maker = self.port.around(measure.port, measure.levels)
        return self.port.nodes[self.starts.get(measure.port, maker)].path

    def reason(self, measure: Measure) -> InheritanceReason | None:
        """Why the difference is inherited; None for the call's own."""
        return next((reason for reason, holds in RUNGS if holds(self, measure)), None)

    def was_told(self, measure: Measure) -> bool:
        """The module that makes it is guilty already."""
        return self.guilty(measure) in self.paths

    def is_doubtful(self, measure: Measure) -> bool:
        """Without the reference's inputs a call cannot be told from what came before it."""
        return measure.own and measure.port in self._unfed and bool(self.paths)

    def is_cut_off(self, measure: Measure) -> bool:
        """A gradient, or a part of it, is missing because another call sends none."""
        return (
            (measure.absent and comes_before(measure, self.starved, self.port))
            or lacks_a_part(measure, self._silent, self.port)
            or (measure.own and measure.unwanted and measure.port in self._idle)
        )

    def comes_from_users(self, measure: Measure) -> bool:
        """A gradient comes from the code that uses the tensor, and that code is guilty."""
        if measure.direction != "backward" or measure.own:
            return False
        users = self._users.of(measure) | code_that_uses(measure, self.port, self._paired)
        return bool(users & self.paths) or (measure.port, measure.slot) in self._unlike

    def is_of_one_piece(self, measure: Measure) -> bool:
        """Going backward, code that is one piece is guilty as one, whichever part of it is wrong."""
        if measure.direction != "backward":
            return False
        piece = _piece_around(self.port.around(measure.port, measure.levels), self._pieces, self.port)
        return bool({self.port.nodes[order].path for order in piece} & self.paths)

    def is_of_weights(self, measure: Measure) -> bool:
        """The call is right once its weights are the reference's."""
        return self._excused is not None and self._excused(measure)

    def is_of_the_loss(self, measure: Measure) -> bool:
        """Only the losses differ: so does what comes back from them."""
        return self.by_the_loss and measure.direction == "backward" and measure.given


RUNGS: tuple[tuple[InheritanceReason, Callable[[Ladder, Measure], bool]], ...] = (
    (InheritanceReason.GUILTY_CALL, Ladder.was_told),
    (InheritanceReason.NOT_FED, Ladder.is_doubtful),
    (InheritanceReason.CUT_OFF, Ladder.is_cut_off),
    (InheritanceReason.USED_BY_GUILTY, Ladder.comes_from_users),
    (InheritanceReason.ONE_PIECE, Ladder.is_of_one_piece),
    (InheritanceReason.WEIGHTS, Ladder.is_of_weights),
    (InheritanceReason.LOSS, Ladder.is_of_the_loss),
)


def loss_differs_first(observation: Observation, limits: tuple[float, float]) -> bool:
    """The outputs agree and the losses do not: what comes back from them differs for that reason."""
    limit, end_limit = limits
    off = {end.phase for end in observation.ends if end.measure.score > end_limit}
    return (
        "loss" in off
        and "forward" not in off
        and not any(m.direction == "forward" and m.score > limit for m in observation.measures)
    )


def _piece_around(order: int, pieces: Mapping[int, frozenset[int]], port: Trace) -> set[int]:
    """The calls whose code is one piece with a call or with one around it.

    What comes back to those comes through a border that is not compared.
    """
    found: set[int] = set()
    at: int | None = order
    while at is not None and port.nodes[at].parent is not None:  # the whole model is around everything
        found |= pieces.get(at, frozenset())
        at = port.nodes[at].parent
    return found or set(pieces.get(order, ()))


def _unlike_layers(wrong: Iterable[Measure], ours: Trace, theirs: Trace) -> Iterator[tuple[int, str]]:
    """What calls give that are no plain layers on both sides: one may do more than the other.

    What comes back to such a value is of another value then.
    """
    for measure in wrong:
        plain = all(
            node.framework_layer and node.is_leaf
            for node in (theirs.nodes[measure.port], ours.nodes[measure.reference])
        )
        if measure.side == "output" and measure.own and not plain:
            yield measure.port, measure.slot


def in_backward_order(measures: Iterable[Measure], limit: float, port: Trace) -> list[Measure]:
    """As they came back; those that never came back from the end of the model to its beginning.

    Last come calls in which something sends nothing back: what they send themselves lacks that part.
    """
    backward = [m for m in measures if m.direction == "backward" and m.score > limit]
    silent = silent_calls(backward)
    arrived: list[Measure] = []
    absent: list[Measure] = []
    lacking: list[Measure] = []
    for measure in backward:
        kind = lacking if lacks_a_part(measure, silent, port) else absent if measure.absent else arrived
        kind.append(measure)
    return [*arrived, *sorted(absent, key=lambda m: moment(m, port), reverse=True), *lacking]


def moment(measure: Measure, port: Trace) -> tuple[float, int]:
    """When a tensor was there: an input when its call began, an output when it ended, inner calls first."""
    node = port.nodes[measure.port]
    return (node.order, node.depth) if measure.side == "input" else (node.finished - 0.5, -node.depth)


def silent_calls(measures: Iterable[Measure]) -> list[int]:
    """Calls that send nothing back."""
    return [measure.port for measure in measures if measure.absent and measure.own]


def lacks_a_part(measure: Measure, silent: Sequence[int], port: Trace) -> bool:
    """Whether a call inside of this one sends nothing back."""
    end = port.nodes[measure.port].finished
    backward = measure.own and measure.direction == "backward"
    return backward and any(measure.port < order < end for order in silent)


def starved_calls(measures: Iterable[Measure]) -> set[int]:
    """Calls that no gradient comes back to: what they and all before them do not send on follows."""
    reached: dict[int, bool] = {}
    for measure in measures:
        if measure.direction == "backward" and measure.side == "output":
            reached[measure.port] = reached.get(measure.port, False) or not measure.absent
    return {order for order, is_reached in reached.items() if not is_reached}


def idle_calls(measures: Sequence[Measure], reference: Trace) -> set[int]:
    """Calls that no gradient comes back to in the reference: what they send on in the port follows.

    What runs without gradients altogether is to blame on the code around that makes it run so.
    """
    unwanted = [measure for measure in measures if measure.unwanted and measure.direction == "backward"]
    around = {m.port for m in unwanted if m.own and not _is_cut_off(reference.nodes[m.reference])}
    inside = {m.port for m in unwanted if around and m.own and m.port not in around}
    return {measure.port for measure in unwanted if measure.side == "output"} | inside


def _is_cut_off(node: Node) -> bool:
    return all(value.gradient is None for value in node.outputs.values())


def comes_before(measure: Measure, starved: set[int], port: Trace) -> bool:
    """Whether a gradient is missing only because this call got none, or one around it or behind it."""
    if measure.own:
        return measure.port in starved
    node = port.nodes[measure.port]
    around = node.parent
    while around is not None and around not in starved:
        around = port.nodes[around].parent
    return around is not None or any(order >= node.finished for order in starved)


def code_that_uses(measure: Measure, port: Trace, paired: Collection[int]) -> set[str]:
    """The modules whose code uses what a call gives, where it is handed on as it is.

    A module without a partner that gives back what it got from a call leaves it to the code around it.
    """
    order = port.around(measure.port, measure.levels)
    value = port.nodes[measure.port].outputs.get(measure.slot)
    found = {port.nodes[order].path}
    while value is not None and order not in paired:
        node = port.nodes[order]
        if node.parent is None or not any(each.data is value.data for each in node.outputs.values()):
            break
        order = node.parent
        found.add(port.nodes[order].path)
    return found


class TensorUsers:
    """Which modules take a tensor as it is: its gradient comes from them."""

    def __init__(self, port: Trace) -> None:
        self._port = port
        self._paths: dict[int, set[str]] = {}  # by identity of the data
        for node in port.nodes:
            for value in node.inputs.values():
                self._paths.setdefault(id(value.data), set()).add(node.path)

    def of(self, measure: Measure) -> set[str]:
        value = self._port.nodes[measure.port].outputs.get(measure.slot)
        return set() if value is None else self._paths.get(id(value.data), set())
