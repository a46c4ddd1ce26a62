"""Two natural runs side by side: the port is looked at while it runs, and nothing is changed.

For a fixed tolerance no floors and no own errors are needed, so this is the cheapest way. What a call of
the port gives is compared at once with what its likely partner gave, and is kept only where the two are
apart: calls are paired when the port has run, as they always are, and what was kept is compared then.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, Protocol

from parfocal.backends.protocol import Array, Backend, Call
from parfocal.backends.vocabulary.kinds import family
from parfocal.capture.nested_values import flatten, flatten_call
from parfocal.capture.overwrites import Sight
from parfocal.judge import limits
from parfocal.judge.layouts import SAME, distance, lay_out
from parfocal.judge.moments import Fingerprint
from parfocal.replay.follow import Direction, Sighting
from parfocal.replay.ledger import Ledger
from parfocal.replay.observe import FLOATING, Observer
from parfocal.replay.trace import Node, TensorData, Trace, Value

ALIKE = limits.pairing.WITNESS_ALIKE.value


class Outline(Observer):
    """Notes every call, keeps what it gives, and of what it takes the fingerprint only."""

    def _enter(self, call: Call) -> None:
        node = self._begin(call)
        leaves = flatten_call(call.args, call.kwargs).leaves
        node.inputs = {
            slot: Value(self._sketched(leaf)) for slot, leaf in leaves.items() if self.backend.is_tensor(leaf)
        }

    def _exit(self, call: Call, output: Any) -> None:
        node = self.trace.nodes[call.order]
        node.outputs = self._values(flatten(output).leaves)
        node.finished = len(self.trace.nodes)

    def _sketched(self, tensor: Any) -> TensorData:
        known = self._known(tensor)
        if known is not None:
            return known
        array = self.backend.to_array(tensor, copy=False)
        data = TensorData(tuple(array.shape), array.dtype.name, self._mark(array), None)
        self._remember(tensor, data)
        return data

    def _known(self, tensor: Any) -> TensorData | None:
        known = self._recent.get(id(tensor))
        return known[2] if known is not None and known[1] == self.backend.version(tensor) else None

    def _note(self, tensor: Any) -> TensorData:
        """A tensor that was an input first has a fingerprint, but its values are not kept yet."""
        known = self._known(tensor)
        if known is None or known.stored is not None or self.ledger is None:
            return super()._note(tensor)
        return self._kept(tensor, self.backend.to_array(tensor, copy=False), known.fingerprint)

    def _kept(self, tensor: Any, array: Array, mark: Fingerprint) -> TensorData:
        assert self.ledger is not None
        data = TensorData(tuple(array.shape), array.dtype.name, mark, self.ledger.put(array))
        self._remember(tensor, data)
        return data


class ArrayOutcome(Protocol):
    """How two arrays compare; ``relative`` is None where they cannot."""

    @property
    def relative(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class WitnessResult:
    """The outcome of comparing a tensor of the port with one of the reference."""

    expected: TensorData
    outcome: ArrayOutcome


class Witness(Outline):
    """Compares what calls of the port give with what the reference's gave, as it comes.

    ``anchored``: path of the port's module -> the reference's calls of its counterpart, in order. Other
    calls are held against the reference's next of the same kind and size.
    """

    def __init__(
        self,
        backend: Backend,
        model: Any,
        ledger: Ledger,
        reference: Trace,
        anchored: Mapping[str, list[Node]],
        judge: Callable[[Sighting], ArrayOutcome],
        *,
        gradients: bool,
    ) -> None:
        super().__init__(backend, model, ledger, gradients=gradients)
        self.anchored = anchored
        self.judge = judge
        self.compared: dict[int, WitnessResult] = {}  # by identity of what the port gave
        self.returned: dict[tuple[int, str], WitnessResult] = {}  # gradients, by call and slot
        self._store = ledger
        self._uses = Counter(id(value.data) for node in reference.nodes for value in node.outputs.values())
        self._others: defaultdict[tuple[object, ...], list[Node]] = defaultdict(list)
        sure = {node.order for nodes in anchored.values() for node in nodes}
        for node in reversed(reference.nodes):
            if node.is_leaf and node.order not in sure:
                self._others[_kind(node, (v.data.shape for v in node.outputs.values()))].append(node)

    def _exit(self, call: Call, output: Any) -> None:
        node = self.trace.nodes[call.order]
        leaves = {slot: leaf for slot, leaf in flatten(output).leaves.items() if self.backend.is_tensor(leaf)}
        partner, is_sure = self._likely_partner(node, leaves)
        expected = iter([] if partner is None else _floating(partner))
        for slot, leaf in leaves.items():
            if self.backend.dtype(leaf) in FLOATING:
                node.outputs[slot] = self._witnessed(node.order, slot, leaf, next(expected, None), is_sure)
            else:
                node.outputs[slot] = Value(self._note(leaf))
        node.finished = len(self.trace.nodes)

    def _likely_partner(self, node: Node, leaves: Mapping[str, Any]) -> tuple[Node | None, bool]:
        """The reference's call that is compared at once, and whether it is known to be the partner."""
        calls = self.anchored.get(node.path)
        if calls is not None:
            return (calls[node.occurrence] if node.occurrence < len(calls) else None), True
        others = (
            self._others.get(_kind(node, map(self.backend.shape, leaves.values()))) if node.is_leaf else None
        )
        return (others.pop() if others else None), False

    def _witnessed(self, order: int, slot: str, tensor: Any, expected: Value | None, is_sure: bool) -> Value:
        data = self._known(tensor)
        if data is None or (data.stored is None and id(data) not in self.compared):
            data = self._looked_at(order, slot, tensor, expected)
        compared = self.compared.get(id(data))
        if expected is None or compared is None or compared.expected is not expected.data:
            expected = None
        elif is_sure and data.stored is None:
            self._let_go(expected.data)
        value = Value(data, differentiable=self._takes_gradient(tensor))
        if value.differentiable:
            sight = self._overwrites.sight(self.backend.changes_behind_hooks(tensor))
            self._sights.append((value, sight))
            self.backend.watch_gradient(tensor, partial(self._came_back, order, slot, value, expected, sight))
        return value

    def _looked_at(self, order: int, slot: str, tensor: Any, expected: Value | None) -> TensorData:
        """Compared with what is expected if it is near; kept unless it is as good as the same."""
        array = self.backend.to_array(tensor, copy=False)
        outcome = None
        if expected is not None and self._is_there(expected.data):
            outcome = self._judged(order, slot, "forward", array, expected.data, near=True)
        alike = outcome is not None and outcome.relative is not None and outcome.relative <= ALIKE
        if alike and expected is not None:
            data = TensorData(tuple(array.shape), array.dtype.name, expected.data.fingerprint, None)
            self._remember(tensor, data)
        else:
            data = self._kept(tensor, array, self._mark(array))
        if outcome is not None and expected is not None:
            self.compared[id(data)] = WitnessResult(expected.data, outcome)
        return data

    def _judged(
        self,
        order: int,
        slot: str,
        direction: Direction,
        array: Array,
        recorded: TensorData,
        *,
        near: bool = False,
    ) -> ArrayOutcome | None:
        """With ``near`` only if the two look alike."""
        reference = self._store.supply(recorded)
        layout, laid_out = lay_out(reference, array)
        if near and (layout is None or distance(laid_out, array) > SAME):
            return None
        return self.judge(Sighting(order, "output", slot, direction, array, laid_out, layout, recorded))

    def judge_later(
        self, order: int, slot: str, own: TensorData, recorded: TensorData, direction: Direction
    ) -> ArrayOutcome | None:
        """What was kept, against what the partner gave; None where one of the two is gone."""
        if own.stored is None or not self._is_there(recorded):
            return None
        return self._judged(order, slot, direction, self._store.supply(own), recorded)

    def _is_there(self, data: TensorData) -> bool:
        return data.stored is not None and self._uses[id(data)] >= 0

    def _let_go(self, data: TensorData) -> None:
        """An output that was compared with all that can be its partners: the port needs the memory."""
        self._uses[id(data)] -= 1
        if self._uses[id(data)] == 0 and data.stored is not None:
            self._store.take(data.stored)
            self._uses[id(data)] = -1

    def _came_back(
        self, order: int, slot: str, value: Value, expected: Value | None, sight: Sight, gradient: Any
    ) -> None:
        if not self._complete or sight.lost:
            return
        if expected is None or expected.gradient is None:
            self._arrived(value, gradient)
            return
        array = self.backend.to_array(gradient, copy=False)
        outcome = self._judged(order, slot, "backward", array, expected.gradient)
        if outcome is not None:
            self.returned[order, slot] = WitnessResult(expected.gradient, outcome)


def _kind(node: Node, shapes: Iterable[tuple[int, ...]]) -> tuple[object, ...]:
    """What two calls without weights must have in common to be compared at once."""
    return family(node.kind), *map(prod, shapes)


def _floating(node: Node) -> list[Value]:
    return [value for value in node.outputs.values() if value.data.dtype in FLOATING]
