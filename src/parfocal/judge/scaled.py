"""Sums with an exponent of their own, for values whose squares leave the range of a float.

``Scaled(value, exponent)`` stands for ``value * 2**exponent``. Ordinary blocks use exponent 0;
only blocks of very large or very small numbers are scaled.
"""

from __future__ import annotations

import math
import sys
from typing import NamedTuple

_LEAST = sys.float_info.min  # numbers above it have all their digits


class Scaled(NamedTuple):
    """``value * 2**exponent``; an integer value stays an exact integer."""

    value: float
    exponent: int = 0

    def plus(self, other: Scaled) -> Scaled:
        """The sum, in the larger of the two exponents."""
        if self.value == 0:
            return other
        if other.value == 0:
            return self
        if self.exponent == other.exponent:
            return Scaled(self.value + other.value, self.exponent)
        low, high = sorted((self, other), key=lambda scaled: scaled.exponent)
        return Scaled(high.value + math.ldexp(low.value, low.exponent - high.exponent), high.exponent)

    def over(self, count: int) -> float:
        """The mean: divided by ``count``."""
        return load_exponent(self.value / count, self.exponent)

    def root_over(self, other: Scaled) -> float:
        """``sqrt(self / other)``; both are sums of squares, ``other`` is not zero."""
        if self.exponent == other.exponent == 0:
            ratio = float(self.value) / float(other.value)
            if _LEAST < ratio < math.inf:  # the same number: a shift by an even exponent changes no digit
                return math.sqrt(ratio)
        first, second = self._halvable(), other._halvable()
        root = math.sqrt(first.value / second.value)
        return load_exponent(root, (first.exponent - second.exponent) // 2)

    def root(self) -> float:
        """``sqrt(self)``, of a sum of squares."""
        if self.exponent % 2:
            return self.root_over(Scaled(1.0))
        return load_exponent(math.sqrt(self.value), self.exponent // 2)

    def _halvable(self) -> Scaled:
        """The same number with a value near 1 and an even exponent."""
        if self.value == 0 or not math.isfinite(self.value):
            return Scaled(self.value, 0)
        value, shift = math.frexp(self.value)
        exponent = self.exponent + shift
        return Scaled(value * 2, exponent - 1) if exponent % 2 else Scaled(value, exponent)


def cosine(product: Scaled, first: Scaled, second: Scaled) -> float:
    """``product / sqrt(first * second)``: 1 for two zero vectors, 0 for a zero and a non-zero one."""
    if first.value == 0 or second.value == 0:
        return 1.0 if first.value == second.value else 0.0
    one, two = first._halvable(), second._halvable()
    value, shift = math.frexp(product.value)
    exponent = product.exponent + shift - (one.exponent + two.exponent) // 2
    return max(-1.0, min(1.0, load_exponent(value / math.sqrt(one.value * two.value), exponent)))


def load_exponent(value: float, exponent: int) -> float:
    """``value * 2**exponent``, infinite instead of an OverflowError."""
    try:
        return math.ldexp(value, exponent)
    except OverflowError:
        return math.copysign(math.inf, value)
