"""The pairs found so far, from both sides, and when two calls are of the same kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from parfocal.backends.vocabulary.kinds import family
from parfocal.replay.trace import Node


@dataclass(slots=True)
class PairTable:
    """The pairs so far, from both sides."""

    to_port: dict[int, int] = field(default_factory=dict)
    to_reference: dict[int, int] = field(default_factory=dict)
    why: dict[int, str] = field(default_factory=dict)

    def add(self, reference: Node, port: Node, why: str) -> None:
        self.to_port[reference.order] = port.order
        self.to_reference[port.order] = reference.order
        self.why[port.order] = why

    def part(self, port: int) -> None:
        """Take a pair back."""
        del self.why[port]
        self.to_port.pop(self.to_reference.pop(port), None)

    def free(self, nodes: Iterable[Node], side: Mapping[int, int]) -> list[Node]:
        return [node for node in nodes if node.order not in side]


def same_kind(a: Node, b: Node) -> bool:
    return family(a.kind) == family(b.kind)
