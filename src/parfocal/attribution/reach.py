"""Where chosen values go while a call is repeated, and whether the other side computes the same values.

A chosen value is followed from op to op, up to the next places where the call is led along: these places
depend on it. Every value that the code nearby computes is compared with values of the other side. So it is
known whether the other side computes the value a few ops earlier or later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf, prod
from typing import Any

from parfocal.backends.protocol import Array, Backend, Call, OpCall
from parfocal.capture.nested_values import flatten, flatten_call
from parfocal.capture.sites import Sites
from parfocal.judge import limits
from parfocal.judge.floors import judge_roughly, score
from parfocal.judge.layouts import SAME, distance, fit
from parfocal.replay.follow import Binding, InputOrOutput, Supply
from parfocal.replay.repeat import Layouts, Place
from parfocal.replay.trace import Node

_NO_BINDING = Binding({}, {})
Spot = tuple[int, InputOrOutput, str]  # order of a call, side, slot
Marks = dict[
    int, tuple[Any, dict[int, int]]
]  # identity -> the tensor, and steps since the value of each group
OPS = limits.pairing.REACHED_OPS.value


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A value of the code that equals one of the other side: what made it, and how far apart they are."""

    op: str
    order: int  # of the call whose code made it
    file: str | None
    line: int | None
    score: float  # by the scale floor
    relative: float
    later: bool  # whether it is made of the chosen value


@dataclass(frozen=True, slots=True)
class WantedValue:
    """A value of the other side to look for, in the code of some calls."""

    value: Array
    near: frozenset[int]


@dataclass(slots=True)
class Reach:
    """Follows values in a repeated call: pass it as ``on_op``, as ``listener`` and as ``see``.

    ``spots``: the chosen values, each with the number of its group. ``bindings``: what is led along.
    """

    backend: Backend
    nodes: list[Node]
    start: int  # the call that is repeated
    bindings: Mapping[int, Binding]
    spots: Mapping[Spot, int]
    wanted: Mapping[int, WantedValue]
    supply: Supply
    layouts: Layouts = field(default_factory=dict)  # how recorded values lie
    values: dict[int, Array] = field(default_factory=dict)  # of each group, as it was computed
    reached: dict[int, set[Spot]] = field(default_factory=dict)  # where values of a group get to
    scores: dict[Spot, float] = field(default_factory=dict)  # of every place that was compared
    met: dict[tuple[int, bool], ValueMatch] = field(default_factory=dict)  # by group, earlier or later
    # by identity of the tensors, which are kept alive: chosen values on their way, and what is made of
    # them, by how many ops
    _flowing: Marks = field(default_factory=dict)
    _made: Marks = field(default_factory=dict)
    _taken: dict[int, dict[int, int]] = field(default_factory=dict)  # by a call under way
    _sites: Sites = field(init=False)

    def __post_init__(self) -> None:
        self._sites = Sites((self.backend.name,))

    def see(self, place: Place, observed: Array) -> None:
        """What the call computes at a place, against what was recorded there."""
        order, side, slot, direction = place
        binding = self.bindings.get(order, _NO_BINDING)
        value = (binding.inputs if side == "input" else binding.outputs).get(slot)
        if direction == "backward" or value is None:
            return
        recorded = self.supply(value.data)
        layout = self.layouts.get(place[:3])
        if layout is None or layout.shape != observed.shape:
            layout = fit(recorded, observed)
        judged = None if layout is None else judge_roughly(observed, layout.apply(recorded), None)
        self.scores[place[:3]] = inf if judged is None else score(judged.error, judged.floor)

    def __call__(self, op: OpCall) -> None:
        """An op of the code: what it makes of a chosen value is followed further."""
        if op.call is None:
            return
        taken, given = flatten_call(op.args, op.kwargs).leaves.values(), flatten(op.output).leaves.values()
        self._follow(self._flowing, given, _groups(self._flowing, taken))
        self._follow(self._made, given, _groups(self._made, taken, OPS))
        self._compare(given, self.start + op.call, op.name)

    def entered(self, call: Call) -> None:
        order = self.start + call.order
        leaves = flatten_call(call.args, call.kwargs).leaves
        for slot, leaf in leaves.items():
            self._arrive((order, "input", slot), leaf)
        self._taken[order] = _groups(self._made, leaves.values(), OPS)

    def left(self, call: Call, computed: Any, given: Any) -> None:
        order = self.start + call.order
        node = self.nodes[order]
        taken = flatten_call(call.args, call.kwargs).leaves
        leaves, exchanged = flatten(computed).leaves, flatten(given).leaves
        if node.framework_layer and node.is_leaf:  # its ops are not told
            free = [leaf for slot, leaf in taken.items() if (order, "input", slot) not in self.scores]
            self._follow(self._flowing, leaves.values(), _groups(self._flowing, free))
        self._follow(self._made, exchanged.values(), _groups(self._made, (*taken.values(), *leaves.values())))
        for slot, leaf in leaves.items():
            self._arrive((order, "output", slot), leaf)
        if order != self.start and node.parent is not None:
            self._compare(exchanged.values(), node.parent, node.kind)

    def _arrive(self, spot: Spot, leaf: Any) -> None:
        """A chosen value begins here, or one that is followed gets here."""
        if not self.backend.is_tensor(leaf):
            return
        group = self.spots.get(spot)
        if group is not None:
            if group not in self.values:
                self.values[group] = self.backend.to_array(leaf)
            self._follow(self._flowing, [leaf], {group: 0})
            self._follow(self._made, [leaf], {group: 0})
            return
        for each in _groups(self._flowing, [leaf]) if self._is_compared(spot, leaf) else ():
            self.reached.setdefault(each, set()).add(spot)

    def _is_compared(self, spot: Spot, leaf: Any) -> bool:
        """Whether a value is compared with the recorded one there; an input of another size is not."""
        order, side, slot = spot
        binding = self.bindings.get(order, _NO_BINDING)
        value = (binding.inputs if side == "input" else binding.outputs).get(slot)
        if value is None:
            return False
        return side == "output" or prod(value.data.shape) == prod(self.backend.shape(leaf))

    def wrong(self, group: int, limit: float) -> set[Spot]:
        """Places that a value of the group reaches and that are wrong."""
        return {spot for spot in self.reached.get(group, ()) if self.scores.get(spot, 0.0) > limit}

    def _follow(self, marks: Marks, leaves: Iterable[Any], groups: Mapping[int, int]) -> None:
        for leaf in leaves if groups else ():
            if self.backend.is_tensor(leaf):
                known = marks.setdefault(id(leaf), (leaf, {}))[1]
                for group, steps in groups.items():
                    known[group] = min(steps, known.get(group, steps))

    def _compare(self, leaves: Iterable[Any], order: int, name: str) -> None:
        owner = self._owner(order)
        wanted = {group: each.value for group, each in self.wanted.items() if owner in each.near}
        for leaf in leaves if wanted else ():
            if not self.backend.is_tensor(leaf):
                continue
            count, made = prod(self.backend.shape(leaf)), _groups(self._made, [leaf])
            for group, value in wanted.items():
                if value.size == count:
                    array = self.backend.to_array(leaf, copy=False)
                    self._hold(group, value, array, order, name, later=group in made)

    def _hold(self, group: int, value: Array, array: Array, order: int, name: str, *, later: bool) -> None:
        """Note a value that equals the wanted one, in any layout."""
        layout = fit(value, array) if array.dtype.kind == value.dtype.kind else None
        if layout is None or distance(expected := layout.apply(value), array) > SAME:
            return
        judged = judge_roughly(array, expected, None)
        apart = score(judged.error, judged.floor)
        known = self.met.get((group, later))
        if known is None or apart < known.score:
            site = self._sites.find()
            self.met[group, later] = ValueMatch(name, order, *site, apart, judged.relative, later)

    def _owner(self, order: int | None) -> int | None:
        """The call whose code it is: one that is not led along is part of the code around it."""
        while order is not None and order not in self.bindings and order != self.start:
            order = self.nodes[order].parent
        return order


def _groups(marks: Marks, leaves: Iterable[Any], most: float = inf) -> dict[int, int]:
    """The groups that what is made of these tensors belongs to, and how many steps it is then away."""
    found: dict[int, int] = {}
    for leaf in leaves:
        for group, steps in marks[id(leaf)][1].items() if id(leaf) in marks else ():
            if steps < most:
                found[group] = min(steps + 1, found.get(group, steps + 1))
    return found
