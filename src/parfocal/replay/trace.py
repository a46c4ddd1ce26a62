"""What one watched run of a model left behind: its calls, their tensors, their gradients.

A ``Trace`` is the in-process sibling of a Run: the same facts, but with numbers in a
``Ledger`` instead of file positions, and short enough lived to be thrown away after a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from parfocal.judge.floors import Size
from parfocal.judge.moments import Fingerprint
from parfocal.judge.verdict import Site


def unmarked(count: int) -> Fingerprint:
    """In place of the fingerprint of a tensor that is not used for pairing."""
    return Fingerprint(count, 0.0, 0.0, 0.0, 0.0, None, None)


@dataclass(frozen=True, slots=True)
class TensorData:
    """One tensor's values at one moment. ``stored`` is None when only the fingerprint was kept.

    Gradients are ``unmarked``: calls are paired by what they take and give.
    """

    shape: tuple[int, ...]
    dtype: str
    fingerprint: Fingerprint
    stored: int | None  # its number in the ledger

    @property
    def size(self) -> Size:
        """How large the values are."""
        marks = self.fingerprint
        peak = max(abs(marks.minimum or 0.0), abs(marks.maximum or 0.0))
        return Size(marks.l2 / math.sqrt(marks.size) if marks.size else 0.0, peak)


@dataclass(slots=True)
class Value:
    """A tensor at one place of a call, with the gradient that arrived there later.

    ``differentiable``: its gradient is awaited, so that none means that autograd computes none.
    """

    data: TensorData
    gradient: TensorData | None = None
    differentiable: bool = False
    hidden: bool = False  # a gradient that autograd computes and that cannot be observed

    def hide(self) -> None:
        """Its gradient was not observed, which does not mean that there is none."""
        self.hidden, self.gradient, self.differentiable = self.hidden or self.differentiable, None, False


@dataclass(slots=True)
class Node:
    """One call of one module."""

    order: int
    parent: int | None
    depth: int
    path: str
    kind: str
    class_name: str
    framework_layer: bool
    occurrence: int
    settings: Mapping[str, Any]
    training: bool
    in_place: bool
    file: str | None
    line: int | None
    inputs: dict[str, Value] = field(default_factory=dict)
    outputs: dict[str, Value] = field(default_factory=dict)
    arguments: tuple[tuple[Any, ...], dict[str, Any]] = ((), {})  # None where a tensor was
    children: list[int] = field(default_factory=list)
    finished: int = -1  # how many calls had begun when this one ended

    @property
    def is_leaf(self) -> bool:
        return not self.children

    @property
    def site(self) -> Site:
        """Where it is, for a report."""
        return Site(self.path, self.kind, None, self.file, self.line, self.settings, self.order)


@dataclass(frozen=True, slots=True)
class Drop:
    """Code of a call asked a function to drop something."""

    order: int  # of the call
    begun: int  # how many calls had begun
    rate: float
    file: str | None
    line: int | None


@dataclass(slots=True)
class Trace:
    """All calls of one run, in the order in which they began."""

    nodes: list[Node] = field(default_factory=list)
    outputs: dict[str, Value] = field(default_factory=dict)  # of the whole model
    loss: float | None = None
    drops: list[Drop] = field(default_factory=list)

    def around(self, order: int, levels: int) -> int:
        """The call that many levels further out, or the outermost."""
        while levels > 0 and (parent := self.nodes[order].parent) is not None:
            order, levels = parent, levels - 1
        return order

    def subtree(self, order: int) -> Iterator[Node]:
        """A call and everything called inside it, in order of beginning."""
        return iter(self.nodes[order : self.nodes[order].finished])

    def calls_by_path(self) -> dict[str, list[Node]]:
        """The calls of each module, in order."""
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            found.setdefault(node.path, []).append(node)
        return found

    def calls_of_owner(self, parameter: str) -> list[int]:
        """The calls that make a parameter's gradient: of its module, or of the next one around."""
        owner = parameter.rpartition(".")[0]
        while True:
            calls = [node.order for node in self.nodes if node.path == owner]
            if calls or not owner:
                return calls
            owner = owner.rpartition(".")[0]
