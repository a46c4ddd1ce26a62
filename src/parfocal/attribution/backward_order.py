"""In which order gradients come back, and which of them are wrong only because others are.

Going backward, what is cut off somewhere is missing everywhere before it: the last place in order
of execution where a gradient is missing is where it was cut.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from parfocal.attribution.measures import LIMIT, Measure
from parfocal.replay.trace import Node, Trace


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


def guilty_path(measure: Measure, port: Trace) -> str:
    """The module whose call made the error."""
    return port.nodes[port.around(measure.port, measure.levels)].path


def guilty_paths(measures: Iterable[Measure], port: Trace) -> set[str]:
    return {guilty_path(measure, port) for measure in measures if measure.score > LIMIT}


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
