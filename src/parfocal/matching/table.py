"""The pairs found so far, from both sides, and when two calls are of the same kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from parfocal.backends.vocabulary.kinds import family
from parfocal.phrases import phrase
from parfocal.replay.trace import Node


class PairReason(Enum):
    """Why two calls are paired."""

    WHOLE = phrase("the whole model")
    LAYERS = "layers"  # the user says so
    WEIGHTS = "weights"
    SHARED_WEIGHTS = phrase("shared weights")
    VALUES = "values"
    INSIDE = phrase("what is inside")
    RUN_END = phrase("end of a run that the reference does in one call")
    FOLLOWED = "followed"  # one run was recorded while it was given the values of the other
    PLACE = phrase("order and kind")  # neither weights nor values speak for it

    @property
    def words(self) -> str:
        """As a report says it."""
        said: str = self.value
        return said


@dataclass(slots=True)
class PairTable:
    """The pairs so far, from both sides."""

    to_port: dict[int, int] = field(default_factory=dict)
    to_reference: dict[int, int] = field(default_factory=dict)
    why: dict[int, PairReason] = field(default_factory=dict)

    def add(self, reference: Node, port: Node, why: PairReason) -> None:
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
