"""What one pass over a pair of arrays adds up, block by block.

``SideTotals`` belongs to one array, ``Totals`` to the pair. Blocks are merged in C order, so
that the result does not depend on which thread finished first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from parfocal.judge.scaled import Scaled

ZERO = Scaled(0)


@dataclass(slots=True)
class SideTotals:
    """Census and range of one array; the range is that of its finite values."""

    nan: int = 0
    positive_infinity: int = 0
    negative_infinity: int = 0
    minimum: float = math.inf
    maximum: float = -math.inf
    square: Scaled = ZERO  # over the pairs that enter the difference statistics

    @property
    def reach(self) -> float:
        """The largest magnitude."""
        return max(-self.minimum, self.maximum)

    def merge(self, other: SideTotals) -> None:
        """Add what came from a later block."""
        self.nan += other.nan
        self.positive_infinity += other.positive_infinity
        self.negative_infinity += other.negative_infinity
        self.minimum = min(self.minimum, other.minimum)
        self.maximum = max(self.maximum, other.maximum)
        self.square = self.square.plus(other.square)


@dataclass(slots=True)
class Totals:
    """Sums and extremes of a pair; ``position`` values are flat C-order indices."""

    first: SideTotals = field(default_factory=SideTotals)
    second: SideTotals = field(default_factory=SideTotals)
    counted: int = 0  # pairs in which both are finite
    agreeing: int = 0  # pairs of equal non-finite values
    disagreeing: int = 0  # pairs in which a non-finite value meets another value
    disagreement_position: int | None = None
    maximum: float = -1.0
    maximum_position: int | None = None
    minimum: float = math.inf
    absolute: Scaled = ZERO
    square: Scaled = ZERO
    product: Scaled = ZERO
    relative: float = 0.0
    mismatched: int = 0

    def merge(self, other: Totals) -> None:
        """Add what came from a later block; the first of equal maxima stays."""
        self.first.merge(other.first)
        self.second.merge(other.second)
        self.counted += other.counted
        self.agreeing += other.agreeing
        self.disagreeing += other.disagreeing
        if self.disagreement_position is None:
            self.disagreement_position = other.disagreement_position
        if other.maximum > self.maximum:
            self.maximum, self.maximum_position = other.maximum, other.maximum_position
        self.minimum = min(self.minimum, other.minimum)
        self.absolute = self.absolute.plus(other.absolute)
        self.square = self.square.plus(other.square)
        self.product = self.product.plus(other.product)
        self.relative = max(self.relative, other.relative)
        self.mismatched += other.mismatched
