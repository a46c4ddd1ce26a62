"""What corresponds between the two frameworks, as data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from parfocal.backends.vocabulary.meanings import Meaning
from parfocal.data import Text


class Category(Enum):
    LAYER = "layer"
    LOSS = "loss"
    FUNCTION = "function"
    TENSOR = "tensor function"
    OPTIMIZER = "optimizer"
    SCHEDULER = "scheduler"
    INITIALISER = "initialiser"
    TOOL = "tool"
    MODULE = "module"


class Relation(Enum):
    """How the values of two arguments that correspond are related."""

    SAME = "same"
    COMPLEMENT = "complement"  # one minus the other
    OPPOSITE = "opposite"  # not the other
    PRESENCE = "presence"  # False takes a tensor away
    CONVERTED = "converted"  # other words for the same
    PARTS = "parts"  # several arguments for one
    FIXED = "fixed"  # one side always behaves as this value
    ONE_SIDED = "one-sided"  # the other side has nothing of the kind


@dataclass(frozen=True, slots=True)
class ArgumentPair:
    """An argument of either side; None where that side has none.

    ``values``: of CONVERTED, pairs of torch's value and paddle's; of FIXED, what the other side behaves as.
    """

    torch: str | None
    paddle: str | None
    relation: Relation = Relation.SAME
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Counterpart:
    """Two dotted names that stand for each other; None where there is no counterpart.

    ``exact`` is False for the nearest relation of something without a counterpart.
    """

    category: Category
    torch: str | None
    paddle: str | None
    meaning: Meaning | None = None
    kind: str | None = None  # of a layer
    arguments: tuple[ArgumentPair, ...] = ()
    exact: bool = True
    instead: Text | None = None  # what to write where there is no counterpart

    def name(self, framework: str) -> str | None:
        return self.torch if framework == "torch" else self.paddle
