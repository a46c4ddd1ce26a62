"""Both sides' ops around one divergence, what is the same in them, and how to try a change.

The suspects are the port's ops between values that the reference has too and the value that is
wrong. A change of one of them is proven by running the port's call again with that op changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from parfocal.backends.protocol import Array, OpCall
from parfocal.explain.case import Case
from parfocal.explain.ops.log import Key, Log, Op, Watcher, key_of
from parfocal.explain.ops.remakes import Remake
from parfocal.explain.ops.values import Matches, match, same
from parfocal.replay.follow import Side

TRIALS = 12, 32  # runs of the port's call that one divergence is worth: of the whole model, of a small part
# Ops that move values about without changing them.
LAYOUT = frozenset(
    {"reshape", "transpose", "squeeze", "unsqueeze", "contiguous", "clone", "expand", "detach", "flatten"}
)

# Ops that come several times in one line, each for itself.
SEVERAL = frozenset({"add", "sub", "mul", "div", "matmul", "concat"})


@dataclass(slots=True)
class Scene:
    """``suspects`` and ``counterparts``: ops of the port and of the reference, up to the wrong value."""

    case: Case
    port: Log
    reference: Log
    matches: Matches
    suspects: list[Op]
    counterparts: list[Op]
    expected: Array
    trials: int = 0

    def knows(self, key: Key) -> bool:
        return key in self.matches.to_reference

    def with_sources(self) -> list[Op]:
        """The suspects and the ops right before them: a number may be missing in between."""
        orders = {op.order for op in self.suspects}
        taken = {key for op in self.suspects for key in op.inputs.values()}
        return [op for op in self.port.ops if op.order in orders or taken & set(op.outputs.values())]

    def like(self, op: Op) -> Iterator[Op]:
        """The reference's ops of the same name on the same values, in whatever order."""
        wanted = sorted(self.matches.to_reference[key] for key in _floating(self, op) if self.knows(key))
        for other in self.reference.ops:
            if other.name != op.name:
                continue
            keys = list(_floating_reference(self, other))
            canonical = sorted(_canonical(self, key) for key in keys)
            if canonical == sorted(_canonical(self, key) for key in wanted) and len(keys) == len(wanted):
                yield other

    def try_remade(self, op: Op, remake: Remake) -> float:
        """The score when this op, wherever the same line makes it, gives something else."""
        self.trials += 1
        if self.trials > self.allowed:
            return float("inf")
        line = {o.order for o in self.suspects if (o.name, o.file, o.line) == (op.name, op.file, op.line)}
        together = line if op.name not in SEVERAL else {op.order}

        def on_op(call: OpCall) -> Any:
            return remake(call) if call.order in together else None

        return self.case.score(self.case.run(on_op=on_op))

    @property
    def allowed(self) -> int:
        """How many trials, by how much of the model each has to run."""
        nodes = self.case.precise.port.trace.nodes
        start = nodes[self.case.start]
        share = len(nodes) / max(1, start.finished - start.order)
        return min(TRIALS[1], round(TRIALS[0] * share))


def _floating(scene: Scene, op: Op) -> Iterator[Key]:
    return (key for key in op.inputs.values() if scene.port.values[key].dtype.kind in "fV")


def _floating_reference(scene: Scene, op: Op) -> Iterator[Key]:
    return (key for key in op.inputs.values() if scene.reference.values[key].dtype.kind in "fV")


def _canonical(scene: Scene, key: Key) -> Key:
    """One name for all values of the reference that are the same numbers."""
    port = scene.matches.to_port.get(key)
    return key if port is None else scene.matches.to_reference[port]


def make_scene(case: Case) -> Scene | None:
    """Runs both calls once, op by op; None when there is nothing to see."""
    port = watched(case, case.backend, own=True)
    observed = case.observed()
    if port is None or observed is None:
        return None
    expected = case.expected(case.checks[0], observed)
    if expected is None:
        return None
    reference = watched(case, case.reference_backend, own=False) or Log()
    recorded = case.recorded(case.checks[0].reference)
    _add_port_boundary(case, port)
    _add_boundary(case, reference)
    matches = match(port.values, reference.values)
    wrong = key_of(observed)
    end = port.giving(wrong) or _last_same(port, observed)
    other = reference.giving(key_of(recorded)) or _last_same(reference, recorded)
    suspects = port.cone(end, lambda key: key in matches.to_reference)
    counterparts = reference.cone(other, lambda key: key in matches.to_port)
    return Scene(case, port, reference, matches, suspects, counterparts, expected)


def watched(case: Case, backend: Any, *, own: bool) -> Log | None:
    """The ops of the port's call, or of the reference's."""
    watcher = Watcher(backend, _counting(case, own))
    repeated = case.run(on_op=watcher) if own else case.run_reference(on_op=watcher)
    return None if repeated is None else watcher.log


def _counting(case: Case, own: bool) -> Callable[[int | None], bool]:
    """Of the blamed call's own code, and of modules inside that have no partner."""
    nodes = (case.precise.port if own else case.precise.reference).trace.nodes
    call = case.call if own else case.counterpart
    start = case.start if own else call
    paired = case.precise.port.script.ties.keys() if own else case.paired
    assert call is not None
    assert start is not None

    def counts(offset: int | None) -> bool:
        order = None if offset is None else start + offset
        while order is not None and order != call and order not in paired:
            order = nodes[order].parent
        return order == call

    return counts


def _add_boundary(case: Case, log: Log) -> None:
    """Values at the borders of the reference's call and of the calls inside it are known too."""
    assert case.counterpart is not None
    repeater = case.precise.reference
    own = repeater.trace.nodes[case.counterpart]
    for node in (own, *(repeater.trace.nodes[order] for order in own.children)):
        outputs = {} if node is own else node.outputs
        for value in (*node.inputs.values(), *outputs.values()):
            array = case.supply(value.data)
            log.values.setdefault(key_of(array), array)


def _add_port_boundary(case: Case, log: Log) -> None:
    """What the port's call is fed with, and what the calls inside it give."""
    script = case.precise.port.script
    for order in (case.call, *case.node.children):
        tie = script.ties.get(order)
        if tie is None:
            continue
        side: Side = "input" if order == case.call else "output"
        for slot, value in (tie.inputs if side == "input" else tie.outputs).items():
            array = script.layout(order, side, slot, value).apply(case.supply(value.data))
            log.values.setdefault(key_of(array), array)


def _last_same(log: Log, array: Array) -> Op | None:
    for op in reversed(log.ops):
        if any(same(log.values[key], array) for key in op.outputs.values()):
            return op
    return None
